/* cuda_rt.c - chooses the table of CUDA's functions: cuda_driver.c fills it from NVIDIA's driver.
 *
 * In builds with the toolkit CUDA's runtime, 12.2 and later, answers what it alone knows: which GPU
 * the program has chosen by cudaSetDevice, the names of errors, and the versions. It is linked
 * statically and opens the driver when it is first called, so the library loads on machines without
 * one. */
#include "cuda/cuda_rt.h"

static umemCudaRt const *replacement;

void umemCudaRt_replace(umemCudaRt const *table) { replacement = table; }

#if defined(UMEM_WITH_CUDA)

/* CUDA's headers would replace functions by those of a default stream per thread. */
#undef CUDA_API_PER_THREAD_DEFAULT_STREAM
#undef __CUDA_API_PER_THREAD_DEFAULT_STREAM

#include <cuda_runtime_api.h>
#include <pthread.h>

#if CUDART_VERSION < 12020
#error "umem needs CUDA 12.2 or later"
#endif

/* Most of the driver's numbers are the runtime's too; those that are not have no name there. */
static char const *error_name(int error) { return cudaGetErrorName((cudaError_t)error); }
static char const *error_string(int error) { return cudaGetErrorString((cudaError_t)error); }
static int driver_version(int *version) { return (int)cudaDriverGetVersion(version); }
static int runtime_version(int *version) { return (int)cudaRuntimeGetVersion(version); }

/* Leaves no error in the runtime, which may be the program's own. */
static int get_device(int *device) {
  cudaError_t error = cudaGetDevice(device);
  if (error != cudaSuccess) cudaGetLastError();
  return (int)error;
}

static char const *absence(void) { return NULL; }

static umemCudaRt table;

static void fill(void) {
  table = *umemCudaDriver_get(umemCufileRt_get);
  table.error_name = error_name;
  table.error_string = error_string;
  table.driver_version = driver_version;
  table.runtime_version = runtime_version;
  table.get_device = get_device;
  table.absence = absence;
}

umemCudaRt const *umemCudaRt_get(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  if (replacement) return replacement;
  pthread_once(&once, fill);
  return &table;
}

#elif defined(UMEM_CUDA_DRIVER)

umemCudaRt const *umemCudaRt_get(void) {
  return replacement ? replacement : umemCudaDriver_get(umemCufileRt_get);
}

#else

umemCudaRt const *umemCudaRt_get(void) { return replacement; }

#endif
