/* ratio_transfers.cpp - what a transfer with a handle costs (umem/transfer.h), and how far it
 * overlaps with work of the program and with other transfers. Work is a sleep: it takes no
 * processor from the threads that copy. */
#include "ratio.h"

#include "place.h"
#ifdef UMEM_BENCH_CUDA
#include "by_hand.h"
#include "by_hand_cuda.h"
#include "by_hand_pipeline.h"
#endif
#ifdef UMEM_BENCH_KVIKIO
#include "kvikio.h"
#endif

#include <umem.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include <fcntl.h>

namespace bench {
namespace {

constexpr std::size_t mebibyte = std::size_t{1} << 20;

/* A file with bytes, which are cached, and memory for them. */
class FileAndMemory {
public:
  explicit FileAndMemory(std::size_t size)
      : file_(row_named("file")), ram_(row_named("host")), in_file(file_.context(), size),
        one(ram_.context(), size), other(ram_.context(), size) {}

  umemTransfer *start(std::size_t at, std::size_t nbytes, std::uintptr_t to) const {
    umemTransfer *transfer = nullptr;
    check(
        umem_start(file_.context(), in_file + at, ram_.context(), to, nbytes, nullptr, &transfer));
    return transfer;
  }
  void copy(std::size_t at, std::size_t nbytes, std::uintptr_t to) const {
    check(umem_copy_to(file_.context(), in_file + at, ram_.context(), to, nbytes));
  }

private:
  Place file_, ram_;

public:
  Block in_file, one, other;
};

void end(umemTransfer *transfer) { check(umemTransfer_release(transfer)); }
void end(std::future<void> &copy) { copy.get(); }

/* ---- short ones ---- */

void add_start(Effort const &effort, std::vector<Ratio> &rows) {
  constexpr int count = 10000;
  Place place(row_named("host"));
  void *ram = place.context();
  Block from(ram, 64), to(ram, 64);
  auto start = [&] {
    for (int i = 0; i < count; i++) {
      umemTransfer *transfer;
      check(umem_start(ram, from, ram, to, 64, nullptr, &transfer));
      end(transfer);
    }
  };
  auto copy = [&] {
    for (int i = 0; i < count; i++) check(umem_copy_to(ram, from, ram, to, 64));
  };
  Samples samples = alternate(effort.short_rounds, {[&] { return seconds_of(start) / count; },
                                                    [&] { return seconds_of(copy) / count; }});
  rows.push_back({"start and release of 64 B in RAM", "the copy", Measure::nanoseconds, 2000,
                  samples[0], samples[1], 0});
}

void add_many(Effort const &effort, std::vector<Ratio> &rows) {
  constexpr std::size_t count = 10000, nbytes = 4096;
  FileAndMemory all(count * nbytes);
  std::vector<umemTransfer *> transfers(count);
  auto start = [&] {
    for (std::size_t i = 0; i < count; i++)
      transfers[i] = all.start(i * nbytes, nbytes, all.one + i * nbytes);
    for (umemTransfer *transfer : transfers) end(transfer);
  };
  auto copy = [&] {
    for (std::size_t i = 0; i < count; i++) all.copy(i * nbytes, nbytes, all.one + i * nbytes);
  };
  Samples samples = alternate(effort.short_rounds, {[&] { return seconds_of(start) / count; },
                                                    [&] { return seconds_of(copy) / count; }});
  rows.push_back({"10,000 in flight of 4 KiB, cached file to RAM, each", "a copy",
                  Measure::nanoseconds, 3000, samples[0], samples[1], 0});
}

/* How long the slowest of many short transfers takes while long ones are under way. This thread
 * looks and does not wait: who waits may copy itself. */
void add_fairness(Effort const &effort, std::vector<Ratio> &rows, FileAndMemory const &all,
                  std::size_t part, std::size_t parts) {
  constexpr std::size_t count = 100, small = 4096;
  auto slowest = [&] {
    double most = 0;
    for (std::size_t i = 0; i < count; i++) {
      umemTransfer *transfer = all.start(i * small, small, all.other + i * small);
      most = std::max(most, seconds_of([&] {
                        while (!umemTransfer_poll(transfer)) std::this_thread::yield();
                      }));
      end(transfer);
    }
    return most;
  };
  auto beside = [&] {
    std::vector<umemTransfer *> transfers;
    for (std::size_t i = 0; i < parts; i++)
      transfers.push_back(all.start(i * part, part, all.one + i * part));
    double most = slowest();
    for (umemTransfer *transfer : transfers) end(transfer);
    return most;
  };
  Samples samples = alternate(effort.long_rounds, {beside, slowest});
  rows.push_back({"slowest of 100 of 4 KiB beside long ones, file to RAM", "alone",
                  Measure::nanoseconds, 2e6, samples[0], samples[1], 0});
}

/* ---- long ones ---- */

/* A copy that reports, beside one that does not. */
void add_progress_between(Effort const &effort, std::vector<Ratio> &rows, std::size_t nbytes,
                          char const *from_kind, char const *to_kind) {
  for (std::size_t step : {std::size_t{0}, mebibyte}) {
    Place source(row_named(from_kind)), target(row_named(to_kind));
    Block from(source.context(), nbytes), to(target.context(), nbytes);
    auto copy = [&](bool (*progress)(void *, std::uint64_t, std::uint64_t)) {
      umemCopyOptions options = UMEM_COPY_OPTIONS_INIT;
      options.progress = progress;
      options.step = step;
      check(umem_copy_to_with(source.context(), from, target.context(), to, nbytes, &options));
    };
    auto reported = [&] { copy([](void *, std::uint64_t, std::uint64_t) { return true; }); };
    auto plain = [&] { copy(nullptr); };
    Samples samples = alternate(effort.long_rounds, {[&] { return seconds_of(reported); },
                                                     [&] { return seconds_of(plain); }});
    rows.push_back({std::string(from_kind) + " to " + to_kind + " with progress, steps of " +
                        (step ? "1 MiB" : "64 MiB"),
                    "the copy without", Measure::speedup, 0.98, samples[0], samples[1], nbytes});
  }
}

void add_progress(Effort const &effort, std::vector<Ratio> &rows, std::size_t nbytes, bool gpu) {
  for (char const *kind : {"file", "host"}) {
    add_progress_between(effort, rows, nbytes, kind, "host");
    if (gpu) add_progress_between(effort, rows, nbytes, kind, "cuda");
  }
  if (gpu) add_progress_between(effort, rows, nbytes, "cuda", "host");
}

#ifdef UMEM_BENCH_KVIKIO
/* Each side opens the file. */
void add_kvikio(Effort const &effort, std::vector<Ratio> &rows, std::size_t nbytes) {
  std::vector<unsigned> const counts = {4, 8, 12, 16};
  Place source(row_named("file")), gpu(row_named("cuda"));
  Block bytes(source.context(), nbytes), to(gpu.context(), nbytes);
  umemInfo info = UMEM_INFO_INIT;
  check(umem_get_info(source.context(), &info));
  std::string const path = info.name;
  auto copy = [&] {
    umemFile file;
    umemCopyOptions options = UMEM_COPY_OPTIONS_INIT;
    options.progress = [](void *, std::uint64_t, std::uint64_t) { return true; };
    check(umemFile_ctor(&file, path.c_str(), "r"));
    check(umem_copy_to_with(&file, bytes, gpu.context(), to, nbytes, &options));
    umem_dtor(&file);
  };
  std::vector<Timed> sides = {[&] { return seconds_of(copy); }};
  for (unsigned threads : counts)
    sides.push_back([&, threads] {
      kvikio_side::set_threads(threads);
      return seconds_of([&] { kvikio_side::load(path.c_str(), to, nbytes); });
    });
  Ratio row{
      "open file, copy it to cuda with progress", "kvikIO", Measure::speedup, 1.05, {}, {}, nbytes};
  add_best(rows, row, alternate(effort.long_rounds, sides), counts);
}
#endif

void add_two(Effort const &effort, std::vector<Ratio> &rows, FileAndMemory const &all,
             std::size_t part, std::size_t parts) {
  std::uintptr_t const to[2] = {all.one, all.other};
  auto start = [&] {
    umemTransfer *two[2] = {nullptr, nullptr};
    for (std::size_t i = 0; i < parts; i++) {
      end(two[i % 2]);
      two[i % 2] = all.start(i * part, part, to[i % 2]);
    }
    end(two[0]);
    end(two[1]);
  };
  auto copy = [&] {
    for (std::size_t i = 0; i < parts; i++) all.copy(i * part, part, to[i % 2]);
  };
  Samples samples = alternate(
      effort.long_rounds, {[&] { return seconds_of(start); }, [&] { return seconds_of(copy); }});
  rows.push_back({std::to_string(parts) + " parts of a cached file to RAM, two in flight",
                  "one copy after the other", Measure::speedup, 0.97, samples[0], samples[1],
                  part * parts});
}

/* ---- a GPU ---- */

/* On a stream, from pinned memory. */
void add_queued(Effort const &effort, std::vector<Ratio> &rows) {
  constexpr std::size_t count = 10000, nbytes = 4096;
  Place pinned(row_named("cuda-host")), stream(row_named("cuda-async"));
  Block from(pinned.context(), count * nbytes), to(stream.context(), count * nbytes);
  std::vector<umemTransfer *> transfers(count);
  auto start = [&] {
    for (std::size_t i = 0; i < count; i++)
      check(umem_start(pinned.context(), from + i * nbytes, stream.context(), to + i * nbytes,
                       nbytes, nullptr, &transfers[i]));
    for (umemTransfer *transfer : transfers) end(transfer);
  };
  auto copy = [&] {
    for (std::size_t i = 0; i < count; i++)
      check(umem_copy_to(pinned.context(), from + i * nbytes, stream.context(), to + i * nbytes,
                         nbytes));
    stream.finish();
  };
  Samples samples = alternate(effort.short_rounds, {[&] { return seconds_of(start) / count; },
                                                    [&] { return seconds_of(copy) / count; }});
  rows.push_back({"10,000 in flight of 4 KiB, pinned memory to a stream, each", "a copy",
                  Measure::nanoseconds, 3000, samples[0], samples[1], 0});
}

/* Cached files, each of its own context, and two blocks on the GPU that take turns. */
class FilesAndGpu {
public:
  FilesAndGpu(std::size_t part, std::size_t parts)
      : part_(part), gpu_(row_named("cuda")), one_(gpu_.context(), part),
        other_(gpu_.context(), part) {
    for (std::size_t i = 0; i < parts; i++) {
      files_.push_back(std::make_unique<Place>(row_named("file")));
      blocks_.push_back(std::make_unique<Block>(files_[i]->context(), part));
    }
  }

