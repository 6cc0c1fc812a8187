/* micro_copy.cpp - copies between all ordered pairs of contexts, from warm to warm: all bytes of
 * both sides have been written, and files are in the page cache. */
#include "micro.h"

#include "array.h"

namespace bench {
namespace {

void run_umem(benchmark::State &state, Backend const &from, Backend const &to, std::size_t size) {
  Place source(from), destination(to);
  Block src(source.context(), size), dst(destination.context(), size);
  auto copy = [&] {
    check(umem_copy_to(source.context(), src, destination.context(), dst, size));
    source.finish(), destination.finish();
  };
  copy();
  for (auto _ : state) copy();
}

void run_by_hand(benchmark::State &state, Way const &way, std::size_t size) {
  Array source(way.from, size), destination(way.to, size);
  way.copy(source, destination);
  for (auto _ : state) {
    way.copy(source, destination);
    benchmark::ClobberMemory();
  }
}

} // namespace

void register_copy(std::vector<std::size_t> const &sizes) {
  for (std::size_t size : sizes) {
    for (MeasuredRow const &from : measured_rows())
      for (MeasuredRow const &to : measured_rows())
        add_sized(std::string("copy/") + from.backend->name + "/" + to.backend->name + "/umem",
                  size, [&from, &to, size](benchmark::State &state) {
                    run_umem(state, *from.backend, *to.backend, size);
                  });
    for (Kind from : kinds)
      for (Kind to : kinds)
        for (Way const &way : ways(from, to))
          add_sized(std::string("copy/") + name_of(from) + "/" + name_of(to) + "/" + way.name, size,
                    [way, size](benchmark::State &state) { run_by_hand(state, way, size); });
  }
}

} // namespace bench
