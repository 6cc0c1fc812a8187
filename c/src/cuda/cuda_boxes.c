/* cuda_boxes.c - see cuda_boxes.h. */
#include "cuda/cuda_boxes.h"
#include "core/layout.h"

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

bool umemCudaBoxes_cut(umemCudaBoxes *boxes, umemLayout const *layout) {
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

bool umemCudaBoxes_pay(umemCudaBoxes const *boxes, umemLayout const *layout) {
  size_t nbytes = umem_count_items(layout) * layout->item_size;
  return boxes->count <= few_boxes || nbytes / boxes->count >= bytes_of_start;
}

static int copy_box(umemCudaWay const *way, umemCudaBox const *box) {
  return way->src_device == way->dst_device
             ? way->rt->memcpy_box_async(box, way->direction, way->stream)
             : way->rt->memcpy_box_peer_async(box, way->dst_device, way->src_device, way->stream);
}

/* All boxes of the dimensions from k on. */
static int copy_from(umemCudaWay const *way, umemCudaBoxes const *boxes, umemLayout const *layout,
                     int k, uintptr_t src_adr, uintptr_t dst_adr) {
  if (k == layout->rank - boxes->inner) {
    umemCudaBox box = boxes->box;
    box.src = (void const *)src_adr;
    box.dst = (void *)dst_adr;
    return copy_box(way, &box);
  }
  int error = 0;
  for (size_t i = 0; i < layout->extents[k] && !error; i++)
    error = copy_from(way, boxes, layout, k + 1,
                      src_adr + (uintptr_t)((ptrdiff_t)i * layout->src_strides[k]),
                      dst_adr + (uintptr_t)((ptrdiff_t)i * layout->dst_strides[k]));
  return error;
}

int umemCudaBoxes_copy(umemCudaWay const *way, umemCudaBoxes const *boxes, umemLayout const *layout,
                       uintptr_t src_adr, uintptr_t dst_adr) {
  return copy_from(way, boxes, layout, 0, src_adr, dst_adr);
}
