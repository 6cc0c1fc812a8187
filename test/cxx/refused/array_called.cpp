// refused at once: the elements of an array are used on a side: auto u = a.host\(umem::write\)
#include <umem.hpp>

double use(umem::Array<double, 2> &a) {
#ifdef REFUSED
  return a(1, 2);
#else
  auto u = a.host(umem::write);
  return u(1, 2) + a.get(1, 2);
#endif
}
