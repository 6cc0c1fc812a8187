/* umem/detail/cuda_call.cuh - checked launches of kernels and other calls of the CUDA runtime.
 * Only nvcc compiles it, within the program and with the runtime that the program links. */
#ifndef UMEM_DETAIL_CUDA_CALL_CUH
#define UMEM_DETAIL_CUDA_CALL_CUH

#include <umem/context.hpp>
#include <umem/error.hpp>
#include <umem/extents.hpp>
#include <umem/place.hpp>

#include <cstdint>
#include <cuda_runtime.h>
#include <map>
#include <mutex>
#include <string>

namespace umem {
namespace detail {

/* Throws the error of CUDA: umem::memory_error if memory is exhausted, else umem::runtime_error. */
inline void check_cuda(cudaError_t error, char const *what) {
  if (error == cudaSuccess) return;
  static_cast<void>(cudaGetLastError()); /* reported here, not again by a later call */
  std::string text = std::string(what) + ": " + cudaGetErrorString(error);
  if (error == cudaErrorMemoryAllocation) throw memory_error(text);
  throw runtime_error(text);
}

/* A context for each GPU that loops have used. They are never destructed, because CUDA may end
 * before the program. So the primary contexts stay, in which kernels may still run. */
class GpuContexts {
public:
  static Context const &of(int device) {
    thread_local int last = -1; /* of this thread: needs no lock */
    thread_local Context const *context = nullptr;
    if (device != last) {
      context = &find(device);
      last = device;
    }
    return *context;
  }

private:
  static Context const &find(int device) {
    static GpuContexts &all = *new GpuContexts;
    std::lock_guard<std::mutex> lock(all.mutex_);
    auto found = all.contexts_.find(device);
    if (found == all.contexts_.end()) found = all.contexts_.emplace(device, Cuda(device)).first;
    return found->second;
  }

  std::mutex mutex_;
  std::map<int, Context> contexts_;
};

/* Makes a GPU the current one while the object lives, then restores the previous one. */
class CurrentDevice {
public:
  /* device: -1 keeps the current one. */
  explicit CurrentDevice(int device) : device_(device) {
    if (device_ >= 0) {
      GpuContexts::of(device_);
      check_status(umemCuda_enter(&entry_, device_));
    } else {
      enter_current();
    }
  }
  CurrentDevice(CurrentDevice const &) = delete;
  CurrentDevice &operator=(CurrentDevice const &) = delete;
  ~CurrentDevice() { umemCuda_leave(&entry_); } /* records failures for the thread */

  int device() const noexcept { return device_; }

private:
  /* If umem was built without CUDA, it knows no GPU; then the launch makes one current. */
  void enter_current() {
    umemAttempt attempt;
    umemAttempt_begin(&attempt);
    umemCuda_enter(&entry_, -1);
    umemAttempt_end(&attempt);
    if (attempt.type != umemNotSupportedError) check_status(umemAttempt_record(&attempt));
    cudaError_t error = cudaGetDevice(&device_);
    if (error != cudaSuccess) umemCuda_leave(&entry_);
    check_cuda(error, "cudaGetDevice");
  }

  umemCudaEntry entry_ = {};
  int device_;
};

/* The legacy stream by name: 0 is another stream in files compiled for a default stream per thread. */
inline cudaStream_t stream_of(DevicePlace const &place) noexcept {
  return place.stream ? reinterpret_cast<cudaStream_t>(place.stream) : cudaStreamLegacy;
}

/* Throws if the stream is being captured into a graph: a call that waits would break the
 * capture. */
inline void refuse_capture(DevicePlace const &place) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  cudaError_t error = cudaStreamIsCapturing(stream_of(place), &status);
  if (error == cudaErrorStreamCaptureImplicit) /* the legacy stream would wait for the capture */
    static_cast<void>(cudaGetLastError());
  else
    check_cuda(error, "cudaStreamIsCapturing");
  if (error == cudaSuccess && status == cudaStreamCaptureStatusNone) return;
  throw not_supported_error("the stream is being captured into a graph: a loop that waits until it "
                            "is done cannot be recorded");
}

/* Queues kernel(arguments...). */
template <class... Parameters, class... Operands>
void launch(DevicePlace const &place, void (*kernel)(Parameters...), dim3 blocks, dim3 threads,
            Operands const &...arguments) {
  cudaLaunchConfig_t config = {};
  config.gridDim = blocks;
  config.blockDim = threads;
  config.stream = stream_of(place);
  check_cuda(cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...),
             "the launch of a kernel");
}

inline void synchronize(DevicePlace const &place) {
  check_cuda(cudaStreamSynchronize(stream_of(place)), "a kernel");
}

/* The kernels that one call queues on a place. The GPU of the place is current meanwhile. If
 * calls on the place wait, a call that throws waits too: the kernels that it has launched may
 * still use memory. */
class Work {
public:
  explicit Work(DevicePlace const &place) : place_(place), current_(place.device) {
    if (place_.wait) refuse_capture(place_);
  }
  ~Work() {
    if (place_.wait && cudaStreamSynchronize(stream_of(place_)) != cudaSuccess)
      static_cast<void>(cudaGetLastError()); /* the call is already throwing another failure */
  }

  int device() const noexcept { return current_.device(); }

  /* The last step of a call. */
  void finish() {
    if (!place_.wait) return;
    place_.wait = false;
    synchronize(place_);
  }

private:
  DevicePlace place_;
  CurrentDevice current_;
};

/* ---- sizes ---- */

inline constexpr unsigned block_threads = 256;

/* The most elements of one launch: their numbers, rounded up, fit 31 bits. */
inline constexpr index_t launch_elements = index_t(1) << 30;

/* count / size, rounded up. */
inline unsigned blocks_for(index_t count, index_t size) noexcept {
  return static_cast<unsigned>((count + size - 1) / size);
}

/* Calls functor(begin, end) for parts of [begin, end), each small enough for one launch. */
template <int Rank, class Function>
void in_launches(Extents<Rank> const &begin, Extents<Rank> const &end, Function const &functor) {
  double count = 1;
  int k = -1; /* the first dimension that can be halved */
  for (int j = 0; j < Rank; j++) {
    index_t extent = end.at[j] - begin.at[j];
    if (extent <= 0) return;
    if (extent > 1 && k < 0) k = j;
    count *= static_cast<double>(extent);
  }
  if (count <= static_cast<double>(launch_elements)) return functor(begin, end);
  Extents<Rank> low_end = end, high_begin = begin;
  low_end.at[k] = high_begin.at[k] = begin.at[k] + (end.at[k] - begin.at[k]) / 2;
  in_launches(begin, low_end, functor);
  in_launches(high_begin, end, functor);
}

} // namespace detail
} // namespace umem

#endif
