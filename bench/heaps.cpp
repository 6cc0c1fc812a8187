#include "heaps.h"

#include <cstdio>
#include <stdexcept>

#include <dlfcn.h>

namespace bench {
namespace {

/* The handle is never closed: the heap is used until the end. */
void *open_library(char const *library) {
  void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (!handle) throw std::runtime_error(dlerror());
  return handle;
}

} // namespace

bool has_function(char const *library, char const *function) {
  return dlsym(open_library(library), function) != nullptr;
}

void *function_of(char const *library, char const *function) {
  void *found = dlsym(open_library(library), function);
  if (!found) throw std::runtime_error(std::string(library) + " has no " + function);
  return found;
}

std::vector<Other> others() {
  std::vector<Other (*)()> makers;
#ifdef UMEM_BENCH_MIMALLOC
  makers.push_back(mimalloc_heap);
#endif
#ifdef UMEM_BENCH_JEMALLOC
  makers.push_back(jemalloc_heap);
#endif
#ifdef UMEM_BENCH_UMF
  makers.push_back(umf_heap);
#endif
  std::vector<Other> heaps;
  for (auto make : makers) {
    try {
      heaps.push_back(make());
    } catch (std::runtime_error const &error) {
      std::printf("skipped: %s\n", error.what());
    }
  }
  return heaps;
}

} // namespace bench
