// refused at once: Array::device: name the access: umem::read, umem::write or umem::discard
#include <umem.hpp>

void use(umem::Array<double, 2> &a) {
#ifdef REFUSED
  auto u = a.device();
#else
  auto u = a.device(umem::write);
#endif
  (void)u;
}
