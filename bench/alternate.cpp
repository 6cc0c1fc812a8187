#include "alternate.h"

#include <algorithm>
#include <cstddef>

namespace bench {

Samples alternate(int rounds, std::vector<Timed> const &candidates) {
  Samples samples(candidates.size());
  for (int round = rounds > 1 ? -1 : 0; round < rounds; round++) {
    for (std::size_t k = 0; k < candidates.size(); k++) {
      std::size_t i = (k + static_cast<std::size_t>(round + 1)) % candidates.size();
      double seconds = candidates[i]();
      if (round >= 0) samples[i].push_back(seconds);
    }
  }
  return samples;
}

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  double place = q * static_cast<double>(values.size() - 1);
  auto below = static_cast<std::size_t>(place);
  auto above = std::min(below + 1, values.size() - 1);
  double part = place - static_cast<double>(below);
  return values[below] + part * (values[above] - values[below]);
}

} // namespace bench
