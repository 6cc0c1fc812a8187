#include "ratio_gpu.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace bench {
namespace {

constexpr double shortest_round = 2e-3; /* seconds: the clock and its calls do not count then */
constexpr double most_repeats = 1e4;
constexpr double fewest_rounds = 5, most_rounds = 31;

double limited(double value, double least, double most) {
  return std::min(std::max(value, least), most);
}

Timed repeated(Work const &work, int repeats) {
  return [&work, repeats] {
    double seconds = seconds_of([&] {
      for (int i = 0; i < repeats; i++) work();
    });
    return seconds / repeats;
  };
}

} // namespace

void add_row(Effort const &effort, std::vector<Ratio> &rows, Ratio row, Work const &ours,
             Work const &theirs) {
  ours(), theirs(); /* what is made at the first use is not measured */
  double our_seconds = seconds_of(ours), their_seconds = seconds_of(theirs);
  double shorter = std::max(std::min(our_seconds, their_seconds), 1e-9);
  double repeats = limited(std::ceil(shortest_round / shorter), 1, most_repeats);
  double round = (our_seconds + their_seconds) * repeats;
  double rounds = limited(effort.gpu_seconds / round, fewest_rounds, most_rounds);
  Samples samples =
      alternate(static_cast<int>(rounds), {repeated(ours, static_cast<int>(repeats)),
                                           repeated(theirs, static_cast<int>(repeats))});
  add_row(rows, std::move(row), samples[0], samples[1]);
}

void add_row(std::vector<Ratio> &rows, Ratio row, std::vector<double> const &ours,
             std::vector<double> const &theirs) {
  row.ours = ours;
  row.theirs = theirs;
  rows.push_back(std::move(row));
}

std::vector<std::size_t> wanted(Effort const &effort, std::vector<std::size_t> sizes) {
  std::size_t most = effort.sizes.empty() ? 0 : effort.sizes.back();
  sizes.erase(std::remove_if(sizes.begin(), sizes.end(), [=](auto size) { return size > most; }),
              sizes.end());
  return sizes;
}

} // namespace bench
