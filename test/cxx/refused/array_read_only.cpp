// refused: the elements of a read-only array are not written
#include <umem/array.hpp>

void use(umem::Array<double const, 1> &array) {
#ifdef REFUSED
  array.host(umem::write);
#else
  static_cast<void>(array.host(umem::read));
#endif
}
