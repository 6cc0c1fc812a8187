/* ratio_gpu_file.cpp - long copies between files in the page cache and device memory, compared with
 * the pipeline by hand and with kvikIO, at the number of threads at which each is fastest; and
 * pageable memory compared with pinned. */
#include "ratio_gpu.h"

#include "by_hand.h"
#include "by_hand_cuda.h"
#include "by_hand_pipeline.h"
#include "by_hand_threads.h"
#include "place.h"
#include "sizes.h"
#ifdef UMEM_BENCH_KVIKIO
#include "kvikio.h"
#endif

#include <fcntl.h>
#include <memory>

namespace bench {
namespace {

constexpr std::size_t piece = 4 * mebibyte;
constexpr int rounds = 9;

struct Side {
  std::string name;
  Work work;
};

/* Ours against the fastest of others. */
void add_best(std::vector<Ratio> &rows, std::string const &operation, std::optional<double> target,
              std::size_t size, Work const &ours, std::vector<Side> const &others) {
  std::vector<Timed> candidates = {[&] { return seconds_of(ours); }};
  for (Side const &other : others)
    candidates.push_back([&other] { return seconds_of(other.work); });
  Samples samples = alternate(rounds, candidates);
  std::size_t best = 1;
  for (std::size_t i = 2; i < samples.size(); i++)
    if (quantile(samples[i], 0.5) < quantile(samples[best], 0.5)) best = i;
  rows.push_back({operation + ", " + size_text(size), others[best - 1].name, Measure::speedup,
                  target, samples[0], samples[best], size});
}

void by_umem(bool loads, char const *path, Place const &device, std::uintptr_t far,
             std::size_t size) {
  umemFile file;
  check(umemFile_ctor(&file, path, "r+"));
  std::uintptr_t near = umem_alloc(&file, size);
  check(loads ? umem_copy_to(&file, near, device.context(), far, size)
              : umem_copy_from(&file, near, device.context(), far, size));
  umem_dtor(&file);
}

void measure_size(std::vector<Ratio> &rows, std::size_t size) {
  TempFile file;
  Place device(row_named("cuda"));
  Block far(device.context(), size);
  {
    by_hand::HugeMemory bytes(size);
    by_hand::Descriptor fd(file.path(), O_WRONLY);
    for (std::size_t i = 0; i < size; i++) bytes.bytes()[i] = static_cast<char>(i * 40503 >> 7);
    by_hand::write(fd, bytes.bytes(), size, 0);
  }
  for (bool loads : {true, false}) {
    std::vector<std::unique_ptr<by_hand::Pipeline>> pipelines;
    std::vector<Side> hand, kvikio;
    for (unsigned threads : by_hand::thread_counts()) {
      pipelines.push_back(std::make_unique<by_hand::Pipeline>(threads, piece));
      by_hand::Pipeline *pipeline = pipelines.back().get();
      hand.push_back(
          {"4 MiB pieces by hand, " + std::to_string(threads) + " threads", [&, pipeline] {
             by_hand::Descriptor fd(file.path(), O_RDWR);
             loads ? pipeline->load(fd, far, size) : pipeline->store(fd, far, size);
           }});
#ifdef UMEM_BENCH_KVIKIO
      if (threads > 1 || !loads)
        kvikio.push_back({"kvikIO, " + std::to_string(threads) + " threads", [&, threads] {
                            kvikio_side::set_threads(threads);
                            loads ? kvikio_side::load(file.path(), far, size)
                                  : kvikio_side::store(file.path(), far, size);
                          }});
#endif
    }
    auto ours = [&] { by_umem(loads, file.path(), device, far, size); };
    std::string operation = loads ? "open file, copy it to GPU" : "open file, copy GPU to it";
    add_best(rows, operation, loads ? std::optional<double>(0.95) : std::nullopt, size, ours, hand);
    if (!kvikio.empty()) add_best(rows, operation, loads ? 1.05 : 3, size, ours, kvikio);
  }
}

/* A copy of umem with pageable and with pinned memory. */
void measure_pageable(std::vector<Ratio> &rows, std::size_t size, double target) {
  Place host(row_named("host")), pinned(row_named("cuda-host")), device(row_named("cuda"));
  Block near(host.context(), size), fast(pinned.context(), size), far(device.context(), size);
  for (bool away : {true, false}) {
    auto copy = [&, away](Place const &place, Block const &block) {
      check(away ? umem_copy_to(place.context(), block, device.context(), far, size)
                 : umem_copy_from(place.context(), block, device.context(), far, size));
    };
    add_best(rows, std::string("pageable ") + (away ? "host to GPU" : "GPU to host"), target, size,
             [&] { copy(host, near); }, {{"the same, pinned", [&] { copy(pinned, fast); }}});
  }
}

} // namespace

void measure_gpu_file(Effort const &effort, std::vector<Ratio> &rows) {
  for (std::size_t size : wanted(effort, {64 * mebibyte, 1024 * mebibyte})) {
    measure_size(rows, size);
    measure_pageable(rows, size, size > 64 * mebibyte ? 0.9 : 0.75);
  }
}

} // namespace bench
