// refused at once: name the type and the number of dimensions: map_npy<double const, 2>\(path\)
#include <umem/npy.hpp>

umem::index_t use() {
#ifdef REFUSED
  return umem::map_npy<double const>("u.npy").size();
#else
  return umem::map_npy<double const, 2>("u.npy").size();
#endif
}
