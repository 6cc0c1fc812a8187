/* scaled.cpp - the program's other unit. */
#include "scaled.hpp"

#include <umem/for_each.hpp>

umem::Array<double, 2> scaled(umem::Array<double, 2> &from, double factor) {
  umem::Array<double, 2> to({from.extent(0), from.extent(1)}, umem::File::scratch());
  auto read = from.host(umem::read);
  auto write = to.host(umem::discard);
  umem::View<double const, 2> old = read.view();
  umem::View<double, 2> view = write.view();
  umem::for_each_index(umem::on_host, view.extents,
                       [&](umem::index_t i, umem::index_t j) { view(i, j) = factor * old(i, j); });
  return to;
}
