// refused: nodiscard
#include <umem/connection.hpp>

#ifdef REFUSED
void use(umem::Context const &a) { umem::Connection(a, 0, 8, a); }
#else
void use(umem::Context const &a) { umem::Connection connection(a, 0, 8, a); }
#endif