  std::uintptr_t to(std::size_t i) const { return i % 2 ? other_ : one_; }
  void *context() const { return gpu_.context(); }
  std::string path(std::size_t i) const {
    umemInfo info = UMEM_INFO_INIT;
    check(umem_get_info(files_[i]->context(), &info));
    return info.name;
  }

  umemTransfer *start(std::size_t i) const {
    umemTransfer *transfer = nullptr;
    check(umem_start(files_[i]->context(), *blocks_[i], gpu_.context(), to(i), part_, nullptr,
                     &transfer));
    return transfer;
  }

private:
  std::size_t part_;
  Place gpu_;
  Block one_, other_;
  std::vector<std::unique_ptr<Place>> files_;
  std::vector<std::unique_ptr<Block>> blocks_;
};

void start_two(FilesAndGpu const &all, std::size_t parts) {
  umemTransfer *two[2] = {nullptr, nullptr};
  for (std::size_t i = 0; i < parts; i++) {
    end(two[i % 2]);
    two[i % 2] = all.start(i);
  }
  end(two[0]);
  end(two[1]);
}

std::string two_in_flight(std::size_t parts) {
  return std::to_string(parts) + " cached files to a GPU, two in flight";
}

/* Beside as many bytes of pinned memory, which take as long as the bus does, and of one file: what
 * all threads can read of the page cache. */
void add_files(Effort const &effort, std::vector<Ratio> &rows, FilesAndGpu const &all,
               std::size_t part, std::size_t parts) {
  Place ram(row_named("cuda-host")), file(row_named("file"));
  Block pinned(ram.context(), part), one(file.context(), part * parts),
      large(all.context(), part * parts);
  auto start = [&] { start_two(all, parts); };
  auto wait = [&] {
    for (std::size_t i = 0; i < parts; i++) end(all.start(i));
  };
  auto bus = [&] {
    for (std::size_t i = 0; i < parts; i++)
      check(umem_copy_to(ram.context(), pinned, all.context(), all.to(i), part));
  };
  auto whole = [&] {
    check(umem_copy_to(file.context(), one, all.context(), large, part * parts));
  };
  Samples samples = alternate(
      effort.long_rounds, {[&] { return seconds_of(start); }, [&] { return seconds_of(bus); },
                           [&] { return seconds_of(whole); }, [&] { return seconds_of(wait); }});
  auto add = [&](char const *against, Measure measure, double target, std::size_t other) {
    rows.push_back(
        {two_in_flight(parts), against, measure, target, samples[0], samples[other], part * parts});
  };
  add("pinned memory to it", Measure::speedup, 0.97, 1);
  add("one copy of one file", Measure::speedup, 0.97, 2);
  add("one file after the other", Measure::speedup, 1, 3);
}

#ifdef UMEM_BENCH_CUDA
/* Beside threads that a program starts, with pread and pieces of its own: as many of them, and such
 * pieces, as are fastest here. */
void add_files_by_hand(Effort const &effort, std::vector<Ratio> &rows, FilesAndGpu const &all,
                       std::size_t part, std::size_t parts) {
  std::vector<unsigned> const counts = {8, 8, 12, 12, 16, 16};
  std::vector<std::unique_ptr<by_hand::Descriptor>> files;
  std::vector<int> fds;
  for (std::size_t i = 0; i < parts; i++) {
    files.push_back(std::make_unique<by_hand::Descriptor>(all.path(i).c_str(), O_RDONLY));
    fds.push_back(*files.back());
  }
  std::vector<std::unique_ptr<by_hand::Pipeline>> pipelines;
  std::vector<Timed> sides = {[&] { return seconds_of([&] { start_two(all, parts); }); }};
  for (std::size_t k = 0; k < counts.size(); k++) {
    pipelines.push_back(std::make_unique<by_hand::Pipeline>(counts[k], (k % 2 + 1) * 2 * mebibyte));
    by_hand::Pipeline *pipeline = pipelines.back().get();
    sides.push_back([&, pipeline] {
      return seconds_of([&] { pipeline->load_all(fds, part, {all.to(0), all.to(1)}); });
    });
  }
  Ratio row{two_in_flight(parts), "pread", Measure::speedup, 0.97, {}, {}, part * parts};
  add_best(rows, row, alternate(effort.long_rounds, sides), counts);
}
#endif

/* The next part arrives while work(i) goes on with the one before. */
template <typename Start, typename Work>
void work_ahead(std::size_t parts, Start const &start, Work const &work) {
  auto next = start(0);
  for (std::size_t i = 0; i < parts; i++) {
    end(next);
    if (i + 1 < parts) next = start(i + 1);
    work(i);
  }
}

/* Beside the work without the other parts, of which each takes somewhat longer than a copy. */
template <typename Start, typename Work>
void add_ahead_of(Effort const &effort, std::vector<Ratio> &rows, std::string const &operation,
                  std::size_t parts, Start const &start, Work const &work) {
  auto ahead = [&] { work_ahead(parts, start, work); };
  auto alone = [&] {
    end(start(0));
    for (std::size_t i = 0; i < parts; i++) work(i);
  };
  Samples samples = alternate(
      effort.long_rounds, {[&] { return seconds_of(ahead); }, [&] { return seconds_of(alone); }});
  rows.push_back({std::to_string(parts) + operation, "the first read and the work",
                  Measure::speedup, 0.95, samples[0], samples[1], 0});
}

constexpr double longer = 1.2; /* than a copy */

void add_ahead(Effort const &effort, std::vector<Ratio> &rows, FileAndMemory const &all,
               std::size_t part, std::size_t parts) {
  std::chrono::duration<double> const time(seconds_of([&] { all.copy(0, part, all.one); }) *
                                           longer);
  add_ahead_of(
      effort, rows, " parts read while the program works on the one before", parts,
      [&](std::size_t i) { return all.start(i * part, part, i % 2 ? all.other : all.one); },
      [&](std::size_t) { std::this_thread::sleep_for(time); });
}

#ifdef UMEM_BENCH_CUDA
/* Kernels, those of cudaMemset, which use a file that is on the GPU, somewhat longer than the next
 * one is read. */
class Kernels {
public:
  Kernels(FilesAndGpu const &all, std::size_t part) : all_(all), part_(part) {
    constexpr unsigned some = 100;
    double read = 1e9, kernel = 1e9;
    for (int i = 0; i < 3; i++) {
      read = std::min(read, seconds_of([&] { end(all.start(0)); }));
      kernel = std::min(kernel, seconds_of([&] { queue(0, some), wait(); }) / some);
    }
    count_ = static_cast<unsigned>(longer * read / kernel) + 1;
    for (std::size_t i = 0; i < 2; i++)
      graphs_[i] = std::make_unique<by_hand::CudaGraph>(stream_, [&] { queue(i, count_); });
  }

