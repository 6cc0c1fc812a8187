/* Fills and sums an array of 32 MB in a file, with 4 MB of memory. */
#include <cstdio>
#include <umem.hpp>
#include <umem/blocks.hpp>
#include <umem/reduce.hpp>

int main() {
  try {
    umem::Array<double, 1> numbers({4000000}, umem::File("numbers.bin", "w+"));
    umem::BlocksOptions options;
    options.budget = 4 << 20; /* bytes */

    for (auto const &block : umem::blocks(numbers, umem::write, umem::on_host, options)) {
      umem::View<double, 1> x = *block;
      for (umem::index_t i = 0; i < block.rows(); i++) x(i) = double(block.first() + i);
    }

    double total = umem::sum(umem::blocks(numbers, umem::on_host, options));
    std::printf("the mean is %.1f\n", total / double(numbers.size()));
  } catch (umem::error const &failure) {
    std::fprintf(stderr, "%s\n", failure.message());
    return 1;
  }
}
