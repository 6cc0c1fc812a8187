/* ratio_gpu_alloc.cpp - allocate and free: pinned memory, device memory, device memory of a pool. */
#include "ratio_gpu.h"

#include "by_hand_cuda.h"
#include "heaps.h"
#include "sizes.h"

namespace bench {
namespace {

using by_hand::check_cuda;

/* One block of umem, allocated and freed. */
Work pair_of(Place const &place, std::size_t size) {
  return [context = place.context(), size] {
    std::uintptr_t address = umem_alloc(context, size);
    if (address == umem_null(context)) check(umem_get_status(context));
    umem_free(context, address);
  };
}

void pin_by_hand(std::size_t size) {
  void *bytes = nullptr;
  check_cuda(cudaMallocHost(&bytes, size), "cudaMallocHost");
  check_cuda(cudaFreeHost(bytes), "cudaFreeHost");
}

void allocate_by_hand(std::size_t size) {
  void *bytes = nullptr;
  check_cuda(cudaMalloc(&bytes, size), "cudaMalloc");
  check_cuda(cudaFree(bytes), "cudaFree");
}

void allocate_by_hand(std::size_t size, cudaMemPool_t pool, cudaStream_t stream) {
  void *bytes = nullptr;
  check_cuda(cudaMallocFromPoolAsync(&bytes, size, pool, stream), "cudaMallocFromPoolAsync");
  check_cuda(cudaFreeAsync(bytes, stream), "cudaFreeAsync");
}

void measure_pinned(Effort const &effort, std::vector<Ratio> &rows) {
  Place pinned(row_named("cuda-host"));
  for (std::size_t size :
       wanted(effort, {64 * kibibyte, mebibyte, 64 * mebibyte, 1024 * mebibyte})) {
    std::optional<double> target;
    if (size == 1024 * mebibyte) target = 5;
    add_row(effort, rows,
            {"cuda-host alloc+free, " + size_text(size),
             "cudaMallocHost+cudaFreeHost",
             Measure::speedup,
             target,
             {},
             {}},
            pair_of(pinned, size), [size] { pin_by_hand(size); });
  }
}

void measure_device(Effort const &effort, std::vector<Ratio> &rows) {
  Place device(row_named("cuda"));
  for (std::size_t size : wanted(effort, {256, mebibyte, 256 * mebibyte}))
    add_row(effort, rows,
            {"cuda alloc+free, " + size_text(size),
             "cudaMalloc+cudaFree",
             Measure::slowdown,
             {},
             {},
             {}},
            pair_of(device, size), [size] { allocate_by_hand(size); });
}

void measure_ordered(Effort const &effort, std::vector<Ratio> &rows) {
  Place ordered(row_named("cuda-async"));
  by_hand::CudaStream stream;
  by_hand::CudaPool pool;
  for (std::size_t size : wanted(effort, {256, mebibyte}))
    add_row(effort, rows,
            {"cuda-async alloc+free, " + size_text(size),
             "cudaMallocAsync+cudaFreeAsync",
             Measure::slowdown,
             {},
             {},
             {}},
            pair_of(ordered, size), [&] { allocate_by_hand(size, pool, stream); });
  by_hand::check_cuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

} // namespace

void measure_gpu_alloc(Effort const &effort, std::vector<Ratio> &rows) {
  measure_pinned(effort, rows);
  measure_device(effort, rows);
  measure_ordered(effort, rows);
}

} // namespace bench
