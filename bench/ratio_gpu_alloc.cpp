/* ratio_gpu_alloc.cpp - allocate and free: pinned memory, device memory, device memory of a
 * pool. */
#include "ratio_gpu.h"

#include "by_hand_cuda.h"
#include "heaps.h"
#include "sizes.h"

#include <cuda.h>

#include <stdexcept>
#include <string>

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

template <class Function> Function *driver_function(char const *name) {
  void *found = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSuccess;
#if CUDART_VERSION >= 12050
  check_cuda(cudaGetDriverEntryPointByVersion(name, &found, 12020, cudaEnableLegacyStream, &result),
             name);
#else
  check_cuda(cudaGetDriverEntryPoint(name, &found, cudaEnableLegacyStream, &result), name);
#endif
  if (!found || result != cudaDriverEntryPointSuccess)
    throw std::runtime_error(std::string("the driver lacks ") + name);
  return reinterpret_cast<Function *>(found);
}

/* The calls that umem makes for a block of a stream, and nothing else. The row tells the work of
 * umem itself. */
class DriverCalls {
public:
  void pair(std::size_t size, CUmemoryPool pool, CUstream stream) {
    CUdeviceptr address = 0;
    ask(stream);
    check_driver(exchange_mode_(&mode_));
    check_driver(alloc_(&address, size, pool, stream));
    check_driver(exchange_mode_(&mode_));
    ask(stream);
    check_driver(free_(address, stream));
  }

private:
  static void check_driver(CUresult error) {
    if (error != CUDA_SUCCESS) throw std::runtime_error("a call of the driver has failed");
  }
  void ask(CUstream stream) {
    CUcontext context = nullptr;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    check_driver(get_current_(&context));
    check_driver(is_capturing_(stream, &status));
  }

  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
  decltype(&cuCtxGetCurrent) get_current_ =
      driver_function<decltype(cuCtxGetCurrent)>("cuCtxGetCurrent");
  decltype(&cuStreamIsCapturing) is_capturing_ =
      driver_function<decltype(cuStreamIsCapturing)>("cuStreamIsCapturing");
  decltype(&cuThreadExchangeStreamCaptureMode) exchange_mode_ =
      driver_function<decltype(cuThreadExchangeStreamCaptureMode)>(
          "cuThreadExchangeStreamCaptureMode");
  decltype(&cuMemAllocFromPoolAsync) alloc_ =
      driver_function<decltype(cuMemAllocFromPoolAsync)>("cuMemAllocFromPoolAsync");
  decltype(&cuMemFreeAsync) free_ = driver_function<decltype(cuMemFreeAsync)>("cuMemFreeAsync");
};

} // namespace

void measure_gpu_ordered(Effort const &effort, std::vector<Ratio> &rows) {
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
  DriverCalls calls;
  add_row(
      effort, rows,
      {"cuda-async alloc+free, 256 B", "the driver's calls for it", Measure::slowdown, {}, {}, {}},
      pair_of(ordered, 256), [&] { calls.pair(256, pool, stream); });
  by_hand::check_cuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

void measure_gpu_alloc(Effort const &effort, std::vector<Ratio> &rows) {
  measure_pinned(effort, rows);
  measure_device(effort, rows);
}

} // namespace bench