  /* By a call for each, or by one for all. */
  void run_each(std::size_t i) const { queue(i, count_), wait(); }
  void run(std::size_t i) const {
    by_hand::check_cuda(cudaGraphLaunch(*graphs_[i % 2], stream_), "cudaGraphLaunch");
    wait();
  }

private:
  void queue(std::size_t i, unsigned count) const {
    for (unsigned k = 0; k < count; k++)
      by_hand::check_cuda(cudaMemsetAsync(reinterpret_cast<void *>(all_.to(i)), 1, part_, stream_),
                          "cudaMemsetAsync");
  }
  void wait() const {
    by_hand::check_cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  }

  FilesAndGpu const &all_;
  std::size_t part_;
  by_hand::CudaStream stream_;
  unsigned count_;
  std::unique_ptr<by_hand::CudaGraph> graphs_[2];
};

/* Where each kernel is a call, all of them wait for the driver, which copies as well: beside
 * threads that a program starts. */
void add_ahead_on_gpu(Effort const &effort, std::vector<Ratio> &rows, std::size_t part,
                      std::size_t parts) {
  std::vector<unsigned> const counts = {4, 8, 12, 16};
  FilesAndGpu all(part, parts);
  Kernels kernels(all, part);
  auto start = [&](std::size_t i) { return all.start(i); };
  auto run_each = [&](std::size_t i) { kernels.run_each(i); };
  add_ahead_of(effort, rows, " files to a GPU while kernels work on the one before", parts, start,
               [&](std::size_t i) { kernels.run(i); });
  std::vector<std::unique_ptr<by_hand::Pipeline>> pipelines;
  std::vector<Timed> sides = {
      [&] { return seconds_of([&] { work_ahead(parts, start, run_each); }); }};
  for (unsigned count : counts) {
    pipelines.push_back(std::make_unique<by_hand::Pipeline>(count, 2 * mebibyte));
    by_hand::Pipeline *pipeline = pipelines.back().get();
    auto read = [&, pipeline](std::size_t i) {
      return std::async(std::launch::async, [&, pipeline, i] {
        by_hand::Descriptor fd(all.path(i).c_str(), O_RDONLY);
        pipeline->load(fd, all.to(i), part);
      });
    };
    sides.push_back([&, read] { return seconds_of([&] { work_ahead(parts, read, run_each); }); });
  }
  Ratio row{std::to_string(parts) + " files to a GPU while many kernels are launched",
            "pread",
            Measure::speedup,
            0.97,
            {},
            {},
            0};
  add_best(rows, row, alternate(effort.long_rounds, sides), counts);
}
#endif

} // namespace

void measure_transfers(Effort const &effort, std::vector<Ratio> &rows) {
  constexpr std::size_t parts = 8;
  std::size_t part = effort.block / 8 < mebibyte ? mebibyte : effort.block / 8;
  add_start(effort, rows);
  add_many(effort, rows);
  FileAndMemory all(parts * part);
  add_two(effort, rows, all, part, parts);
  add_fairness(effort, rows, all, part, parts);
  bool gpu = why_no_gpu().empty();
  add_progress(effort, rows, parts * part, gpu);
  add_ahead(effort, rows, all, part, parts);
  if (!gpu) return;
#ifdef UMEM_BENCH_KVIKIO
  add_kvikio(effort, rows, 4 * parts * part);
#endif
  add_queued(effort, rows);
  {
    FilesAndGpu files(2 * part, 4 * parts);
    add_files(effort, rows, files, 2 * part, 4 * parts);
#ifdef UMEM_BENCH_CUDA
    add_files_by_hand(effort, rows, files, 2 * part, 4 * parts);
#endif
  }
#ifdef UMEM_BENCH_CUDA
  add_ahead_on_gpu(effort, rows, part, parts);
#endif
}

} // namespace bench
