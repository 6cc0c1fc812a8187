// refused: a __device__ lambda is for umem::on_device alone
#include <umem/for_each.hpp>

void use(umem::View<double, 1> const &view) {
#ifdef REFUSED
  umem::for_each(umem::on_host, view, [] __device__(double &x) { x = 7; });
#else
  umem::for_each(umem::on_host, view, [](double &x) { x = 7; });
#endif
  umem::for_each(umem::on_device(), view, [] __device__(double &x) { x = 7; });
  umem::for_each(umem::Place(), view, [] UMEM_FUNCTION(double &x) { x = 7; });
}
