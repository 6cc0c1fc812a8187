/* micro_alloc.cpp - alloc and free: one size in a tight pair, mixed sizes, large blocks. */
#include "micro.h"

#include "by_hand.h"
#include "heaps.h"
#include "patterns.h"

#include <fcntl.h>
#include <unistd.h>

namespace bench {
namespace {

constexpr std::size_t tight_size = 64;
constexpr std::size_t large_from = std::size_t{1} << 20;

template <typename Heap> void run_pairs(benchmark::State &state, Heap heap, std::size_t size) {
  for (auto _ : state) {
    std::uintptr_t address = heap.alloc(size);
    benchmark::DoNotOptimize(address);
    heap.free(address);
  }
}

template <typename Heap> void run_mixed(benchmark::State &state, Heap heap) {
  std::vector<Step> steps = mixed_steps(1 << 16, mixed_live);
  Live<Heap> live(heap, mixed_live, steps);
  std::size_t next = 0;
  for (auto _ : state) live.take(steps[next++ % steps.size()]);
}

/* Without umem, who wants space in a file makes it longer. */
void run_file_growth(benchmark::State &state, std::size_t size) {
  TempFile file;
  by_hand::Descriptor fd(file.path(), O_RDWR);
  for (auto _ : state) {
    check_system(posix_fallocate(fd, 0, static_cast<off_t>(size)) == 0, "posix_fallocate");
    check_system(ftruncate(fd, 0) == 0, "ftruncate");
  }
}

void register_row(Backend const &row, std::vector<std::size_t> const &sizes) {
  auto name = [&](char const *group) { return std::string(group) + "/" + row.name + "/umem"; };
  add(name("alloc-tight"), [&row](benchmark::State &state) {
    Place place(row);
    run_pairs(state, Umem{place.context()}, tight_size);
  });
  add(name("alloc-mixed"), [&row](benchmark::State &state) {
    Place place(row);
    run_mixed(state, Umem{place.context()});
  });
  for (std::size_t size : sizes)
    if (size >= large_from)
      add(name("alloc-large") + "/" + std::to_string(size), [&row, size](benchmark::State &state) {
        Place place(row);
        run_pairs(state, Umem{place.context()}, size);
      });
}

} // namespace

void register_alloc(std::vector<std::size_t> const &sizes) {
  for (MeasuredRow const &row : measured_rows()) register_row(*row.backend, sizes);
  for (MeasuredRow const &row : measured_pools()) register_row(*row.backend, {});
  add("alloc-tight/memory/malloc",
      [](benchmark::State &state) { run_pairs(state, Malloc{}, tight_size); });
  add("alloc-mixed/memory/malloc", [](benchmark::State &state) { run_mixed(state, Malloc{}); });
  for (std::size_t size : sizes) {
    if (size < large_from) continue;
    add("alloc-large/memory/malloc/" + std::to_string(size),
        [size](benchmark::State &state) { run_pairs(state, Malloc{}, size); });
    for (char const *kind : {"file", "mapping"})
      add(std::string("alloc-large/") + kind + "/fallocate+ftruncate/" + std::to_string(size),
          [size](benchmark::State &state) { run_file_growth(state, size); });
  }
}

} // namespace bench
