/* cuda_scope.h - makes a GPU's CUDA context current for a while, and restores the caller's. */
#ifndef UMEM_CUDA_SCOPE_H
#define UMEM_CUDA_SCOPE_H

#include "cuda/cuda_gpu.h"

/* What umemCudaScope_leave restores. */
typedef struct umemCudaScope {
  umemVirtual *ctx; /* that failures belong to */
  umemCudaGpu *gpu;
  bool pushed;
  int capture_mode; /* the caller's */
} umemCudaScope;

/* Makes gpu's context current for the calling thread. Also sets the thread's capture mode to relaxed: otherwise CUDA
 * would refuse allocations and waits while the program captures any stream, and would invalidate the capture.
 * Returns false, and records a status on ctx, if that fails, and in a child of fork. Then there is nothing to
 * leave. */
bool umemCudaScope_enter(umemCudaScope *scope, umemVirtual *ctx, umemCudaGpu *gpu);

/* Restores what the caller had. Records a failure if that fails. */
void umemCudaScope_leave(umemCudaScope *scope);

#endif
