/* umem/cuda.h - memory of NVIDIA GPUs.
 *
 * The types are always declared. In a build without CUDA, which this version always is, every
 * constructor records umemNotSupportedError with how to get CUDA, and returns it; the context then
 * answers each call with that status. */
#ifndef UMEM_CUDA_H
#define UMEM_CUDA_H

#include <umem/base.h>

/* Asks umemCudaAsync_ctor for a stream of its own. */
#define UMEM_STREAM_NEW UINTPTR_MAX

/* Device memory of one GPU; calls finish before they return. */
typedef struct umemCuda {
  umemVirtual super;
  void *impl; /* owned */
  uintptr_t reserved[7];
} umemCuda;

/* Page-locked (pinned) host memory, which GPUs copy at the speed of the link. */
typedef struct umemCudaHost {
  umemVirtual super;
  void *impl; /* owned */
  uintptr_t reserved[7];
} umemCudaHost;

/* Managed memory: one address for the CPU and the GPUs, moved on demand. */
typedef struct umemCudaManaged {
  umemVirtual super;
  void *impl; /* owned */
  uintptr_t reserved[7];
} umemCudaManaged;

/* Device memory whose allocations, frees, sets and copies are ordered on a stream. */
typedef struct umemCudaAsync {
  umemVirtual super;
  void *impl; /* owned */
  uintptr_t reserved[7];
} umemCudaAsync;

/* device: the ordinal of the GPU, from 0. */
UMEM_EXTERN umemStatusType umemCuda_ctor(umemCuda *ctx, int device);

/* flags: 0. */
UMEM_EXTERN umemStatusType umemCudaHost_ctor(umemCudaHost *ctx, unsigned flags);

/* device: as above; flags: 0. */
UMEM_EXTERN umemStatusType umemCudaManaged_ctor(umemCudaManaged *ctx, int device, unsigned flags);

/* stream: a cudaStream_t, borrowed; 0, CUDA's legacy default stream; or UMEM_STREAM_NEW. */
UMEM_EXTERN umemStatusType umemCudaAsync_ctor(umemCudaAsync *ctx, int device, uintptr_t stream);

#endif
