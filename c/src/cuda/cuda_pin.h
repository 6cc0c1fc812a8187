/* cuda_pin.h - pinned memory the fast way. */
#ifndef UMEM_CUDA_PIN_H
#define UMEM_CUDA_PIN_H

#include "cuda/cuda_rt.h"

#include <stddef.h>

/* Allocates and frees nbytes of page-locked host memory. Large blocks are mapped, touched by several threads,
 * then registered; small blocks and write-combined ones come from the runtime. Return the runtime's error. In a
 * scope. flags: umemCudaPortable and so on. */
int umemCuda_pin(umemCudaRt const *rt, void **adr, size_t nbytes, unsigned flags);
int umemCuda_unpin(umemCudaRt const *rt, void *adr, size_t nbytes, unsigned flags);

#endif
