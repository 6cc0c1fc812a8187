/* Views of memory that another object owns. */
#include <cstdio>
#include <numeric>
#include <vector>
#include <umem.hpp>

int main() {
  /* [view] */
  std::vector<int> memory(12);
  std::iota(memory.begin(), memory.end(), 0);
  umem::View<int, 2> a(memory.data(), {3, 4});
  a(0, 1) = 100; /* umem checks the indices if UMEM_CHECKS is 1 */

  auto column = a.select(1, 3); /* View<int, 1>: 3, 7, 11 */
  auto every_other = a.slice(1, 0, 4, 2);
  auto turned = a.transpose().reversed(0);
  std::printf("%d %d %d\n", column(2), every_other(1, 1), turned(0, 0));

  try {
    a.at(3, 0);
  } catch (umem::index_error const &failure) {
    std::printf("%s\n", failure.message());
  }
  /* [/view] */

  /* [ghosts] */
  std::vector<double> cells(5 * 5);
  auto u = umem::View<double, 2>::with_ghosts_from(cells.data(), {3, 3}, {1, 1});
  u(-1, -1) = 1; /* a corner of ghost cells, the first in memory */
  std::printf("%g %td %td\n", cells[0], u.size(), u.with_ghosts().size());
  /* [/ghosts] */
}
