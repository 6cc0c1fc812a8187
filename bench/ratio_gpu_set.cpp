/* ratio_gpu_set.cpp - sets of device memory. */
#include "ratio_gpu.h"

#include "by_hand_cuda.h"
#include "place.h"
#include "sizes.h"

namespace bench {
namespace {

void set_by_hand(std::uintptr_t address, std::size_t size) {
  by_hand::check_cuda(cudaMemset(reinterpret_cast<void *>(address), 1, size), "cudaMemset");
  by_hand::finish();
}

} // namespace

void measure_gpu_set(Effort const &effort, std::vector<Ratio> &rows) {
  Place device(row_named("cuda"));
  for (std::size_t size : wanted(effort, {4 * kibibyte, 1024 * mebibyte})) {
    Block block(device.context(), size);
    add_row(
        effort, rows,
        {"cuda set, " + size_text(size),
         "cudaMemset, synchronize",
         Measure::slowdown,
         {},
         {},
         {},
         size},
        [&] { check(umem_set(device.context(), block, 1, size)); },
        [&] { set_by_hand(block, size); });
  }
}

} // namespace bench
