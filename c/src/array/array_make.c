/* array_make.c - see array_make.h. */
#include "array/array_make.h"
#include "base/thread.h"
#include "core/context.h"
#include "core/layout.h"
#include "core/order.h"
#include "core/threads.h"
#include "core/status.h"
#include "core/tiles.h"

#include <stdlib.h>
#include <string.h>

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
static void copy_box(umemArrayBox const *box, uintptr_t bytes, bool to_box, size_t item_size) {
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
  umemArrayBox box;
  for (int64_t done = 0; done < count; done += box.elements) {
    umem_array_box(&box, axes, offset + done, count - done);
    copy_box(&box, bytes + (uintptr_t)done * item_size, to_boxes, item_size);
  }
}

void umem_array_pick(umemArrayAxes const *from, int64_t offset, int64_t count, void *out,
                     size_t item_size) {
  copy_boxes(from, offset, count, (uintptr_t)out, false, item_size);
}

void umem_array_put(void const *in, umemArrayAxes const *to, int64_t offset, int64_t count,
                    size_t item_size) {
  copy_boxes(to, offset, count, (uintptr_t)in, true, item_size);
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
    if (!direct) umem_array_put(chunk, &job->to->axes, job->to->offset + at, now, maker->item_size);
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
