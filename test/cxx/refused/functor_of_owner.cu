// refused: a functor for a GPU is copied there as bytes
#include <umem/for_each.hpp>

#include <memory>

struct Scale {
#ifdef REFUSED
  std::shared_ptr<double> factor;
#else
  double *factor;
#endif
  UMEM_FUNCTION void operator()(double &x) const { x *= 2; }
};
void use(umem::View<double, 1> const &view) {
  umem::for_each(umem::on_device(), view, Scale{nullptr});
  double const two = 2;
  umem::for_each(umem::on_device(), view, [two] __host__ __device__(double &x) { x *= two; });
  umem::for_each(umem::on_device(), view, [two] __device__(double &x) { x *= two; });
}
