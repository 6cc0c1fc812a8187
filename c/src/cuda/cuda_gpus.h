/* cuda_gpus.h - the GPUs of this process, while contexts use them. */
#ifndef UMEM_CUDA_GPUS_H
#define UMEM_CUDA_GPUS_H

#include "core/find.h"
#include "cuda/cuda_scope.h"

/* Returns the GPU device, for one more user; NULL, with a status on ctx, when there is none. */
umemCudaGpu *umemCudaGpu_open(umemVirtual *ctx, int device);

/* A GPU that is in use, for one more user; NULL if there is none, and in a child of fork. Records
 * nothing. */
umemCudaGpu *umemCudaGpu_any(void);

/* Ends one use. When the last user of the last GPU goes, umem releases what the process kept for
 * them. */
void umemCudaGpu_close(umemCudaGpu *gpu);

/* Whether copies of gpu reach the memory of device peer directly; the first call enables that.
 * Called in gpu's scope. */
bool umemCudaGpu_reaches(umemCudaGpu *gpu, int peer);

/* ==== memory of other libraries ==== */

/* A umemFindForeign. False while no context for GPUs lives. */
bool umemCuda_find_foreign(uintptr_t adr, umemFound *found);

#endif
