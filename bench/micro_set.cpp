/* micro_set.cpp - sets of blocks that have been written before. */
#include "micro.h"

#include "array.h"

namespace bench {

void register_set(std::vector<std::size_t> const &sizes) {
  for (std::size_t size : sizes) {
    for (MeasuredRow const &row : measured_rows())
      add_sized(std::string("set/") + row.backend->name + "/umem", size,
                [&row, size](benchmark::State &state) {
                  Place place(*row.backend);
                  Block block(place.context(), size);
                  for (auto _ : state) {
                    check(umem_set(place.context(), block, 1, size));
                    place.finish();
                  }
                });
    for (Kind kind : kinds)
      add_sized(std::string("set/") + name_of(kind) + "/" + filling(kind).name, size,
                [kind, size](benchmark::State &state) {
                  Array array(kind, size);
                  for (auto _ : state) {
                    filling(kind).fill(array, 1);
                    benchmark::ClobberMemory();
                  }
                });
  }
}

} // namespace bench
