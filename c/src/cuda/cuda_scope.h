/* cuda_scope.h - being in a GPU's context, and the way back. */
#ifndef UMEM_CUDA_SCOPE_H
#define UMEM_CUDA_SCOPE_H

#include "cuda/cuda_gpu.h"

/* The way back to where the caller was. */
typedef struct umemCudaScope {
  umemVirtual *ctx; /* that failures belong to */
  umemCudaGpu *gpu;
  bool pushed;
  int capture_mode; /* the caller's */
} umemCudaScope;

/* Makes gpu's context current for the calling thread. Lets it make calls that have nothing to do with a graph
 * capture of the program, though CUDA would forbid them and invalidate the capture: allocations, waiting.
 * Returns false, with a status on ctx and nothing to leave, when that fails, and in a child of fork. */
bool umemCudaScope_enter(umemCudaScope *scope, umemVirtual *ctx, umemCudaGpu *gpu);

/* Restores what the caller had. Records a failure if that fails. */
void umemCudaScope_leave(umemCudaScope *scope);

#endif
