// refused: f takes a reference to the element of a sweep, then one index per dimension
#include <umem/array.hpp>
#include <umem/functional.hpp>
#include <umem/sweep.hpp>

double use(umem::Array<double, 2> &a) {
#ifdef REFUSED
  auto const set = [](double &x, umem::index_t i) { return x = double(i); };
#else
  auto const set = [](double &x, umem::index_t i, umem::index_t) { return x = double(i); };
#endif
  return umem::sweep(a, a.extents(), 0., umem::maximum(), set);
}
