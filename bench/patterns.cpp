#include "patterns.h"

#include <cmath>
#include <functional>
#include <queue>
#include <utility>

namespace bench {
namespace {

constexpr double longest_life = 1e4; /* in allocations */

double draw_logarithmic(std::mt19937_64 &random, double least, double most) {
  return std::exp(std::uniform_real_distribution<double>(std::log(least), std::log(most))(random));
}

} // namespace

std::size_t Sizes::draw(std::mt19937_64 &random) const {
  if (!logarithmic) return std::uniform_int_distribution<std::size_t>(least, most)(random);
  double size = draw_logarithmic(random, static_cast<double>(least), static_cast<double>(most));
  return std::min(std::max(static_cast<std::size_t>(size), least), most);
}

double Sizes::mean() const {
  auto low = static_cast<double>(least), high = static_cast<double>(most);
  return logarithmic && low < high ? (high - low) / std::log(high / low) : (low + high) / 2;
}

std::vector<Step> mixed_steps(std::size_t count, std::size_t live, Sizes const &sizes,
                              std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<std::size_t> slot(0, live - 1);
  std::vector<Step> steps(count);
  for (Step &step : steps) {
    step.slot = slot(random);
    step.size = sizes.draw(random);
  }
  return steps;
}

Lives random_lives(std::size_t allocations, Sizes const &sizes, std::size_t cap) {
  using Death = std::pair<double, std::size_t>; /* when, and which slot */
  std::priority_queue<Death, std::vector<Death>, std::greater<Death>> deaths;
  std::mt19937_64 random(1);
  std::vector<std::size_t> free_slots, size_of;
  std::size_t bytes = 0;
  Lives lives;
  auto end_next = [&] {
    std::size_t slot = deaths.top().second;
    deaths.pop();
    lives.events.push_back({slot, 0});
    bytes -= size_of[slot];
    free_slots.push_back(slot);
  };
  for (std::size_t i = 0; i < allocations; i++) {
    auto now = static_cast<double>(i);
    std::size_t size = sizes.draw(random);
    while (!deaths.empty() && (deaths.top().first <= now || bytes + size > cap)) end_next();
    if (free_slots.empty()) {
      free_slots.push_back(size_of.size());
      size_of.push_back(0);
    }
    std::size_t slot = free_slots.back();
    free_slots.pop_back();
    size_of[slot] = size;
    bytes += size;
    lives.events.push_back({slot, size});
    deaths.emplace(now + draw_logarithmic(random, 1, longest_life), slot);
  }
  while (!deaths.empty()) end_next();
  lives.slots = size_of.size();
  lives.allocations = allocations;
  return lives;
}

} // namespace bench
