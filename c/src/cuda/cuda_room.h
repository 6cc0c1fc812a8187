/* cuda_room.h - checks that all live managed memory fits on the GPU. */
#ifndef UMEM_CUDA_ROOM_H
#define UMEM_CUDA_ROOM_H

#include "cuda/cuda_state.h"

/* Between enter and leave the search for room may look at the blocks of state, which is of managed memory:
 * blocks leave its table before they are freed. */
void umemCudaRoom_enter(umemCudaState *state);
void umemCudaRoom_leave(umemCudaState *state);

/* Counts nbytes more, for a block of managed memory that is about to be allocated. Returns the runtime's error:
 * umemCudaOutOfMemory when the live blocks of the process would not all fit on gpu together. Prefetches live
 * blocks where it takes that to know. Called in gpu's scope. */
int umemCudaRoom_take(umemCudaGpu *gpu, size_t nbytes);

/* Counts nbytes less. */
void umemCudaRoom_give(umemCudaGpu *gpu, size_t nbytes);

#endif
