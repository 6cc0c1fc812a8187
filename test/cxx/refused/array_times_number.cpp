// refused at once: arrays have no operators: write umem::transform
#include <umem.hpp>

void use(umem::Array<double, 1> &a, umem::Array<double, 1> &b) {
#ifdef REFUSED
  b = 2 * a;
#else
  umem::transform(a, b, [](double x) { return 2 * x; });
#endif
}
