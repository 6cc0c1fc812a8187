// refused: Array::reshape: the rank belongs to the type of an array
#include <umem/array.hpp>

void to_other_rank(umem::Array<double, 2> &array) {
#ifdef REFUSED
  array.reshape(umem::Extents<1>(12));
#else
  array.reshape(umem::Extents<2>(12, 1));
#endif
}
