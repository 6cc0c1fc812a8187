/* array_operand.c - finds the bytes of arrays for the CPU, piece by piece where it cannot address
 * them, and makes results. */
#include "array/array_operand.h"
#include "core/adaptor.h"
#include "core/copy.h"
#include "core/layout.h"
#include "core/ram.h"
#include "core/threads.h"

#include <stdlib.h>
#include <string.h>

/* ---- ranges of addresses ---- */

static void add_axis(umemArrayAxes *axes, int64_t extent, int64_t stride) {
  int last = axes->rank - 1;
  if (extent == 1 ||
      (axes->rank && umem_array_join(&axes->shape[last], &axes->strides[last], extent, stride)))
    return;
  axes->shape[axes->rank] = extent;
  axes->strides[axes->rank++] = stride;
}

void umem_array_end_axes(umemArrayAxes *axes, size_t item_size) {
  if (axes->rank) return;
  axes->rank = 1;
  axes->shape[0] = 1;
  axes->strides[0] = (int64_t)item_size;
}

static void axes_of(umemArrayAxes *axes, umemArray const *array) {
  axes->adr = array->adr;
  axes->rank = 0;
  for (int k = 0; k < array->rank; k++)
    add_axis(axes, umem_array_shape(array)[k], umem_array_strides(array)[k]);
  umem_array_end_axes(axes, array->item_size);
}

static uint64_t size_of(int64_t stride) {
  return stride < 0 ? 0 - (uint64_t)stride : (uint64_t)stride;
}

void umem_array_sort(int rank, int64_t const *strides, int *order) {
  for (int k = 0; k < rank; k++) {
    int j = k;
    for (; j > 0 && size_of(strides[order[j - 1]]) < size_of(strides[k]); j--)
      order[j] = order[j - 1];
    order[j] = k;
  }
}

void umem_array_axes_of_memory(umemArrayAxes *axes, umemArray const *array) {
  int order[UMEM_MAX_RANK];
  umem_array_sort(array->rank, umem_array_strides(array), order);
  axes->adr = array->adr;
  axes->rank = 0;
  for (int j = 0; j < array->rank; j++) {
    int64_t extent = umem_array_shape(array)[order[j]];
    int64_t stride = umem_array_strides(array)[order[j]];
    if (extent > 1 && stride < 0) {
      axes->adr += (uintptr_t)((extent - 1) * stride);
      stride = -stride;
    }
    add_axis(axes, extent, stride);
  }
  umem_array_end_axes(axes, array->item_size);
}

bool umem_array_is_run(umemArrayAxes const *axes, size_t item_size) {
  return axes->rank == 1 && (axes->shape[0] == 1 || axes->strides[0] == (int64_t)item_size);
}

typedef struct Box {
  uintptr_t adr;
  int64_t elements;
  int rank;
  int64_t shape[UMEM_MAX_RANK];
  int64_t const *strides; /* [rank], of the axes */
} Box;

/* The largest box that begins with element offset and has at most count > 0 elements: some whole
 * inner dimensions, as many as the offset and the count allow, and a part of the next one. */
static void find_box(Box *box, umemArrayAxes const *axes, int64_t offset, int64_t count) {
  int64_t inner = 1; /* elements of the whole inner dimensions */
  int k = axes->rank - 1;
  while (k > 0 && offset % (inner * axes->shape[k]) == 0 && count >= inner * axes->shape[k])
    inner *= axes->shape[k--];
  int64_t index = offset / inner % axes->shape[k], left = axes->shape[k] - index;
  int64_t part = count / inner < left ? count / inner : left;
  box->rank = axes->rank - k;
  box->strides = axes->strides + k;
  memcpy(box->shape, axes->shape + k, (size_t)box->rank * sizeof *box->shape);
  box->shape[0] = part;
  box->elements = part * inner;
  box->adr = axes->adr;
  for (int j = axes->rank - 1; j >= 0; j--) {
    box->adr += (uintptr_t)(offset % axes->shape[j] * axes->strides[j]);
    offset /= axes->shape[j];
  }
}

/* ---- sides ---- */

/* Bytes, but at least one element: what stays in a cache between two copies by the CPU, and what
 * makes calls of the system and of a driver long. */
enum { near_buffer = 256 << 10, far_buffer = 4 << 20 };

bool umem_array_is_here(umemVirtual *ctx, umemCapability access) {
  if (umem_is_plain_host(ctx)) return true;
  if (!(access == umemReadable ? umem_cpu_reads(ctx) : umem_cpu_writes(ctx))) return false;
  if (access == umemWritable && umem_can(ctx, umemDeviceShared)) return false;
  umemVirtual *mover = umemAdaptor_mover(ctx); /* NULL: it is not constructed any more */
  return mover && !UMEM_SLOT(mover, upstream);
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
  axes_of(&side.axes, array);
  side.is_run = umem_array_is_run(&side.axes, array->item_size);
  return side;
}

