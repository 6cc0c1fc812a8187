// refused: the output has one dimension less than the input
#include <umem/reduce_along.hpp>

#ifdef REFUSED
using Sums = umem::View<double, 2>;
#else
using Sums = umem::View<double, 1>;
#endif
void use(umem::View<double, 2> const &view, Sums const &sums) {
  umem::sum_along(umem::on_host, view, 0, sums);
}
