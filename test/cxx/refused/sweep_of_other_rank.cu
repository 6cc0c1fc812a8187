// refused: f takes a reference to the element of a sweep, then one index per dimension
#include <umem/functional.hpp>
#include <umem/sweep.hpp>

struct Set {
  UMEM_FUNCTION double operator()(double &x, umem::index_t i) const { return x = double(i); }
};
double use(umem::View<double, 1> const &row, umem::View<double, 2> const &matrix) {
#ifdef REFUSED
  return umem::sweep(umem::on_device(), matrix, matrix.extents, 0., umem::maximum(), Set());
#else
  (void)matrix;
  return umem::sweep(umem::on_device(), row, row.extents, 0., umem::maximum(), Set());
#endif
}
