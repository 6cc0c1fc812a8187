// refused: an expression has no elements in memory
#include <umem/view.hpp>
#include <umem/with/eigen.hpp>

double first(Eigen::MatrixXd const &matrix) {
#ifdef REFUSED
  return umem::from_eigen(2 * matrix)(0, 0);
#else
  Eigen::MatrixXd const twice = 2 * matrix;
  return umem::from_eigen(twice)(0, 0);
#endif
}
