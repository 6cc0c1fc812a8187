/* Adds up the numbers of one array while the next one is copied from a file. */
#include <cstdio>
#include <umem.hpp>
#include <umem/reduce.hpp>
#include <umem/transfer.hpp>

int main() {
  umem::Array<float, 1> file({3000000}, umem::File::scratch());
  umem::fill(file, 0.5f);

  /* [transfer] */
  umem::Array<float, 1> now({1000000}), next({1000000});
  umem::Transfer load = umem::start(file.part().slice(0, 0, 1000000), now);
  for (int k = 1; k <= 3; k++) {
    load.wait(); // throws what the copy has failed with
    if (k < 3) load = umem::start(file.part().slice(0, k * 1000000, (k + 1) * 1000000), next);
    std::printf("%g\n", umem::sum(now)); // while the next one arrives
    std::swap(now, next);
  }
  /* [/transfer] */
}
