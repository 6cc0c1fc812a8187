// refused at once: Array: extents are one integer per dimension, in braces
#include <umem.hpp>

umem::Array<double, 2> use() {
#ifdef REFUSED
  return umem::Array<double, 2>({3.5, 4.0});
#else
  return umem::Array<double, 2>({3, 4});
#endif
}
