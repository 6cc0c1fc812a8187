// refused: the matrix would end before the view
#include <umem/view.hpp>
#include <umem/with/eigen.hpp>

double first() {
#ifdef REFUSED
  return umem::from_eigen(Eigen::MatrixXd(2, 2))(0, 0);
#else
  Eigen::MatrixXd const matrix(2, 2);
  return umem::from_eigen(matrix)(0, 0);
#endif
}
