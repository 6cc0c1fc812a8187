// refused: f takes a number that is no integer where it gets an index
#include <umem/functional.hpp>
#include <umem/sweep.hpp>

double use() {
#ifdef REFUSED
  auto const value = [](double i) { return i; };
#else
  auto const value = [](umem::index_t i) { return double(i); };
#endif
  return umem::for_each_index_reduce(umem::on_host, umem::Extents<1>(9), 0., umem::plus(), value);
}
