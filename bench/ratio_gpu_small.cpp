/* ratio_gpu_small.cpp - small copies, whose time is that of the call: from a context whose calls
 * finish before they return, and from an ordered one that is waited for each time. */
#include "ratio_gpu.h"

#include "by_hand_cuda.h"
#include "place.h"
#include "sizes.h"

namespace bench {
namespace {

/* What is compared: a copy of size bytes between a block of host memory and one of the device. */
struct Small {
  Place const &host, &device;
  Block const &near, &far;
  char const *memory;
  std::size_t size;
  bool away; /* to the device */
  bool ordered;

  void copy_by_umem() const {
    check(away ? umem_copy_to(host.context(), near, device.context(), far, size)
               : umem_copy_to(device.context(), far, host.context(), near, size));
    if (ordered) check(umem_synchronize(device.context()));
  }

  void copy_by_hand(cudaStream_t stream) const {
    std::uintptr_t dst = away ? far : near, src = away ? near : far;
    cudaMemcpyKind kind = away ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost;
    if (ordered)
      by_hand::copy_async(dst, src, size, kind, stream);
    else
      by_hand::copy(dst, src, size, kind);
  }
};

Ratio row_of(Small const &small) {
  std::optional<double> target;
  if (small.away && std::string(small.memory) == "pageable") target = 1.05;
  return {std::string(small.ordered ? "cuda-async, " : "cuda, ") + small.memory +
              (small.away ? " host to device, " : " device to host, ") + size_text(small.size),
          small.ordered ? "cudaMemcpyAsync, synchronize" : "cudaMemcpy",
          Measure::slowdown,
          target,
          {},
          {}};
}

} // namespace

void measure_gpu_small(Effort const &effort, std::vector<Ratio> &rows) {
  by_hand::CudaStream stream;
  for (bool ordered : {false, true})
    for (char const *memory : {"pageable", "pinned"})
      for (bool away : {true, false})
        for (std::size_t size : wanted(effort, {4 * kibibyte, 64 * kibibyte})) {
          Place host(row_named(std::string(memory) == "pinned" ? "cuda-host" : "host"));
          Place device(row_named(ordered ? "cuda-async" : "cuda"));
          Block near(host.context(), size), far(device.context(), size);
          device.finish(); /* the other stream does not wait for the first write */
          Small small = {host, device, near, far, memory, size, away, ordered};
          add_row(
              effort, rows, row_of(small), [&] { small.copy_by_umem(); },
              [&] { small.copy_by_hand(stream); });
        }
}

} // namespace bench
