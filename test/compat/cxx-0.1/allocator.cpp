/* Containers of the standard library in the memory of a context. */
#include <cstdio>
#include <vector>
#include <umem.hpp>

int main() {
  /* [allocator] */
  umem::MMap map = umem::MMap::scratch(); /* if RAM is full, the system moves pages to the disk */
  std::vector<double, umem::Allocator<double>> values(1000, 0.5, map);
  values.push_back(1.5);
  std::printf("%g\n", values.back());
  /* [/allocator] */

  /* [refused] */
  try {
    umem::Allocator<double> none(umem::File::scratch());
  } catch (umem::not_supported_error const &failure) {
    std::printf("%s\n", failure.message());
  }
  /* [/refused] */
}
