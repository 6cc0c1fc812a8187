// refused: for_each_index: f takes one index per dimension
#include <umem/for_each.hpp>

void use(double *x) {
#ifdef REFUSED
  auto const set = [=](umem::index_t i) { x[i] = 1; };
#else
  auto const set = [=](umem::index_t i, umem::index_t) { x[i] = 1; };
#endif
  umem::for_each_index(umem::on_host, umem::Extents<2>(3, 4), set);
}
