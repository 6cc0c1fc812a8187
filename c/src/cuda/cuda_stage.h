/* cuda_stage.h - copies of pageable memory through pinned chunks. */
#ifndef UMEM_CUDA_STAGE_H
#define UMEM_CUDA_STAGE_H

#include "cuda/cuda_state.h"

/* Copies nbytes between device memory and host memory that is not pinned, through pinned chunks and in several
 * threads, after the work queued on state's stream and before what is queued on it later. Complete on return.
 * direction: umemCudaToDevice or umemCudaToHost. Returns false, with nothing touched or recorded, when there is
 * no room for it, or it would not pay: the caller copies in one call. Called in gpu's scope. */
bool umemCuda_stage(umemVirtual *ctx, umemCudaState *state, uintptr_t device_adr, void *host_adr,
                    size_t nbytes, umemCudaDirection direction);

#endif
