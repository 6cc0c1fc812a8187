/* Adds up the numbers of four files. While it works on one, the next is read. */
#include <cstdio>
#include <string>
#include <umem.hpp>
#include <umem/reduce.hpp>
#include <umem/transfer.hpp>

using Numbers = umem::Array<float, 1>;

constexpr umem::index_t count = 1 << 20;

/* The array in file number k, of which nothing is read yet. */
static Numbers in_file(int number, char const *mode) {
  return Numbers({count}, umem::File("part" + std::to_string(number) + ".bin", mode));
}

int main() {
  constexpr int files = 4;
  for (int k = 0; k < files; k++) {
    Numbers file = in_file(k, "w");
    umem::fill(file, 1.0f);
  }

  double sum = 0;
  Numbers now({count}), next({count});
  umem::Transfer read = umem::start(in_file(0, "r"), now);
  for (int k = 0; k < files; k++) {
    read.wait(); /* throws what the read has failed with */
    if (k + 1 < files) read = umem::start(in_file(k + 1, "r"), next);
    sum += umem::sum(now);
    std::swap(now, next);
  }
  std::printf("%d files, the sum is %.0f\n", files, sum);
}
