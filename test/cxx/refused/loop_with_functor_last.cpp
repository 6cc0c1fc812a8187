// refused at once: write for_each\(a, f\) or for_each\(f, a, b, c\)
#include <umem.hpp>

void use(umem::Array<double, 1> &a, umem::Array<double, 1> const &b) {
#ifdef REFUSED
  umem::for_each(a, b, [](double &x, double y) { x = y; });
#else
  umem::for_each([](double &x, double y) { x = y; }, a, b);
#endif
}
