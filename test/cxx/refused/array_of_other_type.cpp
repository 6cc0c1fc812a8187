// refused at once: umem::convert\(from, to\) converts elements
#include <umem.hpp>

umem::Array<float, 1> use(umem::Array<double, 1> const &from) {
#ifdef REFUSED
  umem::Array<float, 1> to(from);
#else
  umem::Array<float, 1> to(from.extents());
  umem::convert(from, to);
#endif
  return to;
}
