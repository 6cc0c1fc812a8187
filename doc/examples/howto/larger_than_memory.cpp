/* Doubles each number of an array in a file with the memory for an eighth of it. */
#include <umem.hpp>
#include <umem/blocks.hpp>
#include <umem/reduce.hpp>

#include <cstdio>

int main() {
  try {
    umem::Array<double, 2> array({4096, 256}, umem::File("array.bin", "w+"));
    umem::fill(array, 1.0);

    umem::BlocksOptions options;
    options.budget = array.nbytes() / 8; /* bytes for all blocks together */
    umem::for_each(umem::blocks(array, umem::write, umem::on_host, options),
                   [](double &x) { x *= 2; });

    double total = umem::sum(umem::blocks(array, umem::on_host, options));
    std::printf("the sum of %td numbers is %.0f\n", array.size(), total);
  } catch (umem::error const &error) {
    std::fprintf(stderr, "%s\n", error.message());
    return 1;
  }
}
