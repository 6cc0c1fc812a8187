/* The names of ghost cells in 0.1, where there were as many before as after the elements. */
#include <umem.hpp>

double sum_with_ghosts(umem::Array<double, 1> const &array) {
  umem::View<double const, 1> const view = array.host(umem::read);
  double sum = 0;
  for (umem::index i = -array.ghosts()[0]; i < view.extent(0) + view.ghost(0); i++) sum += view(i);
  return sum;
}

umem::index ghosts_of(umem::DynamicView<double> const &view) { return view.ghost(0); }
