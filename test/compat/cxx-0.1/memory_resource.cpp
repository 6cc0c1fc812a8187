/* Polymorphic containers of the standard library in the memory of a context. */
#include <cstdio>
#include <map>
#include <memory_resource>
#include <string>
#include <umem.hpp>
#include <umem/memory_resource.hpp>

int main() {
  /* [resource] */
  umem::MemoryResource resource(umem::MMap::scratch());
  std::pmr::map<int, std::pmr::string> names(&resource);
  names[1] = "a name that is too long to lie within the string itself";
  std::printf("%zu\n", names[1].size());
  /* [/resource] */
}
