/* cuda_shared.h - the blocks of GPUs that this process has shared with others.
 *
 * Threads: any. One lock guards the list, and what cuda_attach.c has. It is held while CUDA is called. */
#ifndef UMEM_CUDA_SHARED_H
#define UMEM_CUDA_SHARED_H

#include "cuda/cuda_gpu.h"

struct umemCudaState;

typedef struct umemCudaShared {
  struct umemCudaShared *next;
  struct umemCudaState *state; /* that has the block */
  umemCudaGpu const *gpu;
  uintptr_t base;
  size_t nbytes;
  uint64_t number;
  size_t attached; /* how often, in this process */
} umemCudaShared;

/* The number of the block, which is in the list from now on; 0 without memory. */
uint64_t umemCudaShared_enter(struct umemCudaState *state, umemCudaGpu const *gpu, uintptr_t base,
                              size_t nbytes);

/* The block of state at base, or all of them for 0, leave the list: they are about to be freed. */
void umemCudaShared_forget(struct umemCudaState const *state, uintptr_t base);

/* ---- numbers ---- */

/* A number that nothing else of this process has. */
uint64_t umemCudaShared_number(void);

/* Two numbers that no other process has. */
void umemCudaShared_process(uint64_t numbers[2]);

/* ---- under the lock ---- */

void umemCudaShared_lock(void);
void umemCudaShared_unlock(void);

/* The block with this number; the one that contains adr, and is attached in this process. NULL if there is none. */
umemCudaShared *umemCudaShared_find(uint64_t number);
umemCudaShared *umemCudaShared_around(umemCudaGpu const *gpu, uintptr_t adr);

#endif
