// refused at once: Array::full\(extents, value\) sets all elements
#include <umem.hpp>

umem::Array<double, 2> use() {
#ifdef REFUSED
  return umem::Array<double, 2>({3, 4}, 1.5);
#else
  return umem::Array<double, 2>::full({3, 4}, 1.5);
#endif
}
