// refused: a functor for a GPU is copied there as bytes
#include <umem/reductions.hpp>

#include <memory>

struct Above {
#ifdef REFUSED
  std::shared_ptr<double> limit;
#else
  double const *limit;
#endif
  UMEM_FUNCTION bool operator()(double x) const { return x > 2; }
};
bool use(umem::View<double, 1> const &view) {
  double const two = 2;
  return umem::any(umem::on_device(), view, Above{nullptr}) &&
         umem::all(umem::on_device(), view,
                   [two] __host__ __device__(double x) { return x < two; });
}
