// refused: f takes a number that is no integer where it gets an index: is an operand missing
#include <umem/array.hpp>
#include <umem/for_each.hpp>

void use(umem::Array<double, 1> &a, umem::Array<double, 1> const &b) {
  auto const add = [](auto &x, auto y, double z) { x = y + z; };
#ifdef REFUSED
  umem::for_each_indexed(add, a, b);
#else
  umem::for_each(add, a, b, b);
#endif
}
