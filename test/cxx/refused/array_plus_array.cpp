// refused at once: arrays have no operators: write umem::transform
#include <umem.hpp>

#include <functional>

void use(umem::Array<double, 1> &a, umem::Array<double, 1> &b, umem::Array<double, 1> &c) {
#ifdef REFUSED
  c = a + b;
#else
  umem::transform(a, b, c, std::plus<>());
#endif
}
