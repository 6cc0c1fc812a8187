/* ratio_many.cpp - lists of short copies (umem_copy_many). To RAM: from RAM beside a loop of
 * memcpy, from a file that the page cache has beside pread on as many threads, and from one that it
 * lacks beside io_uring. To a GPU: from RAM beside the calls of CUDA, and between it and a file
 * beside one copy of as many bytes. The pieces are in random order in the source, with gaps as long
 * as they are. */
#include "ratio.h"

#include "by_hand.h"
#include "by_hand_threads.h"
#include "by_hand_uring.h"
#include "place.h"
#if UMEM_BENCH_CUDA
#include "by_hand_cuda.h"
#endif

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <fcntl.h>
#include <umem/threads.h>

namespace bench {
namespace {

/* Pieces of a source and a target, each of 2 * count * length bytes. */
struct Pieces {
  std::size_t length;
  std::vector<std::size_t> from; /* offset of each in the source; in the target they are in order */

  Pieces(std::size_t count, std::size_t length_) : length(length_), from(count) {
    std::iota(from.begin(), from.end(), std::size_t{0});
    std::shuffle(from.begin(), from.end(), std::mt19937(1));
    for (std::size_t &offset : from) offset *= 2 * length;
  }

  std::size_t span() const { return 2 * from.size() * length; }

