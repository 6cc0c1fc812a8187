/* See the same elements with other extents. */
#include <iostream>
#include <umem.hpp>
#include <umem/print.hpp>

int main() {
  umem::Array<int, 1> samples({12});
  umem::iota(samples, 0);
  auto table = samples.part().reshape(umem::Extents{3, 4}); /* no copy */
  umem::fill(table.part(1, umem::full_extent), -1);
  umem::Array<int, 2> matrix =
      std::move(samples).reshape(umem::Extents{4, 3}); /* the same memory */
  std::cout << matrix << '\n';
}
