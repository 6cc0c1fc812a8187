// refused at once: the elements of an array are used on a side
#include <umem.hpp>

void use(umem::Array<double, 1> &a) {
#ifdef REFUSED
  a[1] = 2;
#else
  a.set(2, 1);
#endif
}
