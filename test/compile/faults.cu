/* faults.cu - what goes wrong on a real GPU is reported by a status: memory that is freed, memory
 * that is out, a pool at its bound, and at last a kernel that crashes.
 *
 * Exit code: 0 when all is reported as promised; 1 when not; 3 without a GPU. */
#include <cstdio>
#include <cstring>

#include <cuda_runtime.h>
#include <umem.h>

namespace {

__global__ void crash(double *x) { *x = 1; }

bool expect(bool holds, char const *what, void const *ctx) {
  std::printf("%s: %s %s\n", holds ? "right" : "WRONG", what, umem_get_message(ctx));
  return holds;
}

/* That the last call failed as status with these words, and left CUDA's last error clean; forgets
 * it. */
bool failed(void *ctx, umemStatusType status, char const *words, char const *what) {
  bool right = umem_thread_status() == status && std::strstr(umem_thread_message(), words) &&
               cudaGetLastError() == cudaSuccess;
  expect(right, what, ctx);
  umem_thread_clear();
  umem_clear_status(ctx);
  return right;
}

bool freed_memory_is_refused(umemHost *host) {
  umemCuda ctx;
  char bytes[100];
  uintptr_t there = reinterpret_cast<uintptr_t>(bytes);
  bool right = umemCuda_ctor(&ctx, 0) == umemOK;
  uintptr_t adr = umem_alloc(&ctx, 64 << 20);
  umem_free(&ctx, adr);
  umem_free(&ctx, adr);
  right &= failed(&ctx, umemValueError, "not a live block", "a second free");
  umem_copy_to(&ctx, adr, host, there, sizeof bytes);
  right &= failed(&ctx, umemValueError, "cudaErrorInvalidValue", "a copy from freed memory");
  umem_copy_from(&ctx, adr, host, there, sizeof bytes);
  right &= failed(&ctx, umemValueError, "cudaErrorInvalidValue", "a copy to freed memory");
  umem_set(&ctx, adr, 0, 100);
  right &= failed(&ctx, umemValueError, "cudaErrorInvalidValue", "a set of freed memory");
  umem_dtor(&ctx);
  return right;
}

bool exhausted_memory_is_reported() {
  umemCuda ctx;
  bool right = umemCuda_ctor(&ctx, 0) == umemOK;
  umem_alloc(&ctx, size_t{1} << 46);
  right &= failed(&ctx, umemMemoryError, "bytes are free on GPU 0", "more than the GPU has");
  umem_dtor(&ctx);
  return right;
}

/* The driver rounds the bound up: to 32 MiB. */
bool pools_have_a_bound() {
  umemCudaAsync ctx;
  umemCudaAsyncOptions options = UMEM_CUDA_ASYNC_OPTIONS_INIT;
  options.maximum_size = size_t{64} << 20;
  bool right = umemCudaAsync_ctor_with(&ctx, 0, UMEM_STREAM_NEW, &options) == umemOK;
  int blocks = 0;
  while (blocks < 100 && umem_alloc(&ctx, 8 << 20)) blocks++;
  right &= failed(&ctx, umemMemoryError, "out of memory", "more than the pool may hold");
  right &= expect(blocks >= 4 && blocks <= 8, "as many blocks as fit", &ctx);
  umem_dtor(&ctx);
  return right;
}

/* Nothing works afterwards: the last of all. */
bool a_crash_is_reported(umemHost *host) {
  umemCudaAsync ctx;
  char bytes[100] = "";
  bool right = umemCudaAsync_ctor(&ctx, 0, UMEM_STREAM_NEW) == umemOK;
  uintptr_t adr = umem_alloc(&ctx, sizeof bytes);
  crash<<<1, 1, 0, reinterpret_cast<cudaStream_t>(umemCudaAsync_stream(&ctx))>>>(nullptr);
  right &= umem_synchronize(&ctx) == umemRuntimeError;
  right &= expect(std::strstr(umem_thread_message(), "new process") != nullptr, "a crash", &ctx);
  right &=
      umem_copy_from(&ctx, adr, host, reinterpret_cast<uintptr_t>(bytes), 100) == umemRuntimeError;
  right &= umem_alloc(&ctx, 100) == 0 && umem_thread_status() == umemRuntimeError;
  umem_free(&ctx, adr);
  umem_dtor(&ctx);
  return expect(right, "every call after it", &ctx);
}

} // namespace

int main() {
  umemHost host;
  umemHost_ctor(&host);
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || !devices) return 3;
  bool right = freed_memory_is_refused(&host);
  right &= exhausted_memory_is_reported();
  right &= pools_have_a_bound();
  right &= a_crash_is_reported(&host);
  umem_dtor(&host);
  return right ? 0 : 1;
}
