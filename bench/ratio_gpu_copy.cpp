/* ratio_gpu_copy.cpp - whole arrays between host and device, of pinned and of pageable memory, and
 * within a device. Both sides use the same two blocks, all bytes of which have been written. */
#include "ratio_gpu.h"

#include "by_hand_cuda.h"
#include "place.h"
#include "sizes.h"

namespace bench {
namespace {

struct Direction {
  cudaMemcpyKind kind;
  char const *name;
  std::optional<double> target; /* of the largest arrays */
};

/* Host memory of one kind. */
struct Memory {
  char const *row, *name;
  std::vector<std::size_t> sizes;
  std::size_t promised_from; /* bytes */
  Direction directions[2];
};

void measure_between(Effort const &effort, std::vector<Ratio> &rows, Memory const &memory,
                     Direction const &direction, std::size_t size) {
  Place host(row_named(memory.row)), device(row_named("cuda"));
  Block near(host.context(), size), far(device.context(), size);
  bool away = direction.kind == cudaMemcpyHostToDevice;
  Place const &from = away ? host : device, &to = away ? device : host;
  Block const &src = away ? near : far, &dst = away ? far : near;
  std::optional<double> target;
  if (size >= memory.promised_from) target = direction.target;
  add_row(
      effort, rows,
      {memory.name + std::string(" ") + direction.name + ", " + size_text(size),
       "cudaMemcpy, the same memory",
       Measure::speedup,
       target,
       {},
       {},
       size},
      [&] { check(umem_copy_to(from.context(), src, to.context(), dst, size)); },
      [&] { by_hand::copy(dst, src, size, direction.kind); });
}

/* cudaMemcpy does not wait for copies within a device; umem's calls finish before they return. */
void measure_within(Effort const &effort, std::vector<Ratio> &rows, std::size_t size) {
  Place device(row_named("cuda"));
  Block src(device.context(), size), dst(device.context(), size);
  add_row(
      effort, rows,
      {"device to device, " + size_text(size),
       "cudaMemcpy, synchronize",
       Measure::speedup,
       {},
       {},
       {},
       size},
      [&] { check(umem_copy_to(device.context(), src, device.context(), dst, size)); },
      [&] {
        by_hand::copy(dst, src, size, cudaMemcpyDeviceToDevice);
        by_hand::finish();
      });
}

} // namespace

void measure_gpu_copy(Effort const &effort, std::vector<Ratio> &rows) {
  constexpr std::size_t gibibyte = 1024 * mebibyte;
  Memory const memories[] = {
      {"cuda-host",
       "pinned",
       {256 * mebibyte, gibibyte},
       256 * mebibyte,
       {{cudaMemcpyHostToDevice, "host to device", 0.98},
        {cudaMemcpyDeviceToHost, "device to host", 0.98}}},
      {"host",
       "pageable",
       {mebibyte, 4 * mebibyte, 16 * mebibyte, 64 * mebibyte, 256 * mebibyte, gibibyte},
       gibibyte,
       {{cudaMemcpyHostToDevice, "host to device", 4.5},
        {cudaMemcpyDeviceToHost, "device to host", 2.4}}}};
  for (Memory const &memory : memories)
    for (Direction const &direction : memory.directions)
      for (std::size_t size : wanted(effort, memory.sizes))
        measure_between(effort, rows, memory, direction, size);
  for (std::size_t size : wanted(effort, {gibibyte})) measure_within(effort, rows, size);
}

} // namespace bench
