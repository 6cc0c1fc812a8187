// refused at once: Array: extents are one integer per dimension, in braces
#include <umem.hpp>

umem::Array<double, 2> use() {
#ifdef REFUSED
  umem::Array<double, 2> a(3, 4);
#else
  umem::Array<double, 2> a({3, 4});
#endif
  return a;
}
