// refused: f takes an element of each operand, in their order and of their types, and returns a value
#include <umem/array.hpp>
#include <umem/reductions.hpp>

bool use(umem::Array<double, 1> const &a) {
#ifdef REFUSED
  return umem::all(a, [] { return true; });
#else
  return umem::all(a, [](double x) { return x > 0; });
#endif
}
