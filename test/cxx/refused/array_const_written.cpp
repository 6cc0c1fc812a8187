// refused at once: a const array is only read: a.host\(umem::read\)
#include <umem.hpp>

void use(umem::Array<double, 1> const &array) {
#ifdef REFUSED
  auto const guard = array.host(umem::write);
#else
  auto const guard = array.host(umem::read);
#endif
  static_cast<void>(guard);
}