void umem_array_gather(umemArraySide const *from, umemVirtual *ctx, uintptr_t adr, int64_t count,
                       size_t item_size) {
  Box box;
  for (int64_t done = 0; done < count; done += box.elements) {
    find_box(&box, &from->axes, from->offset + done, count - done);
    umem_array_move(from->ctx, box.adr, box.strides, ctx, adr + (uintptr_t)done * item_size, NULL,
                    box.rank, box.shape, item_size);
  }
}
void umem_array_scatter(umemVirtual *ctx, uintptr_t adr, umemArraySide const *to, int64_t count,
                        size_t item_size) {
  Box box;
  for (int64_t done = 0; done < count; done += box.elements) {
    find_box(&box, &to->axes, to->offset + done, count - done);
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
  Box box = {.adr = side->axes.adr,
             .elements = count,
             .rank = side->axes.rank,
             .strides = side->axes.strides};
  bool whole = umem_array_is_whole(&side->axes, count);
  if (!whole) find_box(&box, &side->axes, side->offset + done, count - done);
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
  buffer->unfinished = umem_unfinished_so_far();
  buffer->adr = umem_alloc(from->host, (size_t)buffer->elements * item_size);
  return buffer->adr != umem_null_of(buffer->host);
}

void umem_array_give_buffer(umemArrayBuffer const *buffer, umemVirtual *ctx) {
  umem_finish(ctx);
  umem_free_buffer(buffer->host, buffer->adr, buffer->unfinished);
}

/* ---- pieces ---- */

/* Dimensions whose rows begin at another index on each side. Each may double the number of
 * boxes. */
enum { most_shifts = 4 };

/* Two sides over one shape: dimensions first ... UMEM_MAX_RANK - 1, of which the outermost has no
 * end. */
typedef struct Pieces {
  umemVirtual *src, *dst;
  size_t item_size;
  uint64_t before; /* failures */
  int first;
  int64_t shape[UMEM_MAX_RANK], src_strides[UMEM_MAX_RANK], dst_strides[UMEM_MAX_RANK];
  int64_t box[UMEM_MAX_RANK]; /* the shape of what is copied now */
} Pieces;

/* A dimension of one side that is being matched. */
typedef struct Axis {
  umemArrayAxes const *axes;
  int k;
  int64_t extent, stride;
} Axis;

static void next_axis(Axis *axis, int64_t taken) {
  axis->extent /= taken;
  axis->stride = (int64_t)((uint64_t)axis->stride * (uint64_t)taken);
  if (axis->extent > 1 || axis->k == 0) return;
  axis->k--;
  axis->extent = axis->axes->shape[axis->k];
  axis->stride = axis->axes->strides[axis->k];
}

static Axis last_axis(umemArrayAxes const *axes) {
  int k = axes->rank - 1;
  return (Axis){axes, k, axes->shape[k], axes->strides[k]};
}

/* The extent that both have; 0 if there is none. */
static int64_t common_extent(Axis const *one, Axis const *other) {
  if (one->k == 0) return other->extent;
  if (other->k == 0) return one->extent;
  if (one->extent % other->extent == 0) return other->extent;
  return other->extent % one->extent == 0 ? one->extent : 0;
}

static bool match(Pieces *pieces, umemArrayAxes const *from, umemArrayAxes const *to) {
  Axis src = last_axis(from), dst = last_axis(to);
  for (pieces->first = UMEM_MAX_RANK - 1; pieces->first >= 0; pieces->first--) {
    pieces->src_strides[pieces->first] = src.stride;
    pieces->dst_strides[pieces->first] = dst.stride;
    if (src.k == 0 && dst.k == 0) return true;
    int64_t extent = common_extent(&src, &dst);
    if (extent == 0) return false;
    pieces->shape[pieces->first] = extent;
    next_axis(&src, extent);
    next_axis(&dst, extent);
  }
  return false;
}

/* The address of element or row `index` of dimension k. */
static uintptr_t address(Pieces const *pieces, int64_t const *strides, int k, uintptr_t adr,
                         int64_t index) {
  for (; k > pieces->first; index /= pieces->shape[k--])
    adr += (uintptr_t)(index % pieces->shape[k] * strides[k]);
  return adr + (uintptr_t)(index * strides[k]);
}

/* Copies count rows of dimension k, which is one for both sides, from row s to row d. */
static void copy_box(Pieces *pieces, int k, uintptr_t src, int64_t s, uintptr_t dst, int64_t d,
                     int64_t count) {
  pieces->box[k] = count;
  umem_array_move(pieces->src, address(pieces, pieces->src_strides, k, src, s),
                  pieces->src_strides + k, pieces->dst,
                  address(pieces, pieces->dst_strides, k, dst, d), pieces->dst_strides + k,
                  UMEM_MAX_RANK - k, pieces->box + k, pieces->item_size);
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Copies a part of a box of any rows: a row is box[k + 1 ...] elements, from src and to dst on. */
static void copy_rows(Pieces *pieces, int k, uintptr_t src, int64_t s, uintptr_t dst, int64_t d,
                      int64_t count) {
  if (k == pieces->first) {
    copy_box(pieces, k, src, s, dst, d, count);
    return;
  }
  int64_t const extent = pieces->shape[k];
  while (count && umem_thread.failures == pieces->before) {
    int64_t shift = s % extent, filled = d % extent, now;
    if (filled || count < extent) {
      now = least(count, extent - (shift > filled ? shift : filled));
      copy_box(pieces, k, src, s, dst, d, now);
    } else {
      int64_t rows = count / extent, rest = extent - shift;
      now = rows * extent;
      pieces->box[k] = rest;
      copy_rows(pieces, k - 1, src + (uintptr_t)(shift * pieces->src_strides[k]), s / extent, dst,
                d / extent, rows);
      pieces->box[k] = shift;
      if (shift)
        copy_rows(pieces, k - 1, src, s / extent + 1,
                  dst + (uintptr_t)(rest * pieces->dst_strides[k]), d / extent, rows);
    }
    s += now;
    d += now;
    count -= now;
  }
}

bool umem_array_copy_pieces(umemArraySide const *from, umemArraySide const *to, int64_t count,
                            size_t item_size) {
  Pieces pieces = {
      .src = from->ctx, .dst = to->ctx, .item_size = item_size, .before = umem_thread.failures};
  if (!match(&pieces, &from->axes, &to->axes)) return false;
  int shifts = from->offset == to->offset ? 0 : UMEM_MAX_RANK - 1 - pieces.first;
  if (shifts > most_shifts) return false;
  copy_rows(&pieces, UMEM_MAX_RANK - 1, from->axes.adr, from->offset, to->axes.adr, to->offset,
            count);
  return true;
}

/* ---- results ---- */

enum {
  piece_bytes = 1 << 20, /* from which a thread more is worth waking */
  short_row = 64         /* elements: a longer row is made where it belongs */
};

int64_t umem_array_chunk(size_t bytes, size_t item_size) {
  return item_size < bytes ? (int64_t)(bytes / item_size) : 1;
}

/* ---- sides in RAM ---- */

int64_t umem_array_span(umemArrayAxes const *axes, int64_t offset, size_t item_size,
                        uintptr_t *adr) {
  int last = axes->rank - 1;
  int64_t span = axes->strides[last] == (int64_t)item_size || axes->shape[last] == 1
                     ? axes->shape[last] - offset % axes->shape[last]
                     : 1;
  *adr = axes->adr;
  for (int k = last; k >= 0; k--) {
    *adr += (uintptr_t)(offset % axes->shape[k] * axes->strides[k]);
    offset /= axes->shape[k];
  }
  return span;
}

/* Copies a box from or to bytes without gaps. */
static void copy_part_of_box(Box const *box, uintptr_t bytes, bool to_box, size_t item_size) {
  size_t extents[UMEM_MAX_RANK];
  ptrdiff_t strides[UMEM_MAX_RANK], dense[UMEM_MAX_RANK];
  for (int k = box->rank - 1; k >= 0; k--) {
    extents[k] = (size_t)box->shape[k];
    strides[k] = (ptrdiff_t)box->strides[k];
    dense[k] = k == box->rank - 1 ? (ptrdiff_t)item_size : dense[k + 1] * (ptrdiff_t)extents[k + 1];
  }
  umemLayout layout = {.size = sizeof layout,
                       .item_size = item_size,
                       .rank = box->rank,
                       .extents = extents,
                       .src_strides = to_box ? dense : strides,
                       .dst_strides = to_box ? strides : dense};
  uintptr_t src = to_box ? bytes : box->adr, dst = to_box ? box->adr : bytes;
  umemNormalLayout normal;
  umem_normalise(&normal, &layout, &src, &dst);
  if (normal.layout.rank)
    umem_copy_tiles((char *)dst, (char const *)src, &normal.layout);
  else
    memcpy((void *)dst, (void const *)src, normal.layout.item_size);
}

static void copy_boxes(umemArrayAxes const *axes, int64_t offset, int64_t count, uintptr_t bytes,
                       bool to_boxes, size_t item_size) {
  Box box;
  for (int64_t done = 0; done < count; done += box.elements) {
    find_box(&box, axes, offset + done, count - done);
    copy_part_of_box(&box, bytes + (uintptr_t)done * item_size, to_boxes, item_size);
  }
}

void umem_array_pick(umemArrayAxes const *from, int64_t offset, int64_t count, void *out,
                     size_t item_size) {
  copy_boxes(from, offset, count, (uintptr_t)out, false, item_size);
}

/* ---- to RAM ---- */

typedef struct Job {
  umemArraySide const *to;
  umemArrayMaker const *maker;
  int64_t count;
  unsigned pieces;
  unsigned char *room; /* of the first piece */
  size_t room_size;    /* of each: a chunk, then scratch */
  bool makes_chunks;
} Job;

/* Makes the elements first ... end - 1, where they belong or in a chunk. */
static void make_piece(void *data, unsigned piece) {
  Job const *job = data;
  umemArrayMaker const *maker = job->maker;
  unsigned char *chunk = job->room ? job->room + piece * job->room_size : NULL;
  unsigned char *scratch = chunk ? chunk + job->room_size - maker->scratch : NULL;
  int64_t part = job->count / job->pieces, rest = job->count % job->pieces;
  int64_t at = part * piece + (piece < rest ? piece : rest), end = at + part + (piece < rest);
  for (int64_t now; at < end; at += now) {
    uintptr_t adr;
    int64_t span = umem_array_span(&job->to->axes, job->to->offset + at, maker->item_size, &adr);
    bool direct = !job->makes_chunks || (!maker->whole && span >= short_row);
    now = direct ? span : maker->chunk;
    if (now > end - at) now = end - at;
    maker->make(maker, at, now, direct ? (void *)adr : chunk, scratch);
    if (!direct)
      copy_boxes(&job->to->axes, job->to->offset + at, now, (uintptr_t)chunk, true,
                 maker->item_size);
  }
}

static void make_here(umemArraySide const *to, int64_t count, umemArrayMaker const *maker) {
  size_t size = maker->item_size;
  Job job = {.to = to, .maker = maker, .count = count, .makes_chunks = !to->is_run};
  job.pieces = umem_parallel_pieces((size_t)count * size, piece_bytes, umemParallelMost);
  if ((int64_t)job.pieces > count) job.pieces = (unsigned)count;
  size_t chunk =
      job.makes_chunks ? (size_t)(count < maker->chunk ? count : maker->chunk) * size : 0;
  job.room_size = (chunk + 63) / 64 * 64 + maker->scratch;
  if (job.room_size) job.room = malloc(job.room_size * job.pieces);
  if (job.room_size && !job.room)
    umemVirtual_fail(NULL, umemMemoryError, "no memory for %zu bytes of a buffer",
                     job.room_size * job.pieces);
  else
    umem_parallel(job.pieces, make_piece, &job);
  free(job.room);
}

/* ---- to memory that the CPU may not write ---- */

/* A maker whose elements begin later in the array. */
typedef struct Later {
  umemArrayMaker maker;
  umemArrayMaker const *of;
  int64_t first;
} Later;

static void make_later(umemArrayMaker const *self, int64_t first, int64_t count, void *out,
                       void *scratch) {
  Later const *later = (Later const *)self;
  later->of->make(later->of, later->first + first, count, out, scratch);
}

static void make_there(umemArraySide const *to, int64_t count, umemArrayMaker const *maker) {
  umemArrayBuffer buffer;
  umemArraySide there = *to;
  Later later = {.maker = *maker, .of = maker};
  uint64_t before = umem_thread.failures;
  later.maker.make = make_later;
  if (!umem_array_take_buffer(&buffer, to->ctx, to->ctx, count, maker->item_size)) return;
  umemArraySide here = {.ctx = buffer.host,
                        .axes = {.adr = buffer.adr,
                                 .rank = 1,
                                 .shape = {buffer.elements},
                                 .strides = {(int64_t)maker->item_size}},
                        .is_run = true};
  while (later.first < count && umem_thread.failures == before) {
    int64_t now = count - later.first < buffer.elements ? count - later.first : buffer.elements;
    make_here(&here, now, &later.maker);
    if (umem_thread.failures != before) break;
    umem_array_scatter(buffer.host, buffer.adr, &there, now, maker->item_size);
    if (umem_finish(to->ctx) != umemOK) break;
    there.offset += now;
    later.first += now;
  }
  umem_array_give_buffer(&buffer, to->ctx);
}

void umem_array_make(umemArraySide const *to, int64_t count, umemArrayMaker const *maker) {
  if (!umem_array_is_here(to->ctx, umemWritable))
    make_there(to, count, maker);
  else if (umem_finish(to->ctx) == umemOK)
    make_here(to, count, maker);
}
