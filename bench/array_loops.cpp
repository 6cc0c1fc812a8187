/* Compiled twice, with UMEM_CHECKS as it is by default, and 1. */
#include "array_loops.h"

namespace bench {

using umem::index_t;

/* Of unit stride, in all loops here: the raw ones know it too. */
using Reader = umem::View<double const, 2>;
using Writer = umem::View<double, 2>;

#if UMEM_CHECKS
namespace checked {
#else
namespace plain {

void raw_elements(Raw v, Raw u) {
  for (index_t i = 0; i < v.n; i++)
    for (index_t j = 0; j < v.n; j++) v.data[i * v.row + j] = 2 * u.data[i * u.row + j];
}

void raw_stencil(Raw v, Raw u) {
  double const *from = u.data;
  for (index_t i = 0; i < v.n; i++)
    for (index_t j = 0; j < v.n; j++)
      v.data[i * v.row + j] = 0.25 * (from[(i - 1) * u.row + j] + from[(i + 1) * u.row + j] +
                                      from[i * u.row + (j - 1)] + from[i * u.row + (j + 1)]);
}
#endif

void elements(Square &v, Square const &u) {
  auto reading = u.host(umem::read);
  auto writing = v.host(umem::write);
  Reader from = reading->unit_stride();
  Writer to = writing->unit_stride();
  for (index_t i = 0; i < to.extent(0); i++)
    for (index_t j = 0; j < to.extent(1); j++) to(i, j) = 2 * from(i, j);
}

void stencil(Square &v, Square const &u) {
  auto reading = u.host(umem::read);
  auto writing = v.host(umem::write);
  Reader from = reading->unit_stride();
  Writer to = writing->unit_stride();
  for (index_t i = 0; i < to.extent(0); i++)
    for (index_t j = 0; j < to.extent(1); j++)
      to(i, j) = 0.25 * (from(i - 1, j) + from(i + 1, j) + from(i, j - 1) + from(i, j + 1));
}

} // namespace plain or checked
} // namespace bench
