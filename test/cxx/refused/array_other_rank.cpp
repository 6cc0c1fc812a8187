// refused: there must be one index per dimension
#include <umem/array.hpp>

double use(umem::Array<double, 2> const &array) {
#ifdef REFUSED
  return array.get(1);
#else
  return array.get(1, 2);
#endif
}
