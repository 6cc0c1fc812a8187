// refused: f takes a number that is no integer where it gets an index
#include <umem/for_each.hpp>

void use(double *x) {
#ifdef REFUSED
  auto const set = [=](umem::index_t i, double j) { x[i] = j; };
#else
  auto const set = [=](umem::index_t i, umem::index_t j) { x[i] = double(j); };
#endif
  umem::for_each_index(umem::on_host, umem::Extents<2>(3, 4), set);
}
