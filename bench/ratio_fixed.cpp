/* ratio_fixed.cpp - blocks of one size from umemFixed beside the same blocks from a pool: why umem
 * has both. Over RAM, and over the device of the tests, whose memory no CPU reads. */
#include "ratio.h"

#include "heaps.h"
#include "patterns.h"

#include <memory>
#include <utility>

namespace bench {
namespace {

constexpr std::size_t block = 800;
constexpr std::size_t steps_per_round = 400'000, many_steps = 200'000;
constexpr std::size_t few = 1'000, many = 1'000'000;
constexpr std::size_t thread_count = 16, steps_per_thread = 50'000, live_per_thread = 64;
constexpr std::size_t passed_per_round = 200'000, pair_count = 4;

/* Both over one context of the table. */
class Rivals {
public:
  explicit Rivals(char const *name) : name_(name), upstream_(row_named(name)) {
    check(umemFixed_ctor(&fixed_, upstream_.context(), block, nullptr));
    check(umemPool_ctor(&pool_, upstream_.context(), nullptr));
  }
  Rivals(Rivals const &) = delete;
  Rivals &operator=(Rivals const &) = delete;
  ~Rivals() {
    umem_dtor(&pool_);
    umem_dtor(&fixed_);
  }

  /* Measures timed_for(heap), a Timed, of both. */
  template <typename TimedFor>
  void measure(std::vector<Ratio> &rows, std::string const &what, int rounds, TimedFor timed_for) {
    Samples samples = alternate(rounds, {timed_for(Umem{&fixed_}), timed_for(Umem{&pool_})});
    check(umem_get_status(&fixed_));
    check(umem_get_status(&pool_));
    rows.push_back({"fixed(" + name_ + ") 800 B, " + what, "pool(" + name_ + ")", Measure::slowdown,
                    std::nullopt, samples[0], samples[1]});
  }

private:
  std::string name_;
  Place upstream_;
  umemFixed fixed_;
  umemPool pool_;
};

template <typename Work> Timed per_operation(std::size_t operations, Work work) {
  return [=] { return seconds_of(work) / static_cast<double>(operations); };
}

Timed replacing(Umem heap, std::size_t live, std::vector<Step> const &steps, std::size_t count) {
  auto blocks = std::make_shared<Replacing<Umem>>(heap, live, steps);
  return per_operation(count, [blocks, count] { blocks->take(count); });
}

void measure_one_thread(Effort const &effort, std::vector<Ratio> &rows, Rivals &rivals) {
  rivals.measure(rows, "at once", effort.short_rounds, [](Umem heap) {
    return per_operation(steps_per_round, [heap] { take_pairs(heap, block, steps_per_round); });
  });
  std::vector<Step> steps = mixed_steps(steps_per_round, few, {block, block});
  rivals.measure(rows, "1e3 live", effort.short_rounds,
                 [&](Umem heap) { return replacing(heap, few, steps, steps_per_round); });
  std::vector<Step> more_steps = mixed_steps(steps_per_round, many, {block, block});
  rivals.measure(rows, "1e6 live", effort.long_rounds,
                 [&](Umem heap) { return replacing(heap, many, more_steps, many_steps); });
}

void measure_threads(Effort const &effort, std::vector<Ratio> &rows, Rivals &rivals) {
  std::vector<Step> steps = mixed_steps(steps_per_thread, live_per_thread, {block, block});
  rivals.measure(rows, "16 threads", effort.long_rounds, [&](Umem heap) -> Timed {
    return [&steps, heap] {
      return time_threads(heap, thread_count, steps, live_per_thread) /
             (thread_count * steps_per_thread);
    };
  });
  rivals.measure(rows, "4 pairs of threads", effort.long_rounds, [&](Umem heap) {
    return per_operation(passed_per_round, [&steps, heap] {
      pass_blocks(heap, pair_count, passed_per_round / pair_count, steps, false);
    });
  });
}

} // namespace

void measure_fixed(Effort const &effort, std::vector<Ratio> &rows) {
  Rivals host("host"), device("fake");
  measure_one_thread(effort, rows, host);
  measure_threads(effort, rows, host);
  measure_one_thread(effort, rows, device);
}

} // namespace bench
