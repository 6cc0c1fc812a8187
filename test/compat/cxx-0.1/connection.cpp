/* A second address for bytes that are elsewhere. */
#include <cstdio>
#include <umem.hpp>

/* Sets numbers in a buffer that may be anywhere. */
static void work(umem::Context const &place) {
  /* [connection] */
  auto table = umem::Buffer::zeroed(place, 4 * sizeof(double));
  umem::Connection ram(place, table.adr(), table.size(), umem::Host());
  auto *x = static_cast<double *>(ram.data());
  x[2] = 1.5;
  ram.sync_back(); /* now the buffer is up to date */
  /* [/connection] */

  double third = 0;
  table.copy_to(&third, sizeof third, 2 * sizeof third);
  std::printf("%s: %g, %s\n", place.name(), third,
              ram.adr() == table.adr() && place.is_cpu_accessible() ? "one memory" : "a copy");
}

int main() {
  work(umem::Host());
  work(umem::File::scratch());
}
