// refused: calling a __host__ function.* from a __device__ function
#include <umem/transform.hpp>

struct Square {
#ifdef REFUSED
  double operator()(double x) const { return x * x; }
#else
  UMEM_FUNCTION double operator()(double x) const { return x * x; }
#endif
};
void use(umem::View<double, 1> const &view) {
  umem::transform(umem::on_host, view, view, Square());
  umem::transform(umem::on_device(), view, view, Square());
}
