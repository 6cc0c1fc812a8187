// refused: f takes an element of each operand, in their order and of their types, and returns a value
#include <umem/array.hpp>
#include <umem/reduce.hpp>

double use(umem::Array<double, 1> const &a) {
  auto const product = [](double x, double y) { return x * y; };
#ifdef REFUSED
  return umem::transform_reduce(a, 0., umem::plus(), product);
#else
  return umem::transform_reduce(a, a, 0., umem::plus(), product);
#endif
}
