/* ratio_stage.cpp - copies through host memory, compared with the slower of their two halves.
 *
 * The fake device of the tests stands for one that shares no route with files: its addresses mean
 * nothing to the CPU, and it moves its bytes at the speed of memcpy. */
#include "ratio.h"

#include "place.h"
#include "sizes.h"

namespace bench {

Ratio staged_ratio(char const *from, char const *to, std::size_t size, int rounds) {
  Place source(row_named(from)), destination(row_named(to)), memory(row_named("host"));
  Block src(source.context(), size), dst(destination.context(), size), ram(memory.context(), size);
  auto timed = [&](Place &one, Block &one_block, Place &other, Block &other_block) {
    return [&, size] {
      return seconds_of([&] {
        check(umem_copy_to(one.context(), one_block, other.context(), other_block, size));
      });
    };
  };
  Samples samples =
      alternate(rounds, {timed(source, src, destination, dst), timed(source, src, memory, ram),
                         timed(memory, ram, destination, dst)});
  bool reading = quantile(samples[1], 0.5) > quantile(samples[2], 0.5);
  std::string leg = reading ? std::string(from) + " to host" : std::string("host to ") + to;
  return {"staged copy " + std::string(from) + " to " + to + ", " + size_text(size),
          leg + ", the slower leg",
          Measure::slowdown,
          1.15,
          samples[0],
          samples[reading ? 1 : 2],
          size};
}

void measure_stage(Effort const &effort, std::vector<Ratio> &rows) {
  for (std::size_t size : effort.sizes)
    for (char const *from : {"fake", "file"})
      for (char const *to : {"fake", "file"})
        rows.push_back(staged_ratio(from, to, size, effort.long_rounds));
}

} // namespace bench
