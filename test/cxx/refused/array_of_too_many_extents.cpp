// refused at once: Array: extents are one integer per dimension, in braces
#include <umem.hpp>

umem::Array<double, 2> use(long n) {
#ifdef REFUSED
  return umem::Array<double, 2>({3, n, 5});
#else
  return umem::Array<double, 2>({3, n});
#endif
}
