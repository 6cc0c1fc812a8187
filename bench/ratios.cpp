/* ratios.cpp - measures the ratios that umem promises, and prints them.
 *
 *     umem_ratios [--quick | --once] [--json FILE] [GROUP...]
 *
 * --quick: fewer rounds and smaller arrays. --once: one round on small arrays, to see that all of
 * it runs; the figures mean nothing.
 *
 * The groups are host, arrays, loops, files, npy, routes, ram, stage, growth, blocks, pool,
 * pool-sizes, fixed, log, strided, steps, typed, transfers, many, gpu, and gpu-file and gpu-pool
 * (also blocks of a stream), which are parts of gpu; without any, all are measured.
 *
 * Each row runs both things in turns, in this process. Exit status 0 when all could be measured,
 * met or not; 1 when something failed; 2 when GPUs alone were asked for, and there is none. */
#include "ratio.h"

#include "sizes.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <stdexcept>

namespace bench {

std::vector<double> Ratio::values() const {
  std::vector<double> values(ours.size());
  for (std::size_t i = 0; i < values.size(); i++)
    values[i] = measure == Measure::speedup       ? theirs[i] / ours[i]
                : measure == Measure::nanoseconds ? (ours[i] - theirs[i]) * 1e9
                                                  : ours[i] / theirs[i];
  return values;
}

bool Ratio::met() const {
  if (!target) return true;
  return measure == Measure::speedup ? median() >= *target : median() <= *target;
}

void add_best(std::vector<Ratio> &rows, Ratio row, Samples const &samples,
              std::vector<unsigned> const &counts) {
  std::size_t best = 1;
  for (std::size_t i = 2; i < samples.size(); i++)
    if (quantile(samples[i], 0.5) < quantile(samples[best], 0.5)) best = i;
  row.against += ", " + std::to_string(counts[best - 1]) + " threads (the best)";
  row.ours = samples[0];
  row.theirs = samples[best];
  rows.push_back(row);
}

namespace {

using Rows = std::vector<Ratio>;

constexpr Group cpu_groups[] = {
    {"host", measure_host},     {"arrays", measure_arrays}, {"loops", measure_indexed},
    {"files", measure_files},   {"npy", measure_npy},       {"routes", measure_routes},
    {"ram", measure_ram},       {"stage", measure_stage},   {"growth", measure_growth},
    {"blocks", measure_blocks}, {"pool", measure_pool},     {"pool-sizes", measure_pool_sizes},
    {"fixed", measure_fixed},   {"log", measure_log},       {"strided", measure_strided},
    {"steps", measure_steps},   {"typed", measure_typed},   {"transfers", measure_transfers},
    {"many", measure_many}};

constexpr std::size_t mebibyte = std::size_t{1} << 20;

Effort thorough() {
  return {31, 15, 256 * mebibyte, {64 * mebibyte, 256 * mebibyte, 1024 * mebibyte}, 1.0, 1'000'000};
}
Effort quick() { return {7, 5, 256 * mebibyte, {64 * mebibyte}, 0.1, 4096}; }
Effort once() { return {1, 1, 4 * mebibyte, {4 * mebibyte}, 0.01, 256}; }

/* A duration in the unit that suits it; memory as a factor. */
std::string sample_text(Ratio const &row, double seconds) {
  char text[32];
  if (row.measure == Measure::memory)
    std::snprintf(text, sizeof text, "%.3f", seconds);
  else if (seconds < 1e-6)
    std::snprintf(text, sizeof text, "%.1f ns", seconds * 1e9);
  else if (seconds < 1e-3)
    std::snprintf(text, sizeof text, "%.1f us", seconds * 1e6);
  else
    std::snprintf(text, sizeof text, "%.1f ms", seconds * 1e3);
  return text;
}

std::string value_text(Ratio const &row, double value) {
  char text[32];
  std::snprintf(text, sizeof text, row.measure == Measure::nanoseconds ? "%+.1f ns" : "%.2fx",
                value);
  return text;
}

std::string target_text(Ratio const &row) {
  if (!row.target) return "none";
  char text[32];
  std::snprintf(text, sizeof text,
                row.measure == Measure::slowdown  ? "<= %gx time"
                : row.measure == Measure::speedup ? ">= %gx fast"
                : row.measure == Measure::memory  ? "<= %gx mem"
                                                  : "<= +%g ns",
                *row.target);
  return text;
}

char const *met_text(Ratio const &row) { return !row.target ? "-" : row.met() ? "yes" : "NO"; }

/* GB/s of both sides; empty if the row has none. */
std::string speed_text(Ratio const &row) {
  if (!row.bytes) return "";
  char text[64];
  auto gigabytes = static_cast<double>(row.bytes) / 1e9;
  std::snprintf(text, sizeof text, " %8.4g %8.4g", gigabytes / quantile(row.ours, 0.5),
                gigabytes / quantile(row.theirs, 0.5));
  return text;
}

double least(std::vector<double> const &values) {
  return *std::min_element(values.begin(), values.end());
}

void print_head() {
  std::printf("%-52s %-30s %9s %17s %11s  %-3s  %9s %9s %9s %9s %6s %8s %8s\n", "operation",
              "against", "median", "10 to 90 %", "target", "met", "umem", "least", "other", "least",
              "rounds", "GB/s", "other");
}

void print_row(Ratio const &row) {
  std::vector<double> values = row.values();
  auto text = [&row](double sample) { return sample_text(row, sample); };
  std::string spread =
      value_text(row, quantile(values, 0.1)) + " " + value_text(row, quantile(values, 0.9));
  std::printf("%-52s %-30s %9s %17s %11s  %-3s  %9s %9s %9s %9s %6zu%s\n", row.operation.c_str(),
              row.against.c_str(), value_text(row, row.median()).c_str(), spread.c_str(),
              target_text(row).c_str(), met_text(row), text(quantile(row.ours, 0.5)).c_str(),
              text(least(row.ours)).c_str(), text(quantile(row.theirs, 0.5)).c_str(),
              text(least(row.theirs)).c_str(), values.size(), speed_text(row).c_str());
  std::fflush(stdout);
}

void write_numbers(std::FILE *file, char const *name, std::vector<double> const &values) {
  std::fprintf(file, "   \"%s\": [", name);
  for (std::size_t i = 0; i < values.size(); i++)
    std::fprintf(file, "%s%.9g", i ? ", " : "", values[i]);
  std::fprintf(file, "]");
}

/* Every sample of every row: nothing is dropped. null where nothing is promised. */
void write_json(char const *path, Rows const &rows) {
  static char const *const names[] = {"slowdown", "speedup", "nanoseconds", "memory"};
  std::FILE *file = std::fopen(path, "w");
  if (!file) throw std::runtime_error(std::string("cannot write ") + path);
  std::fprintf(file, "[");
  for (std::size_t i = 0; i < rows.size(); i++) {
    Ratio const &row = rows[i];
    char target[32] = "null";
    if (row.target) std::snprintf(target, sizeof target, "%g", *row.target);
    std::fprintf(file,
                 "%s\n  {\"operation\": \"%s\", \"against\": \"%s\", \"measure\": \"%s\",\n"
                 "   \"target\": %s, \"median\": %.4g, \"met\": %s, \"bytes\": %zu,\n",
                 i ? "," : "", row.operation.c_str(), row.against.c_str(),
                 names[static_cast<int>(row.measure)], target, row.median(),
                 !row.target ? "null"
                 : row.met() ? "true"
                             : "false",
                 row.bytes);
    write_numbers(file, "umem_seconds", row.ours);
    std::fprintf(file, ",\n");
    write_numbers(file, "other_seconds", row.theirs);
    std::fprintf(file, "}");
  }
  std::fprintf(file, "\n]\n");
  if (std::fclose(file)) throw std::runtime_error(std::string("cannot write ") + path);
}

struct Wishes {
  Effort effort = thorough();
  char const *json = nullptr;
  std::vector<Group> groups;    /* of the CPU */
  std::vector<std::string> gpu; /* "gpu": all groups of GPUs; or the names of some */
};

bool parse(int argc, char **argv, Wishes &wishes) {
  for (int i = 1; i < argc; i++) {
    auto same = [&](Group const &group) { return !std::strcmp(argv[i], group.name); };
    auto group = std::find_if(std::begin(cpu_groups), std::end(cpu_groups), same);
    if (!std::strcmp(argv[i], "--quick"))
      wishes.effort = quick();
    else if (!std::strcmp(argv[i], "--once"))
      wishes.effort = once();
    else if (!std::strcmp(argv[i], "--json") && i + 1 < argc)
      wishes.json = argv[++i];
    else if (!std::strcmp(argv[i], "gpu") || !std::strncmp(argv[i], "gpu-", 4))
      wishes.gpu.push_back(argv[i]);
    else if (group != std::end(cpu_groups))
      wishes.groups.push_back(*group);
    else
      return false;
  }
  if (wishes.groups.empty() && wishes.gpu.empty()) {
    wishes.groups.assign(std::begin(cpu_groups), std::end(cpu_groups));
    wishes.gpu.push_back("gpu");
  }
  return true;
}

/* Adds the groups of GPUs, or prints why it cannot. False if nothing is left to measure. */
bool add_gpu_groups(Wishes &wishes) {
  if (wishes.gpu.empty()) return true;
  std::string why = why_no_gpu();
  if (why.empty()) {
    for (Group const &group : gpu_groups())
      for (std::string const &name : wishes.gpu)
        if (name == "gpu" || name == group.name) wishes.groups.push_back(group);
  } else {
    std::printf("no GPU: %s\n", why.c_str());
  }
  return !wishes.groups.empty();
}

/* Leaves out the sizes that this machine has no room for, and prints them. */
void keep_what_fits(std::vector<std::size_t> &sizes) {
  auto too_large = [](std::size_t size) {
    if (!fits(size))
      std::printf("skipped: %s, too large for this machine now\n", size_text(size).c_str());
    return !fits(size);
  };
  sizes.erase(std::remove_if(sizes.begin(), sizes.end(), too_large), sizes.end());
}

/* Adds the rows of group, and prints them. False when it failed; what it had measured is kept. */
bool measure(Group const &group, Effort const &effort, Rows &rows) {
  std::size_t before = rows.size();
  std::string failure;
  try {
    group.measure(effort, rows);
  } catch (std::exception const &error) {
    failure = error.what();
  }
  for (std::size_t i = before; i < rows.size(); i++) print_row(rows[i]);
  if (!failure.empty()) std::printf("FAILED: %s: %s\n", group.name, failure.c_str());
  return failure.empty();
}

void print_sum(Rows const &rows) {
  auto promised = std::count_if(rows.begin(), rows.end(),
                                [](Ratio const &row) { return row.target.has_value(); });
  auto met = std::count_if(rows.begin(), rows.end(),
                           [](Ratio const &row) { return row.target && row.met(); });
  std::printf("%td of %td met\n", met, promised);
}

int run(Wishes wishes) {
  Rows rows;
  bool good = true;
  if (!add_gpu_groups(wishes)) return 2;
  keep_what_fits(wishes.effort.sizes);
  print_head();
  for (Group const &group : wishes.groups) good &= measure(group, wishes.effort, rows);
  print_sum(rows);
  if (wishes.json) write_json(wishes.json, rows);
  return good ? 0 : 1;
}

} // namespace
} // namespace bench

int main(int argc, char **argv) {
  bench::Wishes wishes;
  if (!bench::parse(argc, argv, wishes)) {
    std::fprintf(stderr,
                 "usage: umem_ratios [--quick | --once] [--json FILE] "
                 "[host|arrays|loops|files|stage|growth|pool|fixed|log|strided|gpu|gpu-pool]...\n");
    return 2;
  }
  try {
    return bench::run(wishes);
  } catch (std::exception const &error) {
    std::fprintf(stderr, "umem_ratios: %s\n", error.what());
    return 1;
  }
}
