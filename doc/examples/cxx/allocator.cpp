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

  /* [polymorphic] */
  umem::PolymorphicAllocator<double> any{umem::Context(map)}; /* or umem::Cuda(0) */
  double *block = any.allocate(1000);
  any.context().set(reinterpret_cast<umem::address>(block), 0, 1000 * sizeof(double));
  any.deallocate(block, 1000);
  /* [/polymorphic] */

  /* [refused] */
  try {
    umem::Allocator<double> none(umem::File::scratch());
  } catch (umem::not_supported_error const &failure) {
    std::printf("%s\n", failure.message());
  }
  /* [/refused] */
}
