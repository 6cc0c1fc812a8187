/* cuda_buffers.h - the umemHost of CUDA contexts for intermediate buffers. */
#ifndef UMEM_CUDA_BUFFERS_H
#define UMEM_CUDA_BUFFERS_H

#include <umem/host.h>

#include "cuda/cuda_gpu.h"

typedef struct umemCudaBuffers {
  umemHost host;
  umemCudaGpu *gpu; /* borrowed */
} umemCudaBuffers;

/* Constructs buffers as a umemHost that lends pinned chunks of gpu, and plain memory where none is left or the
 * request is too small or too large for one. Its blocks end before gpu is closed. */
void umemCudaBuffers_ctor(umemCudaBuffers *buffers, umemCudaGpu *gpu);

#endif
