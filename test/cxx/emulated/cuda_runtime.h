/* cuda_runtime.h - stands in for CUDA's header: a launch calls the kernel once for each thread. So
 * the compiler of the host compiles kernels, and tests run them without a GPU. */
#pragma once

#include <cstddef>
#include <cstring>
#include <pthread.h>
#include <thread>
#include <vector>

#define __host__
#define __device__
#define __global__
#define __launch_bounds__(...)
#define __shared__ static /* blocks run one after the other */

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
inline dim3 blockIdx, blockDim, gridDim;
inline thread_local dim3 threadIdx;

/* While one lives, the threads of a block run at the same time, and so may wait for each other. All
 * others run one after the other, which takes a hundredth of the time. */
class EmulatedTogether {
public:
  EmulatedTogether() { is_on = true; }
  EmulatedTogether(EmulatedTogether const &) = delete;
  ~EmulatedTogether() { is_on = false; }

  static inline bool is_on = false;
  static inline pthread_barrier_t barrier;
};
inline void __syncthreads() { pthread_barrier_wait(&EmulatedTogether::barrier); }

struct uint4 {
  unsigned x, y, z, w;
};
/* Accesses of 16 bytes are aligned on a GPU. */
inline void __stwb(uint4 *adr, uint4 value) {
  if (reinterpret_cast<unsigned long long>(adr) % sizeof value != 0) __builtin_trap();
  __builtin_memcpy(adr, &value, sizeof value);
}

enum cudaError_t { cudaSuccess, cudaErrorMemoryAllocation, cudaErrorStreamCaptureImplicit };
enum cudaStreamCaptureStatus { cudaStreamCaptureStatusNone };
using cudaStream_t = struct CUstream_st *;
inline cudaStream_t const cudaStreamLegacy = nullptr;

struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  cudaStream_t stream;
};

inline unsigned long long emulated_launches = 0;

template <class... P>
cudaError_t cudaLaunchKernelEx(cudaLaunchConfig_t const *config, void (*kernel)(P...),
                               P... arguments) {
  emulated_launches++;
  blockDim = config->blockDim;
  gridDim = config->gridDim;
  pthread_barrier_init(&EmulatedTogether::barrier, nullptr, blockDim.x * blockDim.y * blockDim.z);
  for (blockIdx.x = 0; blockIdx.x < gridDim.x; blockIdx.x++) {
    std::vector<std::thread> together;
    dim3 at;
    auto run = [kernel, arguments...](dim3 thread) {
      threadIdx = thread;
      kernel(arguments...);
    };
    for (at.z = 0; at.z < blockDim.z; at.z++)
      for (at.y = 0; at.y < blockDim.y; at.y++)
        for (at.x = 0; at.x < blockDim.x; at.x++)
          if (EmulatedTogether::is_on)
            together.emplace_back(run, at);
          else
            run(at);
    for (std::thread &thread : together) thread.join();
  }
  pthread_barrier_destroy(&EmulatedTogether::barrier);
  return cudaSuccess;
}
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost };
inline cudaError_t cudaMemcpyAsync(void *to, void const *from, std::size_t nbytes, cudaMemcpyKind,
                                   cudaStream_t) {
  std::memcpy(to, from, nbytes);
  return cudaSuccess;
}
inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus *) {
  return cudaSuccess;
}
inline cudaError_t cudaGetDevice(int *device) {
  *device = 0;
  return cudaSuccess;
}
inline cudaError_t cudaGetLastError() { return cudaSuccess; }
inline char const *cudaGetErrorString(cudaError_t) { return ""; }
