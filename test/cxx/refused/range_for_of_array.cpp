// refused at once: write.for.*a.host
#include <umem.hpp>

double use(umem::Array<double, 1> &a) {
#ifdef REFUSED
  double sum = 0;
  for (double x : a) sum += x;
  return sum;
#else
  double sum = 0;
  for (double x : a.host(umem::read)) sum += x;
  return sum;
#endif
}
