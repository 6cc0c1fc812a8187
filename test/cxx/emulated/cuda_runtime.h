/* cuda_runtime.h - stands in for CUDA's header: a launch calls the kernel once for each thread, one
 * after the other. So the compiler of the host compiles kernels whose threads do not work together,
 * and tests run them without a GPU. */
#ifndef TEST_CXX_EMULATED_CUDA_RUNTIME_H
#define TEST_CXX_EMULATED_CUDA_RUNTIME_H

#define __host__
#define __device__
#define __global__
#define __launch_bounds__(...)

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
inline dim3 blockIdx, threadIdx, blockDim;

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
  for (blockIdx.x = 0; blockIdx.x < config->gridDim.x; blockIdx.x++)
    for (threadIdx.z = 0; threadIdx.z < blockDim.z; threadIdx.z++)
      for (threadIdx.y = 0; threadIdx.y < blockDim.y; threadIdx.y++)
        for (threadIdx.x = 0; threadIdx.x < blockDim.x; threadIdx.x++) kernel(arguments...);
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

#endif
