/* Containers of the standard library in the memory of a context. */
#include <cstdio>
#include <map>
#include <memory_resource>
#include <string>
#include <vector>
#include <umem.hpp>
#include <umem/memory_resource.hpp>

int main() {
  /* [allocator] */
  umem::MMap map = umem::MMap::scratch(); /* more than fits RAM goes to the disk */
  std::vector<double, umem::Allocator<double>> values(1000, 0.5, map);
  values.push_back(1.5);
  std::printf("%g\n", values.back());
  /* [/allocator] */

  /* [resource] */
  umem::MemoryResource resource(map);
  std::pmr::map<int, std::pmr::string> names(&resource);
  names[1] = "a name that is too long to lie within the string itself";
  std::printf("%zu\n", names[1].size());
  /* [/resource] */

  /* [refused] */
  try {
    umem::Allocator<double> none(umem::File::scratch());
  } catch (umem::not_supported_error const &failure) {
    std::printf("%s\n", failure.message());
  }
  /* [/refused] */
}
