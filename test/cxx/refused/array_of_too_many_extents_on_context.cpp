// refused at once: Array: extents are one integer per dimension, in braces
#include <umem.hpp>

umem::Array<double, 2> use() {
#ifdef REFUSED
  return umem::Array<double, 2>({3, 4, 5}, umem::Host());
#else
  return umem::Array<double, 2>({3, 4}, umem::Host());
#endif
}
