// refused: calling a __host__ function.* from a __device__ function
#include <umem/for_each.hpp>

struct AddIndex {
#ifdef REFUSED
  void operator()(double &x, umem::index_t i) const { x += static_cast<double>(i); }
#else
  UMEM_FUNCTION void operator()(double &x, umem::index_t i) const { x += static_cast<double>(i); }
#endif
};
void use(umem::View<double, 1> const &view) {
  umem::for_each_indexed(umem::on_host, view, umem::interior(view), AddIndex());
  umem::for_each_indexed(umem::on_device(), view, umem::interior(view), AddIndex());
}
