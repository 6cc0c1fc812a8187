/* heap_mimalloc.cpp - mimalloc, by the functions of its own. */
#include "heaps.h"

namespace bench {

Other mimalloc_heap() {
  constexpr char const *library = UMEM_BENCH_MIMALLOC;
  auto version = reinterpret_cast<int (*)()>(function_of(library, "mi_version"));
  int number = version(); /* 209 is 2.0.9 */
  std::string name = "mimalloc " + std::to_string(number / 100) + "." +
                     std::to_string(number / 10 % 10) + "." + std::to_string(number % 10);
  return {name, reinterpret_cast<void *(*)(std::size_t)>(function_of(library, "mi_malloc")),
          reinterpret_cast<void (*)(void *)>(function_of(library, "mi_free")),
          reinterpret_cast<void *(*)(std::size_t, std::size_t)>(function_of(library, "mi_calloc"))};
}

} // namespace bench
