// refused: indices must be integers
#include <umem/view.hpp>

double element(umem::View<double, 2> view) {
#ifdef REFUSED
  return view(1, 2.5);
#else
  return view(1, 2);
#endif
}
