/* ratio_overlap.cpp - how far the legs of a passage (umem/blocks.h) overlap. Each leg of a block
 * takes a known time, in which it uses no processor: the figures depend on nothing else of the
 * machine. With n blocks, and t for each of the three legs, (n + 2) t is the best: nothing overlaps
 * while the first block is read and the last one written. */
#include "ratio.h"

#include "place.h"

#include <umem.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <thread>

namespace bench {
namespace {

using Time = std::chrono::microseconds;

/* A context of any number of bytes; a copy from it or to it takes a fixed time, and moves
 * nothing. */
struct Slow {
  umemVirtual super;
  umemHost host;
  Time read, write;
};

void slow_copy_to(umemVirtual *ctx, std::uintptr_t, umemVirtual *, std::uintptr_t, std::size_t) {
  std::this_thread::sleep_for(reinterpret_cast<Slow *>(ctx)->read);
}
void slow_copy_from(umemVirtual *ctx, std::uintptr_t, umemVirtual *, std::uintptr_t, std::size_t) {
  std::this_thread::sleep_for(reinterpret_cast<Slow *>(ctx)->write);
}

class Legs {
public:
  Legs(Time read, Time work, Time write) : slow_(), work_(work) {
    vtbl_.dtor = umemVirtual_dtor;
    vtbl_.copy_to = slow_copy_to;
    vtbl_.copy_from = slow_copy_from;
    check(umemHost_ctor(&slow_.host));
    umemVirtual_ctor(&slow_.super, &slow_.host);
    slow_.super.vptr = &vtbl_;
    slow_.super.capabilities |= umemConcurrent;
    slow_.read = read;
    slow_.write = write;
  }
  Legs(Legs const &) = delete;
  Legs &operator=(Legs const &) = delete;
  ~Legs() {
    umem_dtor(&slow_);
    umem_dtor(&slow_.host);
  }

  /* One block after the other passes. */
  void pass(std::size_t count) {
    umemBlocksOptions options = UMEM_BLOCKS_OPTIONS_INIT;
    options.source = {&slow_, 1 << 20, row, 0};
    if (slow_.write.count()) options.destination = {&slow_, 1 << 30, row, 0};
    options.count = count;
    options.rows = 1;
    options.place = &slow_.host;
    umemBlocks blocks;
    umemBlock block = UMEM_BLOCK_INIT;
    check(umemBlocks_ctor(&blocks, &options));
    while (umemBlocks_next(&blocks, &block)) std::this_thread::sleep_for(work_);
    check(umemBlocks_end(&blocks));
  }

  /* The slowest leg of so many blocks alone. */
  void slowest(std::size_t count) const {
    Time time = std::max({slow_.read, work_, slow_.write});
    for (std::size_t i = 0; i < count; i++) std::this_thread::sleep_for(time);
  }

private:
  static constexpr std::size_t row = 4096;
  umemVtbl vtbl_{};
  Slow slow_;
  Time work_;
};

void add(Effort const &effort, std::vector<Ratio> &rows, std::string const &operation, Time read,
         Time work, Time write) {
  constexpr std::size_t count = 32;
  Legs legs(read, work, write);
  Samples samples =
      alternate(effort.long_rounds, {[&] { return seconds_of([&] { legs.pass(count); }); },
                                     [&] { return seconds_of([&] { legs.slowest(count); }); }});
  rows.push_back({"32 blocks: " + operation, "the slowest leg", Measure::speedup, 0.9, samples[0],
                  samples[1], 0});
}

} // namespace

void measure_overlap(Effort const &effort, std::vector<Ratio> &rows) {
  using namespace std::chrono_literals;
  add(effort, rows, "read, work, write 5 ms each", 5ms, 5ms, 5ms);
  add(effort, rows, "read 5 ms, work 3 ms", 5ms, 3ms, 0ms);
  add(effort, rows, "read 3 ms, work 5 ms", 3ms, 5ms, 0ms);
  add(effort, rows, "read 2 ms, work 2 ms, write 5 ms", 2ms, 2ms, 5ms);
}

} // namespace bench
