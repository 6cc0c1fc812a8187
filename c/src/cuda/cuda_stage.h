/* cuda_stage.h - copies through pinned chunks, in several threads. */
#ifndef UMEM_CUDA_STAGE_H
#define UMEM_CUDA_STAGE_H

#include "cuda/cuda_state.h"

/* Copies nbytes between device memory and host memory that is not pinned, through pinned chunks and in several
 * threads, after the work queued on state's stream and before what is queued on it later. Complete on return.
 * direction: umemCudaToDevice or umemCudaToHost. Returns false, with nothing touched or recorded, when there is
 * no room for it, or it would not pay: the caller copies in one call. Called in gpu's scope. */
bool umemCuda_stage(umemVirtual *ctx, umemCudaState *state, uintptr_t device_adr, void *host_adr,
                    size_t nbytes, umemCudaDirection direction);

/* The same between device memory and other, a concurrent context that is not ordered and whose methods move
 * its bytes to and from host memory, such as a file. They run in several threads, outside of gpu's scope. What
 * they record becomes the caller's failure. */
bool umemCuda_stage_with(umemVirtual *ctx, umemCudaState *state, uintptr_t device_adr,
                         umemVirtual *other, uintptr_t other_adr, size_t nbytes,
                         umemCudaDirection direction);

#endif
