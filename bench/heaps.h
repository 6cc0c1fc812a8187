/* heaps.h - allocation by umem, by hand and by other libraries over RAM, called in the same way.
 *
 * A heap is a handle that is copied. It has
 *
 *     static constexpr bool wants_sizes;    // whether free needs the size that alloc was
 *     std::uintptr_t alloc(std::size_t size) const;
 *     std::uintptr_t zeros(std::size_t size) const;    // only of RAM
 *     void free(std::uintptr_t address, std::size_t size) const; */
#ifndef UMEM_BENCH_HEAPS_H
#define UMEM_BENCH_HEAPS_H

#include "place.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace bench {

struct Malloc {
  static constexpr bool wants_sizes = false;
  std::uintptr_t alloc(std::size_t size) const {
    return reinterpret_cast<std::uintptr_t>(std::malloc(size));
  }
  std::uintptr_t zeros(std::size_t size) const {
    return reinterpret_cast<std::uintptr_t>(std::calloc(1, size));
  }
  void free(std::uintptr_t address, std::size_t = 0) const {
    std::free(reinterpret_cast<void *>(address));
  }
};

struct Umem {
  static constexpr bool wants_sizes = false;
  void *context;

  std::uintptr_t alloc(std::size_t size) const { return umem_alloc(context, size); }
  std::uintptr_t zeros(std::size_t size) const { return umem_calloc(context, 1, size); }
  void free(std::uintptr_t address, std::size_t = 0) const { umem_free(context, address); }
};

/* A pool, opened by a name of umem_open, with the options in it. */
class NamedPool {
public:
  explicit NamedPool(char const *name) : name_(name), pool_(umem_open(name), umem_close) {
    if (!pool_) throw std::runtime_error(umem_thread_message());
  }

  std::string const &name() const { return name_; }
  Umem heap() const { return {pool_.get()}; }
  void finish() const { check(umem_synchronize(pool_.get())); }
  std::size_t reserved_bytes() const {
    umemPoolStats stats = UMEM_POOL_STATS_INIT;
    check(umemPool_stats(static_cast<umemPool *>(pool_.get()), &stats));
    return stats.reserved_peak;
  }

private:
  std::string name_;
  std::unique_ptr<void, umemStatusType (*)(void *)> pool_;
};

/* The heap of another library, called as malloc, free and calloc are. */
struct Other {
  static constexpr bool wants_sizes = false;
  std::string name; /* of the library, with its version */
  void *(*allocate)(std::size_t);
  void (*release)(void *);
  void *(*allocate_zeros)(std::size_t, std::size_t);

  std::uintptr_t alloc(std::size_t size) const {
    return reinterpret_cast<std::uintptr_t>(allocate(size));
  }
  std::uintptr_t zeros(std::size_t size) const {
    return reinterpret_cast<std::uintptr_t>(allocate_zeros(1, size));
  }
  void free(std::uintptr_t address, std::size_t = 0) const {
    release(reinterpret_cast<void *>(address));
  }
};

/* The other libraries that CMake has found; prints those that cannot be loaded. */
std::vector<Other> others();

/* Each throws std::runtime_error when it cannot be loaded. Compiled where CMake finds the
 * library. */
Other mimalloc_heap();
Other jemalloc_heap();
Other umf_heap();

/* A function of a shared library that the program loads: its malloc, if it has one, does not
 * become the program's. Stays loaded. Throws std::runtime_error without library or function. */
void *function_of(char const *library, char const *function);
bool has_function(char const *library, char const *function);

} // namespace bench

#endif
