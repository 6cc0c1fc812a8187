/* traces.cpp - how much memory pools take for large blocks: the most bytes that they reserve
 * over the most that live.
 *
 * Usage: umem_traces [--once] [--json FILE] [--write FOLDER]
 *   --once    a few steps of each trace
 *   --json    all figures
 *   --write   each trace as a file, for other programs: a 32-bit number of a block and a 64-bit
 *             size for each step
 *
 * Nothing reads or writes the blocks. Traces on a GPU have their sizes in full, up to 23 GiB, and so
 * have those of pool(pages), whose pages are counted and have no memory; others a sixteenth. */
#include "trace_heap.h"

#include <umem.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace {

using namespace bench;

struct Column {
  std::string name;
  TraceHeaps heaps;
  bool limits;        /* whether it can be limited */
  bool pages = false; /* whether it counts pages; the trace has its sizes in full */
};

struct Options {
  std::string json, folder;
  bool once = false;
};

Options read_options(int count, char **words) {
  Options options;
  for (int i = 1; i < count; i++) {
    std::string word = words[i];
    if (word == "--once")
      options.once = true;
    else if ((word == "--json" || word == "--write") && i + 1 < count)
      (word == "--json" ? options.json : options.folder) = words[++i];
    else
      throw std::runtime_error("usage: umem_traces [--once] [--json FILE] [--write FOLDER]");
  }
  return options;
}

bool has_gpu() {
  void *gpu = umem_open("cuda:0");
  if (!gpu) umem_thread_clear();
  umem_close(gpu);
  return gpu;
}

/* Pools with pages and without, and what they are compared with. On a GPU there are no limits: to
 * find one takes as long as ten traces, and pool(pages) has the same. */
std::vector<Column> columns(bool gpu) {
  std::vector<Column> all = {
      {"pool", pool_of_addresses, true},
      {"pool(pages)", pool_of_pages(), true, true},
      {"same, spare=0", pool_of_pages({0, 0}), true, true},
      {gpu ? "pool(cuda)" : "pool(host)", pool_over(gpu ? "cuda:0" : "host:"), !gpu},
      {"best fit", best_fit, true}};
#ifdef UMEM_BENCH_CUDA
  if (gpu) all.push_back({"pool, spare=0", pool_over("cuda:0", {0, 0}), false});
  if (gpu) all.push_back({"pool, spare=30", pool_over("cuda:0", {30, 0}), false});
  if (gpu) all.push_back({"cudaMallocAsync", cuda_pool, false});
#endif
#ifdef UMEM_BENCH_RMM
  if (gpu) all.push_back({"RMM's pool", rmm_pool, false});
#endif
  return all;
}

void write(std::string const &folder, Trace const &trace) {
  std::string name = trace.name;
  std::replace(name.begin(), name.end(), ' ', '-');
  std::ofstream file(folder + "/" + name + ".trace", std::ios::binary);
  for (TraceStep const &step : trace.steps) {
    file.write(reinterpret_cast<char const *>(&step.block), sizeof step.block);
    file.write(reinterpret_cast<char const *>(&step.size), sizeof step.size);
  }
  if (!file.flush()) throw std::runtime_error("cannot write " + folder + "/" + name + ".trace");
}

void print_head(std::vector<Column> const &columns) {
  std::printf("%-18s %9s", "trace", "live MiB");
  for (Column const &column : columns) {
    std::printf(" %16s", column.name.c_str());
    if (column.limits) std::printf("  limit");
    if (column.pages) std::printf(" mapped  moved");
    std::printf("  time");
  }
  std::printf("\n");
}

/* A row of the table; returns it as JSON. */
std::string measure(Trace const &small, Trace const &full, std::vector<Column> const &columns) {
  std::ostringstream json;
  json << " \"" << small.name << "\": {\"live\": " << small.live_peak
       << ", \"steps\": " << small.steps.size();
  std::printf("%-18s %9.0f", small.name.c_str(), static_cast<double>(small.live_peak) / (1 << 20));
  for (Column const &column : columns) {
    Trace const &trace = column.pages ? full : small;
    TraceResult result = run_trace(trace, *column.heaps(trace, 0));
    if (!result.served)
      throw std::runtime_error(column.name + " is out of memory on the trace " + trace.name);
    json << ", \"" << column.name << "\": {\"factor\": " << result.factor
         << ", \"seconds\": " << result.seconds << ", \"upstream calls\": " << result.calls;
    std::printf(" %16.3f", result.factor);
    if (column.limits) {
      std::optional<double> limit = least_limit(trace, column.heaps);
      if (!limit)
        throw std::runtime_error(column.name + " does not serve the trace " + trace.name +
                                 " under a limit");
      json << ", \"limit\": " << *limit;
      std::printf("  %5.3f", *limit);
    }
    if (column.pages) {
      json << ", \"pages mapped\": " << result.mapped << ", \"pages moved\": " << result.moved
           << ", \"pages unmapped\": " << result.unmapped;
      std::printf(" %6.3f %6.3f", result.mapped, result.moved);
    }
    json << "}";
    std::printf(" %5.0f", result.seconds * 1e9);
    std::fflush(stdout);
  }
  std::printf("\n");
  return json.str() + "}";
}

int run(Options const &options) {
  bool gpu = has_gpu();
  std::size_t const count = options.once ? 400 : 20000;
  std::vector<Column> const all = columns(gpu);
  std::string json;
  print_head(all);
  std::vector<Trace> const full = traces(1, count), small = traces(gpu ? 1 : 16, count);
  for (std::size_t i = 0; i < full.size(); i++) {
    Trace const &trace = small[i];
    if (!options.folder.empty()) write(options.folder, trace);
    json += (json.empty() ? "{\n" : ",\n") + measure(trace, full[i], all);
  }
  std::printf("\nlimit: the least limit under which the trace is served, over the live peak; time: "
              "ns of a step without a limit; mapped, moved: pages for each allocation\n");
  if (options.json.empty()) return 0;
  std::ofstream file(options.json);
  file << json << "\n}\n";
  if (!file.flush()) throw std::runtime_error("cannot write " + options.json);
  return 0;
}

} // namespace

int main(int count, char **words) {
  try {
    return run(read_options(count, words));
  } catch (std::exception const &error) {
    std::fprintf(stderr, "umem_traces: %s\n", error.what());
    return 1;
  }
}
