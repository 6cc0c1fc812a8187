// refused: op takes two values of the type of init, and returns one
#include <umem/array.hpp>
#include <umem/reduce.hpp>

double use(umem::Array<double, 1> const &a) {
#ifdef REFUSED
  return umem::reduce(a, 0., [](double x) { return x; });
#else
  return umem::reduce(a, 0., [](double x, double y) { return x + y; });
#endif
}
