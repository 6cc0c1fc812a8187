// refused at once: transform: write transform\(in, out, f\) or transform\(one, two, out, f\)
#include <umem.hpp>

void use(umem::Array<double, 1> &a, umem::Array<double, 1> &b, umem::Array<double, 1> &c) {
#ifdef REFUSED
  umem::transform(a, b, c, c, [](double x, double y, double z) { return x + y + z; });
#else
  umem::for_each([](double &out, double x, double y, double z) { out = x + y + z; }, c, a, b, c);
#endif
}
