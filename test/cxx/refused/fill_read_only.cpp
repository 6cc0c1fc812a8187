// refused: the elements of a read-only array cannot be written
#include <umem/array.hpp>
#include <umem/fill.hpp>

#ifdef REFUSED
void use(umem::Array<double const, 1> &array) { umem::fill(umem::on_host, array, 1); }
#else
void use(umem::Array<double, 1> &array) { umem::fill(umem::on_host, array, 1); }
#endif
