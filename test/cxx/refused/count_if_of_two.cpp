// refused: f takes an element of each operand, in their order and of their types, and returns a value
#include <umem/array.hpp>
#include <umem/reductions.hpp>

umem::index_t use(umem::Array<double, 1> const &a) {
#ifdef REFUSED
  return umem::count_if(a, [](double x, double y) { return x > y; });
#else
  return umem::count_if(a, [](double x) { return x > 0; });
#endif
}
