/* cuda_share.h - memory of GPUs in several processes: what this process has shared, and what it has attached.
 *
 *   cuda_share.c    handles for blocks of this process
 *   cuda_attach.c   blocks of other processes
 *
 * Work is ordered by events. Each context that shares has one event, which is recorded on its stream whenever it shares
 * a block. Its handle goes with that of the block, and the stream of the context that attaches the block waits for it.
 *
 * Threads: any. */
#ifndef UMEM_CUDA_SHARE_H
#define UMEM_CUDA_SHARE_H

#include "cuda/cuda_state.h"

/* A block of this process that it has shared. */
typedef struct umemCudaShared {
  struct umemCudaShared *next;
  umemCudaState *state; /* that has the block */
  uintptr_t base;
  size_t nbytes;
  uint64_t number;
  size_t attached; /* how often, in this process */
} umemCudaShared;

/* Methods. */
bool umemCuda_share(umemVirtual *ctx, uintptr_t adr, size_t nbytes, umemHandle *handle, int *fd);
bool umemCuda_attach(umemVirtual *ctx, umemHandle const *handle, int fd, uintptr_t *adr);
bool umemCuda_detach(umemVirtual *ctx, uintptr_t adr);

/* The block at adr, or all blocks for 0, are no longer shared: they are about to be freed. For states with shares. */
void umemCudaShare_forget(umemCudaState *state, uintptr_t adr);

/* The context of state ends. */
void umemCudaShare_end(umemVirtual *ctx);

/* A number that nothing else of this process has. */
uint64_t umemCudaShare_number(void);

/* Two numbers that no other process has. */
void umemCudaShare_process(uint64_t numbers[2]);

/* ---- under the lock of both files ---- */

void umemCudaShare_lock(void);
void umemCudaShare_unlock(void);

/* The shared block with this number; the one that contains adr, and is attached in this process. NULL if there is
 * none. */
umemCudaShared *umemCudaShare_find(uint64_t number);
umemCudaShared *umemCudaShare_around(umemCudaGpu const *gpu, uintptr_t adr);

#endif
