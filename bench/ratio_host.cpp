/* ratio_host.cpp - allocation in RAM compared with malloc, and the first touch of large blocks. */
#include "ratio.h"

#include "heaps.h"
#include "patterns.h"
#include "sizes.h"

#include <cstring>

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace bench {
namespace {

constexpr std::size_t steps_per_round = 400'000;
constexpr std::size_t pairs_per_round = 1'000'000;
constexpr std::size_t pair_size = 64;
constexpr std::size_t mappings_per_round = 5'000;

template <typename Heap> double time_mixed(Heap heap, std::vector<Step> const &steps) {
  Live<Heap> live(heap, mixed_live, steps);
  return seconds_of([&] {
    for (Step const &step : steps) live.take(step);
  });
}

template <typename Heap> double time_pairs(Heap heap) {
  return seconds_of([heap] {
    for (std::size_t i = 0; i < pairs_per_round; i++) {
      std::uintptr_t address = heap.alloc(pair_size);
      use(address);
      heap.free(address);
    }
  });
}

/* Allocate, fill, free. */
template <typename Heap> double time_fill(Heap heap, std::size_t size) {
  return seconds_of_second([&] {
    std::uintptr_t address = heap.alloc(size);
    std::memset(reinterpret_cast<void *>(address), 1, size);
    use(address);
    heap.free(address);
  });
}

/* What a program does that places its memory on node 0 by itself, with no record of it. */
struct Mapped {
  std::size_t size;

  std::uintptr_t alloc(std::size_t nbytes) const {
    unsigned long nodes[2] = {1, 0};
    void *block = mmap(nullptr, nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    constexpr long bind = 2;
    if (block == MAP_FAILED || syscall(SYS_mbind, block, nbytes, bind, nodes, 65UL, 0UL)) return 0;
    madvise(block, nbytes, MADV_HUGEPAGE);
    return reinterpret_cast<std::uintptr_t>(block);
  }

  void free(std::uintptr_t address) const { munmap(reinterpret_cast<void *>(address), size); }
};

template <typename Heap> double time_mappings(Heap heap, std::size_t size) {
  return seconds_of([heap, size] {
    for (std::size_t i = 0; i < mappings_per_round; i++) {
      std::uintptr_t address = heap.alloc(size);
      use(address);
      heap.free(address);
    }
  });
}

std::vector<double> per_pair(std::vector<double> rounds) {
  for (double &seconds : rounds) seconds /= static_cast<double>(pairs_per_round);
  return rounds;
}

/* No rows where the kernel has no nodes. */
void measure_nodes(Effort const &effort, std::vector<Ratio> &rows) {
  umemHost host;
  umemHostOptions options = UMEM_HOST_OPTIONS_INIT;
  options.nodes = 1;
  if (umemHost_ctor_with(&host, &options) != umemOK) return;
  Umem ours{&host};
  std::size_t size = 64 << 20;
  Mapped theirs{size};
  Samples mapped = alternate(effort.short_rounds, {[&] { return time_mappings(ours, size); },
                                                   [&] { return time_mappings(theirs, size); }});
  rows.push_back({"host:?nodes=0, alloc+free, " + size_text(size), "mmap, mbind, madvise, munmap",
                  Measure::slowdown, 3, mapped[0], mapped[1]});
  Samples fill = alternate(effort.short_rounds, {[&] { return time_fill(ours, size); },
                                                 [&] { return time_fill(theirs, size); }});
  rows.push_back({"host:?nodes=0, alloc, fill and free, " + size_text(size), "the same with memset",
                  Measure::slowdown, 1.1, fill[0], fill[1]});
  umem_dtor(&host);
}

} // namespace

void measure_host(Effort const &effort, std::vector<Ratio> &rows) {
  umemHost host;
  check(umemHost_ctor(&host));
  Umem ours{&host};
  Malloc theirs;

  std::vector<Step> steps = mixed_steps(steps_per_round, mixed_live);
  Samples mixed = alternate(effort.short_rounds, {[&] { return time_mixed(ours, steps); },
                                                  [&] { return time_mixed(theirs, steps); }});
  rows.push_back({"host alloc+free, 8-4096 B mixed, 4096 live", "malloc+free", Measure::slowdown,
                  1.15, mixed[0], mixed[1]});

  Samples pairs = alternate(effort.short_rounds,
                            {[&] { return time_pairs(ours); }, [&] { return time_pairs(theirs); }});
  rows.push_back({"host alloc+free, tight pair of 64 B", "malloc+free", Measure::nanoseconds, 3,
                  per_pair(pairs[0]), per_pair(pairs[1])});

  std::size_t size = effort.block;
  Samples fill = alternate(effort.long_rounds, {[&] { return time_fill(ours, size); },
                                                [&] { return time_fill(theirs, size); }});
  rows.push_back({"host alloc, fill and free, " + size_text(size), "malloc, memset, free",
                  Measure::speedup, 3, fill[0], fill[1]});
  umem_dtor(&host);
  measure_nodes(effort, rows);
}

} // namespace bench
