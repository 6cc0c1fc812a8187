/* micro.cpp - the program of Google Benchmark.
 *
 *     umem_bench [--sizes=64,4K,1M,1G] [the flags of Google Benchmark] */
#include "micro.h"

#include "sizes.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <stdexcept>

namespace bench {

namespace {

/* The rows, and why others are missing: "cuda: umemCuda_ctor: there is no GPU". */
struct Survey {
  std::vector<MeasuredRow> rows, pools;
  std::string missing;
};

/* Over something that is not there for tests only. */
bool is_pool(Backend const &row) {
  std::string name = row.name;
  return name.rfind("pool(", 0) == 0 && name.rfind("pool(fake", 0) != 0;
}

bool is_missing(Backend const &row) {
  umemVirtual *context = backend_open(&row);
  if (context) backend_close(&row, context);
  return !context &&
         (umem_thread_status() == umemNotSupportedError || umem_thread_status() == umemValueError);
}

Survey scan() {
  Survey survey;
  for (std::size_t i = 0; i < backend_count; i++) {
    Backend const &row = backends[i];
    bool pool = is_pool(row);
    if ((row.traits & backendTestOnly) && !pool) continue;
    if ((row.traits & backendMayLack) && is_missing(row))
      survey.missing += (survey.missing.empty() ? "" : "; ") + std::string(row.name) + ": " +
                        umem_thread_message();
    else
      (pool ? survey.pools : survey.rows).push_back({&row, kind_of(Place(row).context())});
  }
  return survey;
}

Survey const &survey() {
  static Survey const done = scan();
  return done;
}

} // namespace

std::vector<MeasuredRow> const &measured_rows() { return survey().rows; }
std::vector<MeasuredRow> const &measured_pools() { return survey().pools; }

benchmark::internal::Benchmark *add(std::string const &name, Body const &body) {
  auto guarded = [body](benchmark::State &state) {
    try {
      body(state);
    } catch (std::exception const &error) {
      state.SkipWithError(error.what());
    }
  };
  return benchmark::RegisterBenchmark(name.c_str(), guarded)
      ->UseRealTime()
      ->ComputeStatistics("least", [](std::vector<double> const &values) {
        return *std::min_element(values.begin(), values.end());
      });
}

void add_sized(std::string const &name, std::size_t size, Body const &body) {
  constexpr std::size_t long_from = std::size_t{1} << 20, bytes_of_long = std::size_t{256} << 20;
  auto *registered = add(name + "/" + std::to_string(size), [=](benchmark::State &state) {
    body(state);
    state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * static_cast<int64_t>(size)));
  });
  /* Preparing a large array takes longer than copying it: that is not done again and again to find
   * out how many iterations there should be. */
  if (size >= long_from)
    registered->Iterations(static_cast<int64_t>(std::max(bytes_of_long / size, std::size_t{2})));
}

namespace {

constexpr char const *default_sizes = "64,4K,64K,1M,16M,256M,1G";

/* The kind of each row, and what is left out, go into the results. */
void describe(std::vector<std::size_t> const &skipped) {
  for (auto const *rows : {&measured_rows(), &measured_pools()})
    for (MeasuredRow const &row : *rows)
      benchmark::AddCustomContext(std::string("kind of ") + row.backend->name, name_of(row.kind));
  std::string const &missing = survey().missing;
  benchmark::AddCustomContext("contexts skipped", missing.empty() ? "none" : missing);
  std::string list;
  for (std::size_t size : skipped) list += (list.empty() ? "" : ", ") + size_text(size);
  benchmark::AddCustomContext("sizes skipped for lack of room", list.empty() ? "none" : list);
}

/* Takes --sizes=... out of the arguments. */
std::string take_sizes(int &argc, char **argv) {
  static constexpr char flag[] = "--sizes=";
  std::string sizes = default_sizes;
  int kept = 1;
  for (int i = 1; i < argc; i++) {
    if (!std::strncmp(argv[i], flag, sizeof flag - 1))
      sizes = argv[i] + sizeof flag - 1;
    else
      argv[kept++] = argv[i];
  }
  argc = kept;
  return sizes;
}

void run(int argc, char **argv) {
  std::vector<std::size_t> sizes = parse_sizes(take_sizes(argc, argv));
  auto kept = std::stable_partition(sizes.begin(), sizes.end(), fits);
  describe({kept, sizes.end()});
  sizes.erase(kept, sizes.end());
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) throw std::invalid_argument("see --help");
  register_alloc(sizes);
  register_dispatch();
  register_set(sizes);
  register_copy(sizes);
  register_strided();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}

} // namespace
} // namespace bench

int main(int argc, char **argv) {
  try {
    bench::run(argc, argv);
    return 0;
  } catch (std::exception const &error) {
    std::fprintf(stderr, "umem_bench: %s\n", error.what());
    return 1;
  }
}
