/* ratio_strided.cpp - parts of arrays, in any order, between RAM, files and mapped files.
 *
 * Each pattern copies items of a large array to another one. A row compares a copy between two
 * places with the same copy from RAM to RAM; that one is compared with a loop over pointers, and a
 * large one with a small one. With a GPU, device memory and pinned memory are places too. */
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
constexpr double mapped_target = 1.5, file_target = 3, growth_target = 1.3;
constexpr std::size_t promised_from = std::size_t{1} << 20; /* bytes of an array */
constexpr std::size_t files_end = 3;                        /* places that no GPU needs */

std::vector<char const *> all_places() {
  std::vector<char const *> places = {"host", "mmap", "file"};
  if (why_no_gpu().empty()) places.insert(places.end(), {"cuda", "cuda-host"});
  umem_thread_clear();
  return places;
}

std::vector<char const *> const &places() {
  static std::vector<char const *> const names = all_places();
  return names;
}

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

/* A call for a few items costs some system calls in files, and a start of the copy engine on a GPU,
 * whatever it copies: umem promises nothing there. */
std::optional<double> target_of(Section const &section, std::string const &from,
                                std::string const &to) {
  if (section.src_size < promised_from && section.dst_size < promised_from) return std::nullopt;
  if (from.rfind("cuda", 0) == 0 || to.rfind("cuda", 0) == 0) return std::nullopt;
  return from == "file" || to == "file" ? file_target : mapped_target;
}

std::vector<double> per_item(std::vector<double> seconds, Section const &section) {
  for (double &value : seconds) value /= static_cast<double>(section.count());
  return seconds;
}

/* Seconds of each pair of places, in the order of the loops below; the first is host to host. */
Samples measure_section(Section const &section, int rounds, std::vector<Ratio> &rows) {
  std::vector<std::unique_ptr<Side>> sources, targets;
  for (char const *name : places()) {
    sources.push_back(std::make_unique<Side>(name, section.src_size));
    targets.push_back(std::make_unique<Side>(name, section.dst_size));
  }
  std::vector<Timed> candidates;
  for (auto const &from : sources)
    for (auto const &to : targets) candidates.push_back(timed_umem(*from, *to, section));
  candidates.push_back(timed_loops(*sources[0], *targets[0], section));
  Samples samples = alternate(rounds, candidates);
  rows.push_back({name_of(section, "host", "host"), "loops over pointers", Measure::slowdown,
                  std::nullopt, samples[0], samples.back(), section.bytes()});
  std::size_t count = places().size();
  for (std::size_t i = 1; i < count * count; i++) {
    char const *from = places()[i / count], *to = places()[i % count];
    rows.push_back({name_of(section, from, to), "umem, host to host", Measure::slowdown,
                    target_of(section, from, to), samples[i], samples[0], section.bytes()});
  }
  return samples;
}

/* Adds the row of one pair of places, of which seconds are those of an item. */
void add_growth_row(std::string const &name, std::string const &against, std::vector<double> ours,
                    std::vector<double> theirs, std::vector<Ratio> &rows) {
  std::size_t rounds = std::min(ours.size(), theirs.size());
  ours.resize(rounds), theirs.resize(rounds);
  rows.push_back({name, against, Measure::slowdown, growth_target, ours, theirs});
}

/* What an item costs in a large array, compared with a small one, where the order of the items
 * changes: a plain loop would miss the cache or the TLB for each. The cache of the processor has
 * the small array and not the large one, in RAM too. So the second row of files compares their
 * growth with that of RAM. */
void add_growth(Section const &large, Samples const &large_samples, Section const &small,
                Samples const &small_samples, std::vector<Ratio> &rows) {
  if (large.name.rfind("transposed", 0) && large.name.rfind("permuted", 0)) return;
  double ram = quantile(per_item(large_samples[0], large), 0.5) /
               quantile(per_item(small_samples[0], small), 0.5);
  for (std::size_t i = 0; i < files_end; i++) {
    std::size_t pair = i * (places().size() + 1);
    std::string name = name_of(large, places()[i], places()[i]) + ", an item";
    std::vector<double> ours = per_item(large_samples[pair], large);
    std::vector<double> theirs = per_item(small_samples[pair], small);
    add_growth_row(name, "an item of " + small.name, ours, theirs, rows);
    if (i == 0) continue;
    for (double &value : theirs) value *= ram;
    add_growth_row(name, "the same, times the growth in RAM", ours, theirs, rows);
  }
}

} // namespace

void measure_strided(Effort const &effort, std::vector<Ratio> &rows) {
  std::vector<std::size_t> edges = {128, 1024};
  if (effort.sizes.back() >= (std::size_t{1} << 30)) edges.insert(edges.end(), {4096, 8192});
  std::vector<Section> middle = all_sections(edges[1]);
  std::vector<Samples> of_middle;
  for (std::size_t edge : edges) {
    std::vector<Section> sections = all_sections(edge);
    int rounds = edge <= edges[1] ? effort.long_rounds : std::max(1, effort.long_rounds / 3);
    for (std::size_t i = 0; i < sections.size(); i++) {
      Samples samples = measure_section(sections[i], rounds, rows);
      if (edge > edges[1]) add_growth(sections[i], samples, middle[i], of_middle[i], rows);
      if (edge == edges[1]) of_middle.push_back(std::move(samples));
    }
  }
  measure_strided_cold(effort, rows);
}

} // namespace bench
