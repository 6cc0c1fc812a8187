/* ratio_pool.cpp - a pool over RAM beside malloc: one thread, many, blocks freed by another thread, and
 * what an operation costs as the live blocks become many. */
#include "ratio.h"

#include "heaps.h"

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

namespace bench {
namespace {

constexpr std::size_t steps_per_round = 400'000;
constexpr std::size_t few = 1'000, many = 1'000'000;
constexpr unsigned thread_count = 16;
constexpr std::size_t passed_per_round = 400'000, ring_size = 1024;

class Pool {
public:
  Pool() {
    check(umemHost_ctor(&host_));
    check(umemPool_ctor(&pool_, &host_, nullptr));
  }
  Pool(Pool const &) = delete;
  Pool &operator=(Pool const &) = delete;
  ~Pool() {
    umem_dtor(&pool_);
    umem_dtor(&host_);
  }
  Umem heap() { return {&pool_}; }

private:
  umemHost host_;
  umemPool pool_;
};

/* ---- one thread ---- */

/* Replaces random blocks of so many by others of random sizes. */
template <typename Heap> class Mixed {
public:
  Mixed(Heap heap, std::size_t blocks)
      : steps_(mixed_steps(4 * steps_per_round, blocks)), live_(heap, blocks, steps_) {}

  double replace() {
    return seconds_of([&] {
      for (std::size_t i = 0; i < steps_per_round; i++) live_.take(steps_[next_++ % steps_.size()]);
    });
  }

private:
  std::vector<Step> steps_;
  Live<Heap> live_;
  std::size_t next_ = 0;
};

/* ---- many threads ---- */

/* Lets threads go all at once. */
class Gate {
public:
  void open() {
    std::lock_guard<std::mutex> lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void pass() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return open_; });
  }

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

/* Each thread replaces blocks of its own. */
template <typename Heap> double time_threads(Heap heap, std::vector<Step> const &steps) {
  Gate gate;
  std::vector<std::unique_ptr<Live<Heap>>> live;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < thread_count; i++)
    live.push_back(std::make_unique<Live<Heap>>(heap, mixed_live / thread_count, steps));
  for (unsigned i = 0; i < thread_count; i++)
    threads.emplace_back([&, i] {
      gate.pass();
      for (Step step : steps) {
        step.slot %= mixed_live / thread_count;
        live[i]->take(step);
      }
    });
  return seconds_of([&] {
    gate.open();
    for (std::thread &thread : threads) thread.join();
  });
}

/* ---- freed by another thread ---- */

/* Addresses on their way from one thread to another. */
class Ring {
public:
  void put(std::uintptr_t address) {
    std::size_t at = put_.load(std::memory_order_relaxed);
    while (at - taken_.load(std::memory_order_acquire) == ring_size) std::this_thread::yield();
    addresses_[at % ring_size] = address;
    put_.store(at + 1, std::memory_order_release);
  }
  std::uintptr_t take() {
    std::size_t at = taken_.load(std::memory_order_relaxed);
    while (put_.load(std::memory_order_acquire) == at) std::this_thread::yield();
    std::uintptr_t address = addresses_[at % ring_size];
    taken_.store(at + 1, std::memory_order_release);
    return address;
  }

private:
  std::uintptr_t addresses_[ring_size];
  alignas(64) std::atomic<std::size_t> put_{0};
  alignas(64) std::atomic<std::size_t> taken_{0};
};

template <typename Heap> double time_passing(Heap heap, std::vector<Step> const &steps) {
  auto ring = std::make_unique<Ring>();
  return seconds_of([&] {
    std::thread other([&] {
      for (std::size_t i = 0; i < passed_per_round; i++) heap.free(ring->take());
    });
    for (std::size_t i = 0; i < passed_per_round; i++)
      ring->put(heap.alloc(steps[i % steps.size()].size));
    other.join();
  });
}

} // namespace

void measure_pool(Effort const &effort, std::vector<Ratio> &rows) {
  Pool pool;
  Umem ours = pool.heap();
  Malloc theirs;
  {
    Mixed<Umem> mine(ours, mixed_live);
    Mixed<Malloc> other(theirs, mixed_live);
    Samples mixed = alternate(effort.short_rounds,
                              {[&] { return mine.replace(); }, [&] { return other.replace(); }});
    rows.push_back({"pool(host) alloc+free, 8-4096 B mixed, 4096 live", "malloc+free",
                    Measure::slowdown, 0.7, mixed[0], mixed[1]});
  }
  std::vector<Step> steps = mixed_steps(steps_per_round / 4, mixed_live);
  Samples threads = alternate(effort.long_rounds, {[&] { return time_threads(ours, steps); },
                                                   [&] { return time_threads(theirs, steps); }});
  rows.push_back({"the same, " + std::to_string(thread_count) + " threads", "malloc+free",
                  Measure::slowdown, 0.8, threads[0], threads[1]});

  Samples passing = alternate(effort.long_rounds, {[&] { return time_passing(ours, steps); },
                                                   [&] { return time_passing(theirs, steps); }});
  rows.push_back({"the same, freed by another thread", "malloc+free", Measure::slowdown, 1.2,
                  passing[0], passing[1]});

  Mixed<Umem> large(ours, many), small(ours, few);
  Mixed<Malloc> malloc_large(theirs, many);
  Samples growth = alternate(effort.short_rounds,
                             {[&] { return large.replace(); }, [&] { return small.replace(); },
                              [&] { return malloc_large.replace(); }});
  rows.push_back({"pool(host) alloc+free, mixed, 1e6 live", "the same, 1e3 live", Measure::slowdown,
                  8, growth[0], growth[1]});
  rows.push_back({"pool(host) alloc+free, mixed, 1e6 live", "malloc+free, 1e6 live",
                  Measure::slowdown, std::nullopt, growth[0], growth[2]});
}

} // namespace bench
