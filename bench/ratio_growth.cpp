/* ratio_growth.cpp - what one allocation of a file range costs as the live blocks become many. */
#include "ratio.h"

#include "heaps.h"
#include "patterns.h"

#include <unistd.h>

namespace bench {
namespace {

constexpr std::size_t few = 1'000, many = 1'000'000;
constexpr std::size_t steps_per_round = 100'000;

/* A file with holes for many blocks, so that allocation is bookkeeping alone. */
class SparseFile {
public:
  SparseFile() {
    constexpr off_t length = 2 * many * mixed_most;
    check_system(truncate(file_.path(), length) == 0, "truncate");
    check(umemFile_ctor(&context_, file_.path(), "r+"));
  }
  SparseFile(SparseFile const &) = delete;
  SparseFile &operator=(SparseFile const &) = delete;
  ~SparseFile() { umem_dtor(&context_); }
  void *context() { return &context_; }

private:
  TempFile file_;
  umemFile context_;
};

/* Replaces random blocks of so many by others of random sizes, a part of the steps in each
 * round. */
class CudartState {
public:
  explicit CudartState(std::size_t blocks)
      : steps_(mixed_steps(16 * steps_per_round, blocks)),
        live_({file_.context()}, blocks, steps_) {}

  double replace() {
    double seconds = seconds_of([&] {
      for (std::size_t i = 0; i < steps_per_round; i++) live_.take(steps_[next_++ % steps_.size()]);
    });
    check(umem_get_status(file_.context()));
    return seconds;
  }

private:
  SparseFile file_;
  std::vector<Step> steps_;
  Live<Umem> live_;
  std::size_t next_ = 0;
};

} // namespace

void measure_growth(Effort const &effort, std::vector<Ratio> &rows) {
  CudartState large(many), small(few);
  Samples samples = alternate(effort.short_rounds,
                              {[&] { return large.replace(); }, [&] { return small.replace(); }});
  rows.push_back({"file alloc+free, 8-4096 B mixed, 1e6 live", "the same, 1e3 live",
                  Measure::slowdown, 8, samples[0], samples[1]});
}

} // namespace bench
