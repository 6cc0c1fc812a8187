// refused: Eigen has vectors and matrices
#include <umem/view.hpp>
#include <umem/with/eigen.hpp>

#ifdef REFUSED
double first(umem::View<double, 3> view) { return umem::to_eigen(view)(0, 0); }
#else
double first(umem::View<double, 3> view) { return umem::to_eigen(view.select(0, 0))(0, 0); }
#endif
