// refused: there must be one index per dimension
#include <umem/view.hpp>

double element(umem::View<double, 2> view) {
#ifdef REFUSED
  return view.at(1, 2, 3);
#else
  return view.at(1, 2);
#endif
}
