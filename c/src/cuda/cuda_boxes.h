/* cuda_boxes.h - strided copies as the copy engines know them: in boxes, which are rows of bytes in
 * planes. */
#ifndef UMEM_CUDA_BOXES_H
#define UMEM_CUDA_BOXES_H

#include "cuda/cuda_rt.h"
#include "cuda/cuda_state.h"

#include <umem/copy.h>

/* Where a copy runs, and between which memories. */
typedef struct umemCudaWay {
  umemCudaRt const *rt;
  void *stream;
  umemCudaDirection direction;
  int src_device, dst_device; /* equal but for a copy between two GPUs */
} umemCudaWay;

/* How a layout is cut: the last `inner` of its dimensions are those of one box. */
typedef struct umemCudaBoxes {
  int inner;
  umemCudaBox box; /* of the first one, without addresses */
  size_t count;
} umemCudaBoxes;

/* Cuts a layout in normal form, of rank > 0. Returns false when the copy engines cannot do it, or
 * not well. */
bool umemCudaBoxes_cut(umemCudaBoxes *boxes, umemLayout const *layout);

/* Whether a copy through host memory takes longer than these boxes, if it moves no other bytes, and
 * each side in a few transfers. */
bool umemCudaBoxes_pay(umemCudaBoxes const *boxes, umemLayout const *layout);

/* Starts the copies of all boxes. Returns the runtime's error. Called in a scope of the stream's
 * GPU. */
int umemCudaBoxes_copy(umemCudaWay const *way, umemCudaBoxes const *boxes, umemLayout const *layout,
                       uintptr_t src_adr, uintptr_t dst_adr);

/* ==== narrow rows ==== */

/* Starts the copy of a layout that can be cut into boxes by way of a packed block on the device,
 * and stores the runtime's error in *error. ctx: the context of the device memory, on whose stream
 * way is. Returns false, with nothing started, where rows are wide or few, the host's bytes are not
 * packed, the stream is captured, or there is no memory for the block. Called in a scope of the
 * stream's GPU. */
bool umemCudaNarrow_copy(umemVirtual *ctx, umemCudaWay const *way, umemLayout const *layout,
                         uintptr_t src_adr, uintptr_t dst_adr, int *error);

#endif
