/* ratio_strided.cpp - parts of arrays, in any order, between RAM, files and mapped files.
 *
 * Each pattern copies items of a large array to another one. A row compares a copy between two places with the
 * same copy from RAM to RAM; that one is compared with a loop over pointers, and a large one with a small one. */
#include "ratio.h"

#include "place.h"
#include "sections.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <string>

namespace bench {
namespace {

/* What umem promises, compared with RAM. */
constexpr double mapped_target = 1.5, file_target = 3, loop_target = 1, growth_target = 1.3;

struct Side {
  Place place;
  Block block;

  Side(char const *name, std::size_t size) : place(row_named(name)), block(place.context(), size) {}
};

/* Repeats until it takes long enough for the clock. */
int repeats_of(std::size_t items) {
  return items < 100'000 ? static_cast<int>(100'000 / items) + 1 : 1;
}

Timed timed_umem(Side const &from, Side const &to, Section const &section) {
  return [&] {
    int repeats = repeats_of(section.count());
    umemLayout layout = section.layout();
    double seconds = seconds_of([&] {
      for (int i = 0; i < repeats; i++)
        check(umem_copy_strided(from.place.context(), from.block + section.src_first,
                                to.place.context(), to.block + section.dst_first, &layout));
    });
    return seconds / static_cast<double>(repeats);
  };
}

/* What a program does that has pointers to both sides. */
Timed timed_loops(Side const &from, Side const &to, Section const &section) {
  return [&] {
    int repeats = repeats_of(section.count());
    auto *src = reinterpret_cast<char const *>(from.block + section.src_first);
    auto *dst = reinterpret_cast<char *>(to.block + section.dst_first);
    double seconds = seconds_of([&] {
      for (int i = 0; i < repeats; i++) {
        section.copy_by_hand(src, dst);
        use(dst);
      }
    });
    return seconds / static_cast<double>(repeats);
  };
}

std::string name_of(Section const &section, char const *from, char const *to) {
  return "strided: " + section.name + ", " + from + " to " + to;
}

double target_of(std::string const &from, std::string const &to) {
  return from == "file" || to == "file" ? file_target : mapped_target;
}

std::vector<double> per_item(std::vector<double> seconds, Section const &section) {
  for (double &value : seconds) value /= static_cast<double>(section.count());
  return seconds;
}

/* All pairs of places for one pattern. Returns what RAM to RAM took, for one item. */
std::vector<double> measure_section(Section const &section, int rounds, std::vector<Ratio> &rows) {
  static char const *const places[] = {"host", "mmap", "file"};
  std::vector<std::unique_ptr<Side>> sources, targets;
  for (char const *name : places) {
    sources.push_back(std::make_unique<Side>(name, section.src_size));
    targets.push_back(std::make_unique<Side>(name, section.dst_size));
  }
  std::vector<Timed> candidates = {timed_loops(*sources[0], *targets[0], section)};
  for (auto const &from : sources)
    for (auto const &to : targets) candidates.push_back(timed_umem(*from, *to, section));
  Samples samples = alternate(rounds, candidates);
  rows.push_back({name_of(section, "host", "host"), "loops over pointers", Measure::slowdown,
                  loop_target, samples[1], samples[0], section.bytes()});
  for (std::size_t i = 1; i < 9; i++) {
    char const *from = places[i / 3], *to = places[i % 3];
    rows.push_back({name_of(section, from, to), "umem, host to host", Measure::slowdown,
                    target_of(from, to), samples[i + 1], samples[1], section.bytes()});
  }
  return per_item(samples[1], section);
}

} // namespace

void measure_strided(Effort const &effort, std::vector<Ratio> &rows) {
  constexpr std::size_t small = 128, middle = 1024;
  std::vector<std::size_t> edges = {small, middle};
  if (effort.sizes.back() >= (std::size_t{1} << 30)) edges.insert(edges.end(), {4096, 8192});
  std::vector<std::vector<double>> of_middle;
  for (std::size_t edge : edges) {
    std::vector<Section> sections = all_sections(edge);
    for (std::size_t i = 0; i < sections.size(); i++) {
      int rounds = edge <= middle ? effort.short_rounds : effort.long_rounds / 3;
      std::vector<double> items = measure_section(sections[i], rounds, rows);
      if (edge == middle) of_middle.push_back(items);
      if (edge <= middle) continue;
      std::size_t count = std::min(items.size(), of_middle[i].size());
      items.resize(count);
      rows.push_back(
          {"strided: " + sections[i].name + ", host to host, an item",
           "the same, " + std::to_string(middle) + "^2", Measure::slowdown, growth_target, items,
           std::vector<double>(of_middle[i].begin(),
                               of_middle[i].begin() + static_cast<std::ptrdiff_t>(count))});
    }
  }
}

} // namespace bench
