/* ratio_host.cpp - allocation in RAM beside malloc, and the first touch of large blocks. */
#include "ratio.h"

#include "place.h"

#include <array>
#include <cstdlib>
#include <cstring>
#include <random>

namespace bench {
namespace {

/* The two sides of a comparison, called in the same way. */
struct Malloc {
  std::uintptr_t alloc(std::size_t size) {
    return reinterpret_cast<std::uintptr_t>(std::malloc(size));
  }
  void free(std::uintptr_t address) { std::free(reinterpret_cast<void *>(address)); }
};

struct Umem {
  umemHost *host;
  std::uintptr_t alloc(std::size_t size) { return umem_alloc(host, size); }
  void free(std::uintptr_t address) { umem_free(host, address); }
};

/* Which block is replaced, by one of what size. */
struct Step {
  std::size_t slot, size;
};

constexpr std::size_t live_blocks = 4096;
constexpr std::size_t steps_per_round = 400'000;
constexpr std::size_t pairs_per_round = 1'000'000;
constexpr std::size_t pair_size = 64;

std::vector<Step> make_steps() {
  std::mt19937_64 random(1);
  std::uniform_int_distribution<std::size_t> slot(0, live_blocks - 1), size(8, 4096);
  std::vector<Step> steps(steps_per_round);
  for (Step &step : steps) step = {slot(random), size(random)};
  return steps;
}

template <typename Heap> double time_mixed(Heap heap, std::vector<Step> const &steps) {
  std::array<std::uintptr_t, live_blocks> live;
  for (std::size_t i = 0; i < live_blocks; i++) live[i] = heap.alloc(steps[i].size);
  double seconds = seconds_of([&] {
    for (Step const &step : steps) {
      heap.free(live[step.slot]);
      live[step.slot] = heap.alloc(step.size);
    }
  });
  for (std::uintptr_t address : live) heap.free(address);
  return seconds;
}

template <typename Heap> double time_pairs(Heap heap) {
  return seconds_of([&] {
    for (std::size_t i = 0; i < pairs_per_round; i++) {
      std::uintptr_t address = heap.alloc(pair_size);
      use(address);
      heap.free(address);
    }
  });
}

/* Allocate, fill, free. */
template <typename Heap> double time_fill(Heap heap, std::size_t size) {
  return seconds_of([&] {
    std::uintptr_t address = heap.alloc(size);
    std::memset(reinterpret_cast<void *>(address), 1, size);
    use(address);
    heap.free(address);
  });
}

std::vector<double> per_pair(std::vector<double> rounds) {
  for (double &seconds : rounds) seconds /= static_cast<double>(pairs_per_round);
  return rounds;
}

} // namespace

void measure_host(Effort const &effort, std::vector<Ratio> &rows) {
  umemHost host;
  check(umemHost_ctor(&host));
  Umem ours{&host};
  Malloc theirs;

  std::vector<Step> steps = make_steps();
  Samples mixed = alternate(effort.short_rounds, {[&] { return time_mixed(ours, steps); },
                                                  [&] { return time_mixed(theirs, steps); }});
  rows.push_back({"host alloc+free, 8-4096 B mixed, 4096 live", "malloc+free", Measure::slowdown,
                  1.15, mixed[0], mixed[1]});

  Samples pairs = alternate(effort.short_rounds,
                            {[&] { return time_pairs(ours); }, [&] { return time_pairs(theirs); }});
  rows.push_back({"host alloc+free, tight pair of 64 B", "malloc+free", Measure::nanoseconds, 3,
                  per_pair(pairs[0]), per_pair(pairs[1])});

  std::size_t size = effort.large;
  Samples fill = alternate(effort.long_rounds, {[&] { return time_fill(ours, size); },
                                                [&] { return time_fill(theirs, size); }});
  rows.push_back({"alloc, fill and free of a host block of " + size_text(size),
                  "malloc, memset, free", Measure::speedup, 3, fill[0], fill[1]});
  umem_dtor(&host);
}

} // namespace bench
