/* ratio_growth.cpp - what one allocation of a file range costs as the live blocks become many. */
#include "ratio.h"

#include "place.h"

#include <random>
#include <stdexcept>

#include <unistd.h>

namespace bench {
namespace {

constexpr std::size_t few = 1'000, many = 1'000'000;
constexpr std::size_t least_size = 8, most_size = 4096;
constexpr std::size_t steps_per_round = 100'000;

/* A file with holes for many blocks, so that allocation is bookkeeping alone. */
class Books {
public:
  explicit Books(std::size_t blocks) : live_(blocks) {
    check_system(truncate(file_.path(), static_cast<off_t>(2 * many * most_size)) == 0, "truncate");
    check(umemFile_ctor(&context_, file_.path(), "r+"));
    for (std::uintptr_t &address : live_) address = umem_alloc(&context_, size_(random_));
  }
  Books(Books const &) = delete;
  Books &operator=(Books const &) = delete;
  ~Books() { umem_dtor(&context_); }

  /* Replaces random blocks by others of random sizes. */
  double replace() {
    return seconds_of([&] {
      std::uniform_int_distribution<std::size_t> slot(0, live_.size() - 1);
      for (std::size_t i = 0; i < steps_per_round; i++) {
        std::uintptr_t &address = live_[slot(random_)];
        umem_free(&context_, address);
        address = umem_alloc(&context_, size_(random_));
      }
      check(umem_get_status(&context_));
    });
  }

private:
  TempFile file_;
  umemFile context_;
  std::mt19937_64 random_{1};
  std::uniform_int_distribution<std::size_t> size_{least_size, most_size};
  std::vector<std::uintptr_t> live_;
};

} // namespace

void measure_growth(Effort const &effort, std::vector<Ratio> &rows) {
  Books large(many), small(few);
  Samples samples = alternate(effort.short_rounds,
                              {[&] { return large.replace(); }, [&] { return small.replace(); }});
  rows.push_back({"file alloc+free, 8-4096 B mixed, 1e6 live", "the same, 1e3 live",
                  Measure::slowdown, 8, samples[0], samples[1]});
}

} // namespace bench
