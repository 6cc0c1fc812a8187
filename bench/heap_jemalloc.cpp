/* heap_jemalloc.cpp - jemalloc, whether its functions have a prefix or the names of malloc. */
#include "heaps.h"

#include <stdexcept>

namespace bench {
namespace {

constexpr char const *library = UMEM_BENCH_JEMALLOC;

std::string version(std::string const &prefix) {
  using Control = int (*)(char const *, void *, std::size_t *, void *, std::size_t);
  auto control = reinterpret_cast<Control>(function_of(library, (prefix + "mallctl").c_str()));
  char const *text = nullptr; /* 5.3.0-0-g54eaed1d8b56 */
  std::size_t length = sizeof text;
  if (control("version", &text, &length, nullptr, 0)) throw std::runtime_error("jemalloc: mallctl");
  std::string full = text;
  return full.substr(0, full.find('-'));
}

} // namespace

/* The C library is searched after it: without the prefix, malloc would be found there. */
Other jemalloc_heap() {
  std::string prefix = has_function(library, "je_malloc") ? "je_" : "";
  auto find = [&](char const *name) { return function_of(library, (prefix + name).c_str()); };
  return {"jemalloc " + version(prefix), reinterpret_cast<void *(*)(std::size_t)>(find("malloc")),
          reinterpret_cast<void (*)(void *)>(find("free")),
          reinterpret_cast<void *(*)(std::size_t, std::size_t)>(find("calloc"))};
}

} // namespace bench
