/* A matrix in a umem::Array. */
#include <cstdio>
#include <stdexcept>
#include <umem.hpp>
#include <umem/reduce.hpp>

int main() {
  umem::Array<double, 2> u({3, 4}); /* in RAM; a context after the extents names another place */
  {
    auto x = u.host(umem::discard);
    for (umem::index i = 0; i < u.extent(0); i++)
      for (umem::index j = 0; j < u.extent(1); j++) x(i, j) = static_cast<double>(10 * i + j);
  }

  auto x = u.host(umem::read);
  std::printf("%g\n", umem::sum(umem::on_host, x->select(1, 2))); /* the sum of a column */
  x.release(); /* while the guard lives, set throws */

  try {
    u.set(1, 3, 0);
  } catch (std::out_of_range const &) {
    std::printf("out of range\n");
  }

  umem::Array<double, 2> copy(u, umem::File("copy.bin", "w+")); /* a copy in a file */
  copy.set(100, 0, 0);
  copy.flush();
}
