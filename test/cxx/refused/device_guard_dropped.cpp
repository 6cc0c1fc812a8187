// refused: nodiscard
#include <umem/array.hpp>

#ifdef REFUSED
void use(umem::Array<double, 1> const &array) { array.device(umem::read); }
#else
void use(umem::Array<double, 1> const &array) { auto guard = array.device(umem::read); }
#endif
