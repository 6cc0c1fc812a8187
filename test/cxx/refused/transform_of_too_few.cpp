// refused at once: f takes an element of each operand
#include <umem.hpp>

void use(umem::Array<double, 1> &a, umem::Array<double, 1> &b) {
#ifdef REFUSED
  umem::transform(a, b, [](double x, double y) { return x + y; });
#else
  umem::transform(a, b, b, [](double x, double y) { return x + y; });
#endif
}
