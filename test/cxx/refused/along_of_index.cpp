// refused: f takes an element of each operand, in their order and of their types, and returns a value
#include <umem/array.hpp>
#include <umem/reduce_along.hpp>

void use(umem::Array<double, 2> const &a, umem::Array<double, 1> &out) {
#ifdef REFUSED
  auto const value = [](double x, umem::index_t) { return x; };
#else
  auto const value = [](double x) { return x; };
#endif
  umem::transform_reduce_along(a, 0, out, 0., umem::plus(), value);
}
