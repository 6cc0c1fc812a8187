/* patterns.h - what programs do with a heap, the same work for each: blocks replaced by others,
 * blocks with lifetimes, blocks replaced by many threads, blocks that one thread allocates and
 * another frees.
 *
 * The random steps are drawn before, from one seed. Nothing is written to the blocks, unless
 * touched. */
#ifndef UMEM_BENCH_PATTERNS_H
#define UMEM_BENCH_PATTERNS_H

#include "alternate.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace bench {

/* Sizes of blocks in bytes. */
struct Sizes {
  std::size_t least, most;
  bool logarithmic = false; /* as many of each power of two; otherwise of each size */

  std::size_t draw(std::mt19937_64 &random) const;
  double mean() const;
};

/* Mixed allocation: a block of a random size replaces a random one of the live blocks. */
constexpr std::size_t mixed_live = 4096, mixed_least = 8, mixed_most = 4096;

struct Step {
  std::size_t slot, size;
};

std::vector<Step> mixed_steps(std::size_t count, std::size_t live,
                              Sizes const &sizes = {mixed_least, mixed_most},
                              std::uint64_t seed = 1);

/* The first byte of a block, as the CPU uses it. */
inline void write_to(std::uintptr_t address) { *reinterpret_cast<char volatile *>(address) = 1; }
inline void read_from(std::uintptr_t address) {
  use(static_cast<char>(*reinterpret_cast<char volatile *>(address)));
}

/* One small block again and again. */
template <typename Heap> void take_pairs(Heap heap, std::size_t size, std::size_t count) {
  for (std::size_t i = 0; i < count; i++) {
    std::uintptr_t address = heap.alloc(size);
    use(address);
    heap.free(address, size);
  }
}

/* Blocks of a heap by number. What is kept of each is small: with many blocks it is not in the
 * cache. */
template <typename Heap> class Slots {
public:
  Slots(Heap heap, std::size_t count)
      : heap_(heap), addresses_(count), sizes_(Heap::wants_sizes ? count : 0) {}

  std::uintptr_t alloc(std::size_t slot, std::size_t size) {
    if constexpr (Heap::wants_sizes) sizes_[slot] = size;
    return addresses_[slot] = heap_.alloc(size);
  }
  void free(std::size_t slot) {
    if constexpr (Heap::wants_sizes)
      heap_.free(addresses_[slot], sizes_[slot]);
    else
      heap_.free(addresses_[slot], 0);
  }
  std::size_t count() const { return addresses_.size(); }

private:
  Heap heap_;
  std::vector<std::uintptr_t> addresses_;
  std::vector<std::size_t> sizes_;
};

/* The live blocks of a heap. */
template <typename Heap> class Live {
public:
  Live(Heap heap, std::size_t count, std::vector<Step> const &steps) : blocks_(heap, count) {
    for (std::size_t i = 0; i < count; i++) blocks_.alloc(i, steps[i % steps.size()].size);
  }
  Live(Live const &) = delete;
  Live &operator=(Live const &) = delete;
  ~Live() {
    for (std::size_t i = 0; i < blocks_.count(); i++) blocks_.free(i);
  }

  void take(Step const &step) {
    blocks_.free(step.slot);
    blocks_.alloc(step.slot, step.size);
  }

private:
  Slots<Heap> blocks_;
};

/* Replaces live blocks, going on in the steps, which must outlive it, from call to call. */
template <typename Heap> class Replacing {
public:
  Replacing(Heap heap, std::size_t blocks, std::vector<Step> const &steps)
      : steps_(steps), live_(heap, blocks, steps) {}

  void take(std::size_t count) {
    for (std::size_t i = 0; i < count; i++) {
      live_.take(steps_[next_++]);
      if (next_ == steps_.size()) next_ = 0;
    }
  }

private:
  std::vector<Step> const &steps_;
  Live<Heap> live_;
  std::size_t next_ = 0;
};

/* ---- random lifetimes ---- */