  std::vector<umemCopyItem> items(void *src, std::uintptr_t src_adr, void *dst,
                                  std::uintptr_t dst_adr) const {
    std::vector<umemCopyItem> list;
    for (std::size_t i = 0; i < from.size(); i++)
      list.push_back({src, src_adr + from[i], dst, dst_adr + 2 * i * length, length});
    return list;
  }
};

Timed timed_list(std::vector<umemCopyItem> const &list) {
  return
      [&] { return seconds_of([&] { check(umem_copy_many(list.data(), list.size(), nullptr)); }); };
}

void measure_memory(int rounds, Pieces const &pieces, std::vector<Ratio> &rows) {
  Place host(row_named("host"));
  Block src(host.context(), pieces.span()), dst(host.context(), pieces.span());
  auto list = pieces.items(host.context(), src, host.context(), dst);
  auto loop = [&] {
    return seconds_of([&] {
      for (umemCopyItem const &item : list)
        std::memcpy(reinterpret_cast<void *>(item.dst_adr),
                    reinterpret_cast<void const *>(item.src_adr), item.nbytes);
    });
  };
  Samples samples = alternate(rounds, {timed_list(list), loop});
  rows.push_back({"list of pieces of " + std::to_string(pieces.length) + " bytes, host to host",
                  "a loop of memcpy", Measure::slowdown, std::nullopt, samples[0], samples[1],
                  pieces.span() / 2});
}

void measure_file(int rounds, Pieces const &pieces, std::vector<Ratio> &rows) {
  Place file(row_named("file")), host(row_named("host"));
  Block src(file.context(), pieces.span()), dst(host.context(), pieces.span());
  auto list = pieces.items(file.context(), src, host.context(), dst);
  umemInfo info = UMEM_INFO_INIT;
  check(umem_get_info(file.context(), &info));
  by_hand::Descriptor fd(info.name, O_RDONLY);
  unsigned threads = umem_get_threads();
  auto reads = [&] {
    return seconds_of([&] {
      by_hand::in_threads(threads, list.size(), list.size() / threads + 1,
                          [&](unsigned, std::size_t begin, std::size_t count) {
                            for (std::size_t i = begin; i < begin + count; i++)
                              by_hand::read(fd, reinterpret_cast<void *>(list[i].dst_adr),
                                            list[i].nbytes, static_cast<off_t>(list[i].src_adr));
                          });
    });
  };
  Samples samples = alternate(rounds, {timed_list(list), reads});
  rows.push_back({"list of pieces of " + std::to_string(pieces.length) + " bytes, file to host",
                  "pread, " + std::to_string(threads) + " threads", Measure::slowdown,
                  pieces.length == 4096 ? std::optional<double>(1.2) : std::nullopt, samples[0],
                  samples[1], pieces.span() / 2});
}

/* The rows of a part of an array, as a list and as one copy of items; each row is followed by a gap
 * of its length. */
void measure_rows(int rounds, std::size_t row, std::size_t count, char const *target,
                  std::vector<Ratio> &rows) {
  Place file(row_named("file")), place(row_named(target));
  Block src(file.context(), 2 * count * row), dst(place.context(), count * row);
  std::vector<umemCopyItem> list;
  for (std::size_t i = 0; i < count; i++)
    list.push_back({file.context(), src + 2 * i * row, place.context(), dst + i * row, row});
  auto step = static_cast<std::ptrdiff_t>(row), wide = 2 * step;
  umemLayout const layout = {sizeof layout, row, 1, &count, &wide, &step};
  auto strided = [&] {
    return seconds_of(
        [&] { check(umem_copy_strided(file.context(), src, place.context(), dst, &layout)); });
  };
  Samples samples = alternate(rounds, {timed_list(list), strided});
  bool far = target != std::string("host");
  rows.push_back({"list of rows of " + std::to_string(row) + " bytes, file to " + target,
                  "one copy of items", Measure::slowdown,
                  far ? std::nullopt : std::optional<double>(2), samples[0], samples[1],
                  count * row});
}

#if UMEM_BENCH_URING
/* In the order of the file, which is best. */
std::vector<by_hand::Piece> sorted(std::vector<umemCopyItem> const &list) {
  std::vector<by_hand::Piece> pieces;
  for (umemCopyItem const &item : list)
    pieces.push_back(
        {reinterpret_cast<void *>(item.dst_adr), item.nbytes, static_cast<off_t>(item.src_adr)});
  std::sort(pieces.begin(), pieces.end(),
            [](by_hand::Piece const &a, by_hand::Piece const &b) { return a.offset < b.offset; });
  return pieces;
}

/* Each side reads them from the disk. The file is opened for each round: a context notes that it
 * reads a file again. */
void measure_cold(int rounds, Pieces const &pieces, std::vector<Ratio> &rows) {
  constexpr unsigned depth = 128;
  Place file(row_named("file")), host(row_named("host"));
  Block src(file.context(), pieces.span()), dst(host.context(), pieces.span());
  check(umem_set(file.context(), src, 0x5A, pieces.span()));
  umemInfo info = UMEM_INFO_INIT;
  check(umem_get_info(file.context(), &info));
  auto copy = [&] {
    umemFile reader;
    check(umemFile_ctor(&reader, info.name, "r"));
    double seconds = timed_list(pieces.items(&reader, src, host.context(), dst))();
    umem_dtor(&reader);
    return seconds;
  };
  by_hand::Descriptor fd(info.name, O_RDONLY), direct(info.name, O_RDONLY | O_DIRECT);
  check(umem_flush(file.context()));
  auto cold = [&](Timed const &timed) {
    return [&, timed] {
      check_system(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0, "posix_fadvise");
      return timed();
    };
  };
  std::vector<by_hand::Piece> const reads =
      sorted(pieces.items(file.context(), src, host.context(), dst));
  auto ring = [&](int from) {
    return [&, from] { return seconds_of([&] { by_hand::read_by_ring(from, reads, depth); }); };
  };
  Samples samples = alternate(rounds, {cold(copy), cold(ring(fd)), cold(ring(direct))});
  std::string const name =
      "list of pieces of " + std::to_string(pieces.length) + " bytes, cold file to host";
  std::string const against = "io_uring, " + std::to_string(depth) + " in flight";
  rows.push_back({name, against, Measure::speedup, 0.9, samples[0], samples[1], pieces.span() / 2});
  rows.push_back({name, against + ", O_DIRECT", Measure::speedup, 0.9, samples[0], samples[2],
                  pieces.span() / 2});
}
#endif

#if UMEM_BENCH_CUDA
std::string name_of(Pieces const &pieces, char const *from, char const *to) {
  return std::to_string(pieces.from.size()) + " pieces of " + std::to_string(pieces.length) +
         " bytes, " + from + " to " + to;
}

/* From pageable or pinned memory. */
void measure_to_gpu(int rounds, Pieces const &pieces, bool pinned, std::vector<Ratio> &rows) {
  Place ram(row_named(pinned ? "cuda-host" : "host")), gpu(row_named("cuda"));
  Block src(ram.context(), pieces.span()), dst(gpu.context(), pieces.span());
  auto list = pieces.items(ram.context(), src, gpu.context(), dst);
  by_hand::CudaStream stream;
  by_hand::CudaCopies copies;
  for (umemCopyItem const &item : list) {
    copies.dst.push_back(reinterpret_cast<void *>(item.dst_adr));
    copies.src.push_back(reinterpret_cast<void const *>(item.src_adr));
    copies.sizes.push_back(item.nbytes);
  }
  std::vector<Timed> sides = {
      timed_list(list), [&] { return seconds_of([&] { by_hand::copy_each(copies, stream); }); }};
#if CUDART_VERSION >= 13000
  sides.push_back([&] { return seconds_of([&] { by_hand::copy_batch(copies, stream); }); });
#endif
  Samples samples = alternate(rounds, sides);
  std::string const name = name_of(pieces, pinned ? "pinned host" : "pageable host", "GPU");
  rows.push_back({name, "a loop of cudaMemcpyAsync", Measure::speedup,
                  pinned ? std::nullopt : std::optional<double>(3), samples[0], samples[1],
                  pieces.span() / 2});
  if (samples.size() > 2)
    rows.push_back({name, "cudaMemcpyBatchAsync", Measure::slowdown,
                    pinned ? std::optional<double>(1.1) : std::nullopt, samples[0], samples[2],
                    pieces.span() / 2});
}

/* The page cache has the file. */
void measure_gpu_and_file(int rounds, Pieces const &pieces, bool loads, std::vector<Ratio> &rows) {
  Place file(row_named("file")), gpu(row_named("cuda"));
  Block in_file(file.context(), pieces.span()), far(gpu.context(), pieces.span());
  Place const &from = loads ? file : gpu, &to = loads ? gpu : file;
  Block const &src = loads ? in_file : far, &dst = loads ? far : in_file;
  auto list = pieces.items(from.context(), src, to.context(), dst);
  auto whole = [&] {
    return seconds_of(
        [&] { check(umem_copy_to(from.context(), src, to.context(), dst, pieces.span() / 2)); });
  };
  Samples samples = alternate(rounds, {timed_list(list), whole});
  rows.push_back({name_of(pieces, loads ? "cached file" : "GPU", loads ? "GPU" : "file"),
                  "one copy of as many bytes", Measure::speedup,
                  pieces.length >= 131072 ? 0.8 : 0.5, samples[0], samples[1], pieces.span() / 2});
}

void measure_gpu_lists(int rounds, std::size_t count, std::vector<Ratio> &rows) {
  for (std::size_t length : {32768, 131072}) {
    Pieces pieces(count, length);
    for (bool pinned : {true, false}) measure_to_gpu(rounds, pieces, pinned, rows);
    for (bool loads : {true, false}) measure_gpu_and_file(rounds, pieces, loads, rows);
  }
}
#endif

} // namespace

void measure_many(Effort const &effort, std::vector<Ratio> &rows) {
  std::size_t count = effort.sizes.back() < (std::size_t{64} << 20) ? 100 : 10000;
  for (std::size_t length : {64, 4096, 32768}) {
    Pieces pieces(count, length);
    measure_memory(effort.short_rounds, pieces, rows);
    measure_file(effort.short_rounds, pieces, rows);
  }
  for (std::size_t row : {256, 4096})
    measure_rows(effort.long_rounds / 3 + 1, row, 10 * count, "host", rows);
#if UMEM_BENCH_URING
  for (std::size_t length : {4096, 32768, 131072})
    measure_cold(effort.long_rounds / 3 + 1, Pieces(count / (length > 65536 ? 4 : 1), length),
                 rows);
#endif
#if UMEM_BENCH_CUDA
  if (why_no_gpu().empty()) {
    for (std::size_t row : {64, 256, 4096})
      measure_rows(effort.long_rounds / 3 + 1, row, 10 * count, "cuda", rows);
    measure_gpu_lists(effort.long_rounds / 3 + 1, count, rows);
  }
#endif
}

} // namespace bench
