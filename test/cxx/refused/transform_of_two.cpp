// refused: f takes an element of each operand, in their order and of their types, and returns a value
#include <umem/array.hpp>
#include <umem/transform.hpp>

void use(umem::Array<double, 1> &a, umem::Array<double, 1> const &b) {
  auto const add = [](double x, double y) { return x + y; };
#ifdef REFUSED
  umem::transform(b, a, add);
#else
  umem::transform(b, b, a, add);
#endif
}
