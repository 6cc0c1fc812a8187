/* cuda_narrow.h - strided copies of narrow rows between device memory and packed host memory. */
#ifndef UMEM_CUDA_NARROW_H
#define UMEM_CUDA_NARROW_H

#include "cuda/cuda_boxes.h"
#include "cuda/cuda_state.h"

/* Starts the copy of a layout that can be cut into boxes by way of a packed block on the device, and stores the
 * runtime's error in *error. ctx: the context of the device memory, on whose stream way is. Returns false, with
 * nothing started, where rows are wide or few, the host's bytes are not packed, the stream is captured, or there is
 * no memory for the block. Called in a scope of the stream's GPU. */
bool umemCudaNarrow_copy(umemVirtual *ctx, umemCudaWay const *way, umemLayout const *layout,
                         uintptr_t src_adr, uintptr_t dst_adr, int *error);

#endif
