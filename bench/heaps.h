/* heaps.h - allocation by umem and by hand, called in the same way, and the same work for both. */
#ifndef UMEM_BENCH_HEAPS_H
#define UMEM_BENCH_HEAPS_H

#include "place.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <vector>

namespace bench {

struct Malloc {
  std::uintptr_t alloc(std::size_t size) const {
    return reinterpret_cast<std::uintptr_t>(std::malloc(size));
  }
  void free(std::uintptr_t address) const { std::free(reinterpret_cast<void *>(address)); }
};

struct Umem {
  void *context;
  std::uintptr_t alloc(std::size_t size) const { return umem_alloc(context, size); }
  void free(std::uintptr_t address) const { umem_free(context, address); }
};

/* Mixed allocation: of so many live blocks a random one is replaced by one of a random size. */
constexpr std::size_t mixed_live = 4096, mixed_least = 8, mixed_most = 4096;

struct Step {
  std::size_t slot, size;
};

inline std::vector<Step> mixed_steps(std::size_t count, std::size_t live) {
  std::mt19937_64 random(1);
  std::uniform_int_distribution<std::size_t> slot(0, live - 1), size(mixed_least, mixed_most);
  std::vector<Step> steps(count);
  for (Step &step : steps) step = {slot(random), size(random)};
  return steps;
}

/* The live blocks of a heap. */
template <typename Heap> class Live {
public:
  Live(Heap heap, std::size_t count, std::vector<Step> const &steps) : heap_(heap), blocks_(count) {
    for (std::size_t i = 0; i < count; i++) blocks_[i] = heap_.alloc(steps[i % steps.size()].size);
  }
  Live(Live const &) = delete;
  Live &operator=(Live const &) = delete;
  ~Live() {
    for (std::uintptr_t address : blocks_) heap_.free(address);
  }

  void take(Step const &step) {
    heap_.free(blocks_[step.slot]);
    blocks_[step.slot] = heap_.alloc(step.size);
  }

private:
  Heap heap_;
  std::vector<std::uintptr_t> blocks_;
};

} // namespace bench

#endif
