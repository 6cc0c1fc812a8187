// refused: nodiscard
#include <umem/c_array.hpp>

#ifdef REFUSED
void use(umem::Array<double, 1> &array) { umem::c_array(array, umem::write); }
#else
void use(umem::Array<double, 1> &array) { auto c = umem::c_array(array, umem::write); }
#endif
