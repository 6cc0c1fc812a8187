// refused at once: Array::host: name the access: umem::read, umem::write or umem::discard
#include <umem.hpp>

void use(umem::Array<double, 2> &a) {
#ifdef REFUSED
  auto u = a.host();
#else
  auto u = a.host(umem::write);
#endif
  u(0, 0) = 1;
}
