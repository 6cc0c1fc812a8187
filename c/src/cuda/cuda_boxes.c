/* cuda_boxes.c - strided copies by the copy engines, in boxes, which are rows of bytes in planes.
 *
 * Over the link to the host a copy engine needs some 4 ns for each row, as long as for 200 bytes.
 * Within the device it needs a twentieth of that. So narrow rows are packed on the device, and
 * cross the link as one run: a face of 512 * 512 floats took 77 us instead of 1036 on an H200. */
#include "core/context.h"
#include "core/layout.h"
#include "cuda/cuda_methods.h"

enum {
  most_boxes = 4096,      /* for more, packing on the host costs less than starting copies */
  most_pitch = INT32_MAX, /* cudaDeviceProp.memPitch */
  few_boxes = 8
};

/* A box takes 4 us to start (H200), in which host memory takes or sorts so many bytes. */
static size_t const bytes_of_start = 16 << 10;

static bool is_pitch(ptrdiff_t stride, size_t width) {
  return stride > 0 && (size_t)stride >= width && stride <= most_pitch;
}

/* Whether planes this far apart hold whole rows, at least as many as are copied. */
static bool is_plane(ptrdiff_t stride, ptrdiff_t pitch, size_t height) {
  return stride > 0 && stride % pitch == 0 && (size_t)(stride / pitch) >= height;
}

bool umemCuda_cut_boxes(umemCudaBoxes *boxes, umemLayout const *layout) {
  int last = layout->rank - 1;
  ptrdiff_t const *from = layout->src_strides, *to = layout->dst_strides;
  size_t const *extents = layout->extents;
  size_t width = layout->item_size;
  if (!is_pitch(from[last], width) || !is_pitch(to[last], width)) return false;
  umemCudaBox *box = &boxes->box;
  *box = (umemCudaBox){.src_pitch = (size_t)from[last],
                       .dst_pitch = (size_t)to[last],
                       .width = width,
                       .height = extents[last],
                       .depth = 1};
  box->src_rows = box->dst_rows = box->height;
  boxes->inner = 1;
  if (last > 0 && is_plane(from[last - 1], from[last], box->height) &&
      is_plane(to[last - 1], to[last], box->height)) {
    box->src_rows = (size_t)(from[last - 1] / from[last]);
    box->dst_rows = (size_t)(to[last - 1] / to[last]);
    box->depth = extents[last - 1];
    boxes->inner = 2;
  }
  size_t count = 1;
  for (int k = 0; k < layout->rank - boxes->inner; k++)
    if (__builtin_mul_overflow(count, extents[k], &count) || count > most_boxes) return false;
  boxes->count = count;
  return true;
}

bool umemCuda_boxes_pay(umemCudaBoxes const *boxes, umemLayout const *layout) {
  size_t nbytes = umem_count_items(layout) * layout->item_size;
  return boxes->count <= few_boxes || nbytes / boxes->count >= bytes_of_start;
}

static int copy_box(umemCudaWay const *way, umemCudaBox const *box) {
  return way->src_device == way->dst_device
             ? way->rt->memcpy_box_async(box, way->direction, way->stream)
             : way->rt->memcpy_box_peer_async(box, way->dst_device, way->src_device, way->stream);
}

int umemCuda_copy_boxes(umemCudaWay const *way, umemCudaBoxes const *boxes,
                        umemLayout const *layout, int k, uintptr_t src_adr, uintptr_t dst_adr) {
  if (k == layout->rank - boxes->inner) {
    umemCudaBox box = boxes->box;
    box.src = (void const *)src_adr;
    box.dst = (void *)dst_adr;
    return copy_box(way, &box);
  }
  int error = 0;
  for (size_t i = 0; i < layout->extents[k] && !error; i++)
    error = umemCuda_copy_boxes(way, boxes, layout, k + 1,
                                src_adr + (uintptr_t)((ptrdiff_t)i * layout->src_strides[k]),
                                dst_adr + (uintptr_t)((ptrdiff_t)i * layout->dst_strides[k]));
  return error;
}

/* ==== narrow rows ==== */

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
    int error = umemCuda_copy_boxes(&within, boxes, layout, 0, src_adr, block);
    return error ? error
                 : way->rt->memcpy_async((void *)dst_adr, (void const *)block, nbytes,
                                         way->direction, way->stream);
  }
  int error = way->rt->memcpy_async((void *)block, (void const *)src_adr, nbytes, way->direction,
                                    way->stream);
  return error ? error : umemCuda_copy_boxes(&within, boxes, layout, 0, block, dst_adr);
}

/* count of the outermost dimension at a time. The stream keeps the parts in order, so one block
 * serves all. */
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
    umemCuda_cut_boxes(&boxes, &part); /* as the whole */
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

bool umemCuda_copy_narrow(umemVirtual *ctx, umemCudaWay const *way, umemLayout const *layout,
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
