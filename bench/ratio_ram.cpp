/* ratio_ram.cpp - long copies and sets in RAM, compared with memcpy and memset by one thread, and
 * by the best of several numbers of threads. */
#include "ratio.h"

#include "by_hand_threads.h"
#include "place.h"
#include "sizes.h"

#include <cstring>

namespace bench {
namespace {

/* Below this size nobody takes several threads. */
constexpr std::size_t piece = std::size_t{4} << 20;

/* Bytes by which the destination begins after a page: at 16, where large blocks of malloc begin,
 * some processors copy slowly (c/src/base/system.h). */
constexpr std::size_t shifts[] = {0, 16};

/* The second time: the caches have what the work itself leaves there, and not what the one before
 * it has left. */
Timed timed(std::function<void()> work) {
  return [work] { return seconds_of_second(work); };
}

/* What umem does, against the same by hand: part(to, from, bytes) does a part of it. */
template <typename Part>
void add_rows(Effort const &effort, std::vector<Ratio> &rows, std::string const &operation,
              std::string const &against, std::size_t size, std::function<void()> const &ours,
              Part part) {
  std::vector<Timed> candidates = {timed(ours)};
  std::vector<unsigned> counts{1};
  if (size >= piece) counts = by_hand::thread_counts();
  for (unsigned count : counts)
    candidates.push_back(timed([=] {
      by_hand::in_threads(count, size, count == 1 ? size : piece,
                          [=](unsigned, std::size_t at, std::size_t n) { part(at, n); });
    }));
  Samples samples = alternate(effort.long_rounds, candidates);
  Ratio row{operation + ", " + size_text(size), against, Measure::speedup, 0.95, {}, {}, size};
  add_best(rows, row, samples, counts);
  if (counts.size() == 1) return;
  row.against += ", 1 thread";
  row.target.reset();
  row.ours = samples[0];
  row.theirs = samples[1];
  rows.push_back(row);
}

void measure_size(Effort const &effort, std::vector<Ratio> &rows, std::size_t size) {
  umemHost host;
  check(umemHost_ctor(&host));
  by_hand::HugeMemory memory(size), other(size + shifts[1]);
  char *source = memory.bytes();
  std::memset(source, 1, size);
  std::memset(other.bytes(), 2, size + shifts[1]);
  auto from = reinterpret_cast<std::uintptr_t>(source);
  for (std::size_t shift : shifts) {
    char *target = other.bytes() + shift;
    auto at = reinterpret_cast<std::uintptr_t>(target);
    add_rows(
        effort, rows, shift ? "RAM to RAM, 16 B after a page" : "RAM to RAM", "memcpy", size,
        [&host, from, at, size] { check(umem_copy_to(&host, from, &host, at, size)); },
        [=](std::size_t first, std::size_t n) { std::memcpy(target + first, source + first, n); });
  }
  char *target = other.bytes();
  auto to = reinterpret_cast<std::uintptr_t>(target);
  add_rows(
      effort, rows, "set in RAM", "memset", size,
      [&host, to, size] { check(umem_set(&host, to, 3, size)); },
      [=](std::size_t first, std::size_t n) { std::memset(target + first, 3, n); });
  umem_dtor(&host);
}

} // namespace

/* Below 8 MiB the calling thread copies alone. */
void measure_ram(Effort const &effort, std::vector<Ratio> &rows) {
  constexpr std::size_t mebibyte = std::size_t{1} << 20;
  for (std::size_t size :
       {std::size_t{64} << 10, mebibyte, 4 * mebibyte, 8 * mebibyte, 16 * mebibyte})
    if (size < effort.sizes[0]) measure_size(effort, rows, size);
  for (std::size_t size : effort.sizes) measure_size(effort, rows, size);
}

} // namespace bench
