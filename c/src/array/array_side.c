/* array_side.c - see array_side.h. */
#include "array/array_side.h"
#include "core/adaptor.h"
#include "core/context.h"
#include "core/order.h"
#include "core/copy.h"

/* Bytes, but at least one element: what stays in a cache between two copies by the CPU, and what makes calls of the
 * system and of a driver long. */
enum { near_buffer = 256 << 10, far_buffer = 4 << 20 };

bool umem_array_is_here(umemVirtual *ctx, umemCapability access) {
  if (umem_is_plain_host(ctx)) return true;
  if (!(access == umemReadable ? umem_cpu_reads(ctx) : umem_cpu_writes(ctx))) return false;
  if (access == umemWritable && umem_can(ctx, umemDeviceShared)) return false;
  for (umemVirtual *layer = ctx; layer; layer = umem_upstream_of(layer)) {
    if (!UMEM_SLOT(layer, upstream)) return true;
    if (UMEM_SLOT(layer, copy_direct) != umemAdaptor_copy_direct) return false;
  }
  return false; /* a layer is not constructed any more */
}

/* ---- boxes and runs ---- */

void umem_array_move(umemVirtual *src, uintptr_t src_adr, int64_t const *src_strides,
                     umemVirtual *dst, uintptr_t dst_adr, int64_t const *dst_strides, int rank,
                     int64_t const *shape, size_t item_size) {
  size_t extents[UMEM_MAX_RANK];
  ptrdiff_t from[UMEM_MAX_RANK], to[UMEM_MAX_RANK];
  for (int k = 0; k < rank; k++) {
    extents[k] = (size_t)shape[k];
    if (src_strides) from[k] = (ptrdiff_t)src_strides[k];
    if (dst_strides) to[k] = (ptrdiff_t)dst_strides[k];
  }
  umemLayout layout = {.size = sizeof layout,
                       .item_size = item_size,
                       .rank = rank,
                       .extents = extents,
                       .src_strides = src_strides ? from : NULL,
                       .dst_strides = dst_strides ? to : NULL};
  umem_copy_strided(src, src_adr, dst, dst_adr, &layout);
}

umemArraySide umem_array_side(umemArray const *array, umemVirtual *ctx, int64_t offset) {
  umemArraySide side = {.ctx = ctx, .offset = offset};
  umem_array_axes(&side.axes, array);
  side.is_run = umem_array_is_run(&side.axes, array->item_size);
  return side;
}

void umem_array_gather(umemArraySide const *from, umemVirtual *ctx, uintptr_t adr, int64_t count,
                       size_t item_size) {
  umemArrayBox box;
  for (int64_t done = 0; done < count; done += box.elements) {
    umem_array_box(&box, &from->axes, from->offset + done, count - done);
    umem_array_move(from->ctx, box.adr, box.strides, ctx, adr + (uintptr_t)done * item_size, NULL,
                    box.rank, box.shape, item_size);
  }
}
void umem_array_scatter(umemVirtual *ctx, uintptr_t adr, umemArraySide const *to, int64_t count,
                        size_t item_size) {
  umemArrayBox box;
  for (int64_t done = 0; done < count; done += box.elements) {
    umem_array_box(&box, &to->axes, to->offset + done, count - done);
    umem_array_move(ctx, adr + (uintptr_t)done * item_size, NULL, to->ctx, box.adr, box.strides,
                    box.rank, box.shape, item_size);
  }
}

uintptr_t umem_array_run_address(umemArraySide const *run, size_t item_size) {
  return run->axes.adr + (uintptr_t)run->offset * item_size;
}

/* ---- overlap ---- */

bool umem_array_is_whole(umemArrayAxes const *axes, int64_t count) {
  int64_t all = 1;
  for (int k = 0; k < axes->rank; k++) all *= axes->shape[k];
  return count == all;
}

/* The largest box of a side that begins with element `done` of count, as items. */
typedef struct Part {
  umemItems items;
  size_t extents[UMEM_MAX_RANK];
  ptrdiff_t strides[UMEM_MAX_RANK];
  int64_t elements;
} Part;

static void take_part(Part *part, umemArraySide const *side, size_t item_size, int64_t done,
                      int64_t count) {
  umemArrayBox box = {.adr = side->axes.adr,
                      .elements = count,
                      .rank = side->axes.rank,
                      .strides = side->axes.strides};
  bool whole = umem_array_is_whole(&side->axes, count);
  if (!whole) umem_array_box(&box, &side->axes, side->offset + done, count - done);
  int64_t const *shape = whole ? side->axes.shape : box.shape;
  for (int k = 0; k < box.rank; k++) {
    part->extents[k] = (size_t)shape[k];
    part->strides[k] = (ptrdiff_t)box.strides[k];
  }
  part->items = (umemItems){box.adr, item_size, box.rank, part->extents, part->strides};
  part->elements = box.elements;
}

bool umem_array_sides_meet(umemArraySide const *from, size_t src_size, umemArraySide const *to,
                           size_t dst_size, int64_t count) {
  uintptr_t src = from->axes.adr, dst = to->axes.adr;
  if (!from->ctx->vptr || !to->ctx->vptr) return false; /* ended: the copy reports it */
  if (!umem_share_bytes(from->ctx, &src, to->ctx, &dst)) return false;
  Part one, other;
  for (int64_t i = 0; i < count; i += one.elements) {
    take_part(&one, from, src_size, i, count);
    one.items.adr += src - from->axes.adr;
    for (int64_t j = 0; j < count; j += other.elements) {
      take_part(&other, to, dst_size, j, count);
      other.items.adr += dst - to->axes.adr;
      if (umem_items_meet(&one.items, &other.items)) return true;
    }
  }
  return false;
}

/* ---- buffers ---- */

bool umem_array_take_buffer(umemArrayBuffer *buffer, umemVirtual *from, umemVirtual *to,
                            int64_t count, size_t item_size) {
  if (!umem_check(to) || !umem_check(from)) return false;
  bool near = umem_cpu_reads(from) && umem_cpu_writes(to);
  int64_t room = (int64_t)((near ? near_buffer : far_buffer) / item_size);
  buffer->elements = count < room ? count : room + !room;
  buffer->host = from->host;
  buffer->adr = umem_alloc(from->host, (size_t)buffer->elements * item_size);
  return buffer->adr != umem_null_of(buffer->host);
}

void umem_array_give_buffer(umemArrayBuffer const *buffer, umemVirtual *ctx) {
  umem_finish(ctx);
  umem_free(buffer->host, buffer->adr);
}
