// refused at once: name the type and the number of dimensions: load_npy<double, 2>\(path\)
#include <umem/npy.hpp>

umem::index_t use() {
#ifdef REFUSED
  return umem::load_npy<double>("u.npy").size();
#else
  return umem::load_npy<double, 2>("u.npy").size();
#endif
}
