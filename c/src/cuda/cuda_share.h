/* cuda_share.h - memory of GPUs in several processes.
 *
 *   cuda_shared.c   the blocks that this process has shared
 *   cuda_share.c    handles for them
 *   cuda_attach.c   blocks of other processes
 *
 * Work is ordered by events. Each context that shares has one event, which is recorded on its stream whenever it shares
 * a block. Its handle goes with that of the block, and the stream of the context that attaches the block waits for it.
 *
 * Threads: any. */
#ifndef UMEM_CUDA_SHARE_H
#define UMEM_CUDA_SHARE_H

#include "cuda/cuda_state.h"

/* Methods. */
bool umemCuda_share(umemVirtual *ctx, uintptr_t adr, size_t nbytes, umemHandle *handle, int *fd);

#endif
