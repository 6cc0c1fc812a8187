/* ratio_pool.cpp - a pool over RAM compared with malloc, and with the heaps of other libraries,
 * where they are installed: one size, mixed sizes, random lifetimes, many threads, blocks freed by
 * another thread; and what an operation costs as the live blocks become many. */
#include "ratio.h"

#include "heaps.h"
#include "patterns.h"

#include <functional>
#include <memory>
#include <utility>

namespace bench {
namespace {

constexpr std::size_t steps_per_round = 400'000;
constexpr std::size_t few = 1'000, many = 1'000'000;
constexpr std::size_t one_size = 256;
constexpr std::size_t thread_count = 16, steps_per_thread = 100'000;
constexpr std::size_t passed_per_round = 400'000, pair_count = 4;
constexpr Sizes life_sizes = {16, std::size_t{1} << 20, true};
constexpr std::size_t life_cap = std::size_t{64} << 20, lives_per_round = 100'000;

/* Seconds of each operation, where work does so many. */
template <typename Work> Timed per_operation(std::size_t operations, Work work) {
  return [=] { return seconds_of(work) / static_cast<double>(operations); };
}

template <typename Heap>
Timed replacing(Heap heap, std::size_t live, std::vector<Step> const &steps) {
  auto blocks = std::make_shared<Replacing<Heap>>(heap, live, steps);
  return per_operation(steps_per_round, [blocks] { blocks->take(steps_per_round); });
}

/* The pool, and what it is compared with. */
class Contest {
public:
  explicit Contest(std::vector<Ratio> &rows) : rows_(rows), others_(others()) {}

  /* Measures timed_for(heap), a Timed, of each heap. target: for malloc. For other libraries
   * nothing is promised. */
  template <typename TimedFor>
  void measure(std::string const &operation, int rounds, std::optional<double> target,
               TimedFor timed_for) {
    std::vector<Timed> candidates = {timed_for(pool_.heap()), timed_for(Malloc{})};
    for (Other const &other : others_) candidates.push_back(timed_for(other));
    Samples samples = alternate(rounds, candidates);
    pool_.finish();
    rows_.push_back({operation, "malloc+free", Measure::slowdown, target, samples[0], samples[1]});
    for (std::size_t i = 0; i < others_.size(); i++)
      rows_.push_back({operation, others_[i].name, Measure::slowdown, std::nullopt, samples[0],
                       samples[i + 2]});
  }

private:
  std::vector<Ratio> &rows_;
  std::vector<Other> others_;
  NamedPool pool_{"pool+host:"};
};

void measure_one_size(Effort const &effort, Contest &contest) {
  contest.measure("pool(host) alloc+free, 256 B, at once", effort.short_rounds, {}, [](auto heap) {
    return per_operation(steps_per_round, [heap] { take_pairs(heap, one_size, steps_per_round); });
  });
  std::vector<Step> steps = mixed_steps(4 * steps_per_round, few, {one_size, one_size});
  contest.measure("pool(host) alloc+free, 256 B, 1000 live", effort.short_rounds, {},
                  [&](auto heap) { return replacing(heap, few, steps); });
}

void measure_mixed(Effort const &effort, Contest &contest) {
  std::vector<Step> steps = mixed_steps(4 * steps_per_round, mixed_live);
  contest.measure("pool(host) alloc+free, 8-4096 B mixed, 4096 live", effort.short_rounds, 0.7,
                  [&](auto heap) { return replacing(heap, mixed_live, steps); });
}

void measure_threads(Effort const &effort, Contest &contest) {
  std::vector<Step> steps = mixed_steps(steps_per_thread, mixed_live);
  contest.measure("pool(host) alloc+free, 8-4096 B mixed, 16 threads", effort.long_rounds, 0.8,
                  [&](auto heap) -> Timed {
                    return [&steps, heap] {
                      return time_threads(heap, thread_count, steps, mixed_live / thread_count) /
                             (thread_count * steps_per_thread);
                    };
                  });
  contest.measure("pool(host) 8-4096 B mixed, freed by another thread", effort.long_rounds, 1.2,
                  [&](auto heap) {
                    return per_operation(passed_per_round, [&steps, heap] {
                      pass_blocks(heap, 1, passed_per_round, steps, false);
                    });
                  });
  contest.measure("pool(host) 8-4096 B mixed, 4 pairs of threads", effort.long_rounds, {},
                  [&](auto heap) {
                    return per_operation(passed_per_round, [&steps, heap] {
                      pass_blocks(heap, pair_count, passed_per_round / pair_count, steps, true);
                    });
                  });
}

void measure_lives(Effort const &effort, Contest &contest) {
  Lives lives = random_lives(lives_per_round, life_sizes, life_cap);
  contest.measure(
      "pool(host) lifetimes, 16 B-1 MiB, up to 64 MiB", effort.long_rounds, {}, [&](auto heap) {
        return per_operation(lives_per_round, [&lives, heap] { play_lives(heap, lives, true); });
      });
}

/* In a pool of its own, and not compared with other libraries: each would hold 2 GiB. */
void measure_million(Effort const &effort, std::vector<Ratio> &rows) {
  NamedPool pool("pool+host:");
  std::vector<Step> steps = mixed_steps(4 * steps_per_round, many),
                    few_steps = mixed_steps(4 * steps_per_round, few);
  Samples growth = alternate(effort.short_rounds, {replacing(pool.heap(), many, steps),
                                                   replacing(pool.heap(), few, few_steps),
                                                   replacing(Malloc{}, many, steps)});
  pool.finish();
  rows.push_back({"pool(host) alloc+free, mixed, 1e6 live", "the same, 1e3 live", Measure::slowdown,
                  8, growth[0], growth[1]});
  rows.push_back({"pool(host) alloc+free, mixed, 1e6 live", "malloc+free, 1e6 live",
                  Measure::slowdown, std::nullopt, growth[0], growth[2]});
}

} // namespace

void measure_pool(Effort const &effort, std::vector<Ratio> &rows) {
  {
    Contest contest(rows);
    measure_one_size(effort, contest);
    measure_mixed(effort, contest);
    measure_threads(effort, contest);
    measure_lives(effort, contest);
  }
  measure_million(effort, rows);
}

} // namespace bench
