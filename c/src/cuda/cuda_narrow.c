/* cuda_narrow.c - see cuda_narrow.h.
 *
 * Over the link to the host a copy engine needs some 4 ns for each row, as long as for 200 bytes. Within the device it
 * needs a twentieth of that. So narrow rows are packed on the device, and cross the link as one run: a face of
 * 512 * 512 floats took 77 us instead of 1036 on an H200.
 *
 * The block comes from where the context has its memory. On a stream with a pool its allocation and its end are
 * queued like the copies. Elsewhere they cost 48 us and wait for the device, so it takes more rows to pay. */
#include "cuda/cuda_narrow.h"
#include "core/context.h"
#include "core/layout.h"
#include "cuda/cuda_stream.h"

enum { widest = 64, least_rows = 16 << 10, least_queued_rows = 4 << 10 };

/* Bytes of the block at most. */
static size_t const block_most = 32 << 20;

/* Whether items with these strides follow each other without gaps. */
static bool is_packed(umemLayout const *layout, ptrdiff_t const *strides) {
  size_t stride = layout->item_size;
  for (int k = layout->rank - 1; k >= 0; stride *= layout->extents[k--])
    if (strides[k] != (ptrdiff_t)stride) return false;
  return true;
}

static bool pays(umemVirtual *ctx, umemCudaWay const *way, umemLayout const *layout) {
  bool to_host = way->direction == umemCudaToHost, queued = umem_can(ctx, umemOrdered);
  if ((!to_host && way->direction != umemCudaToDevice) || umem_can(ctx, umemCpuReadable))
    return false;
  return layout->item_size <= widest &&
         umem_count_items(layout) >= (queued ? least_queued_rows : least_rows) &&
         is_packed(layout, to_host ? layout->dst_strides : layout->src_strides);
}

/* A part of the copy that the block holds. */
static int copy_part(umemCudaWay const *way, umemCudaBoxes const *boxes, umemLayout const *layout,
                     uintptr_t src_adr, uintptr_t dst_adr, uintptr_t block) {
  size_t nbytes = umem_count_items(layout) * layout->item_size;
  umemCudaWay within = *way;
  within.direction = umemCudaWithinDevice;
  if (way->direction == umemCudaToHost) {
    int error = umemCudaBoxes_copy(&within, boxes, layout, src_adr, block);
    return error ? error
                 : way->rt->memcpy_async((void *)dst_adr, (void const *)block, nbytes,
                                         way->direction, way->stream);
  }
  int error = way->rt->memcpy_async((void *)block, (void const *)src_adr, nbytes, way->direction,
                                    way->stream);
  return error ? error : umemCudaBoxes_copy(&within, boxes, layout, block, dst_adr);
}

/* count of the outermost dimension at a time. The stream keeps the parts in order, so one block serves all. */
static int copy_parts(umemCudaWay const *way, umemLayout const *layout, size_t count,
                      uintptr_t src_adr, uintptr_t dst_adr, uintptr_t block) {
  int error = 0;
  size_t extents[UMEM_MAX_RANK];
  for (int k = 0; k < layout->rank; k++) extents[k] = layout->extents[k];
  umemLayout part = *layout;
  part.extents = extents;
  for (size_t at = 0; at < layout->extents[0] && !error; at += count) {
    umemCudaBoxes boxes;
    size_t rest = layout->extents[0] - at;
    extents[0] = rest < count ? rest : count;
    umemCudaBoxes_cut(&boxes, &part); /* as the whole */
    error =
        copy_part(way, &boxes, &part, src_adr + (uintptr_t)((ptrdiff_t)at * layout->src_strides[0]),
                  dst_adr + (uintptr_t)((ptrdiff_t)at * layout->dst_strides[0]), block);
  }
  return error;
}

/* Twice if it must, as the block would stay. */
static int give(umemCudaState *state, void *block, size_t nbytes) {
  umemCudaRt const *rt = state->gpu->rt;
  int error = state->source->give(state, block, nbytes);
  if (!error) return 0;
  rt->last_error();
  if (state->source->give(state, block, nbytes)) rt->last_error();
  return error;
}

bool umemCudaNarrow_copy(umemVirtual *ctx, umemCudaWay const *way, umemLayout const *layout,
                         uintptr_t src_adr, uintptr_t dst_adr, int *error) {
  if (!pays(ctx, way, layout)) return false;
  umemCudaState *state = umemCuda_state_of(ctx);
  bool queued = umem_can(ctx, umemOrdered);
  size_t slice = umem_count_items(layout) / layout->extents[0] * layout->item_size;
  if (slice > block_most || (queued && umemCudaState_is_captured(state))) return false;
  size_t count = block_most / slice;
  if (count > layout->extents[0]) count = layout->extents[0];
  void *block;
  if (state->source->get(state, &block, count * slice)) {
    way->rt->last_error();
    return false;
  }
  *error = copy_parts(way, layout, count, src_adr, dst_adr, (uintptr_t)block);
  if (!queued) { /* the end of the block is not in the order of the stream */
    int last = umemCudaState_finish(state);
    if (!*error) *error = last;
  }
  int last = give(state, block, count * slice);
  if (!*error) *error = last;
  return true;
}
