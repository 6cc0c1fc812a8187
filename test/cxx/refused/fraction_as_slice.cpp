// refused: part: a slice is an integer, umem::end - n, umem::range
#include <umem/array.hpp>

auto of_array(umem::Array<double, 2> &array) {
#ifdef REFUSED
  return array.part(0.5, umem::range(1, umem::end - 1));
#else
  return array.part(0, umem::range(1, umem::end - 1));
#endif
}