/* Blocks that come and go. */
struct Lives {
  struct Event {
    std::size_t slot, size; /* size 0: the block of this slot is freed */
  };
  std::vector<Event> events; /* at the end all are freed */
  std::size_t slots = 0;     /* live at once, at most */
  std::size_t allocations = 0;
};

/* Random sizes, and lifetimes of 1 to 10000 allocations, as many of each power of two. No more than
 * cap bytes live at once: those that would be the next to go, go first. */
Lives random_lives(std::size_t allocations, Sizes const &sizes, std::size_t cap);

/* touched: the first byte of each block is written. */
template <typename Heap> void play_lives(Heap heap, Lives const &lives, bool touched) {
  Slots<Heap> blocks(heap, lives.slots);
  for (Lives::Event const &event : lives.events) {
    if (event.size) {
      std::uintptr_t address = blocks.alloc(event.slot, event.size);
      if (touched) write_to(address);
    } else {
      blocks.free(event.slot);
    }
  }
}

/* ---- many threads ---- */

/* Seconds that so many threads take who each replace blocks of their own. */
template <typename Heap>
double time_threads(Heap heap, std::size_t thread_count, std::vector<Step> const &steps,
                    std::size_t live_each) {
  std::atomic<bool> open{false};
  std::vector<std::unique_ptr<Live<Heap>>> live;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < thread_count; i++)
    live.push_back(std::make_unique<Live<Heap>>(heap, live_each, steps));
  for (std::size_t i = 0; i < thread_count; i++)
    threads.emplace_back([&, i] {
      while (!open.load(std::memory_order_acquire)) std::this_thread::yield();
      for (Step step : steps) {
        step.slot %= live_each;
        live[i]->take(step);
      }
    });
  return seconds_of([&] {
    open.store(true, std::memory_order_release);
    for (std::thread &thread : threads) thread.join();
  });
}

struct Held {
  std::uintptr_t address = 0;
  std::size_t size = 0;
};

/* Blocks on their way from one thread to another. */
class Ring {
public:
  void put(Held held) {
    std::size_t at = put_.load(std::memory_order_relaxed);
    while (at - taken_.load(std::memory_order_acquire) == size) std::this_thread::yield();
    blocks_[at % size] = held;
    put_.store(at + 1, std::memory_order_release);
  }
  Held take() {
    std::size_t at = taken_.load(std::memory_order_relaxed);
    while (put_.load(std::memory_order_acquire) == at) std::this_thread::yield();
    Held held = blocks_[at % size];
    taken_.store(at + 1, std::memory_order_release);
    return held;
  }

private:
  static constexpr std::size_t size = 1024;
  Held blocks_[size];
  alignas(64) std::atomic<std::size_t> put_{0};
  alignas(64) std::atomic<std::size_t> taken_{0};
};

/* Pairs of threads: one of each allocates count blocks, the other frees them. touched: the first
 * writes the first byte of each block and the other reads it. */
template <typename Heap>
void pass_blocks(Heap heap, std::size_t pairs, std::size_t count, std::vector<Step> const &steps,
                 bool touched) {
  std::vector<std::unique_ptr<Ring>> rings;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < pairs; i++) rings.push_back(std::make_unique<Ring>());
  for (std::unique_ptr<Ring> const &ring : rings) {
    threads.emplace_back([&heap, &steps, &ring = *ring, count, touched] {
      for (std::size_t i = 0; i < count; i++) {
        std::size_t size = steps[i % steps.size()].size;
        Held held{heap.alloc(size), size};
        if (touched) write_to(held.address);
        ring.put(held);
      }
    });
    threads.emplace_back([&heap, &ring = *ring, count, touched] {
      for (std::size_t i = 0; i < count; i++) {
        Held held = ring.take();
        if (touched) read_from(held.address);
        heap.free(held.address, held.size);
      }
    });
  }
  for (std::thread &thread : threads) thread.join();
}

} // namespace bench

#endif
