/* items.c - see items.h. Copies item by item where the CPU can address both sides; otherwise run by run where
 * the runs are long, else in packed pieces through host memory. */
#include "core/items.h"
#include "base/thread.h"
#include "core/ends.h"
#include "core/guard.h"
#include "core/layout.h"
#include "core/order.h"
#include "core/run.h"

#include <stdlib.h>
#include <string.h>

/* Runs at least this long are copied one by one; shorter ones are packed first. */
static size_t const long_run = 16 << 10;
/* Bytes of a packed piece; it stays in the CPU's cache between reading and writing. */
static size_t const piece_bytes = 1 << 20;
/* Reading a gap of this many bytes costs less than another call ("data sieving": R. Thakur, W. Gropp,
 * E. Lusk: "Data Sieving and Collective I/O in ROMIO", Frontiers 1999). */
static size_t const cheap_gap = 4 << 10;
static size_t const sieve_bytes = 16 << 20;

/* ---- item by item, where the CPU can address both sides ---- */

#define COPY_FIXED(bytes)                                                                          \
  for (size_t i = 0; i < n; i++)                                                                   \
  memcpy(dst + (ptrdiff_t)i * dst_stride, src + (ptrdiff_t)i * src_stride, bytes)

static void copy_row(char *dst, ptrdiff_t dst_stride, char const *src, ptrdiff_t src_stride,
                     size_t n, size_t item_size) {
  switch (item_size) { /* the sizes that compile to plain loads and stores */
  case 1:
    COPY_FIXED(1);
    break;
  case 2:
    COPY_FIXED(2);
    break;
  case 4:
    COPY_FIXED(4);
    break;
  case 8:
    COPY_FIXED(8);
    break;
  case 16:
    COPY_FIXED(16);
    break;
  default:
    COPY_FIXED(item_size);
    break;
  }
}

static void copy_dims(char *dst, char const *src, umemLayout const *layout, int k) {
  if (k == layout->rank) {
    memcpy(dst, src, layout->item_size);
  } else if (k == layout->rank - 1) {
    copy_row(dst, layout->dst_strides[k], src, layout->src_strides[k], layout->extents[k],
             layout->item_size);
  } else {
    for (size_t i = 0; i < layout->extents[k]; i++)
      copy_dims(dst + (ptrdiff_t)i * layout->dst_strides[k],
                src + (ptrdiff_t)i * layout->src_strides[k], layout, k + 1);
  }
}

/* ---- in packed pieces ---- */

typedef struct Sides {
  umemVirtual *src, *dst, *host;
  uint64_t before; /* failures of this thread when the copy began */
} Sides;

static bool failed(Sides const *sides) { return umem_thread.failures != sides->before; }

/* Calls for each run of a layout in normal form, until one fails. */
typedef void RunFunction(Sides *sides, uintptr_t src_adr, uintptr_t dst_adr, size_t nbytes);

static void for_each_run(Sides *sides, uintptr_t src_adr, uintptr_t dst_adr,
                         umemLayout const *layout, int k, RunFunction *run) {
  if (k == layout->rank) {
    run(sides, src_adr, dst_adr, layout->item_size);
    return;
  }
  for (size_t i = 0; i < layout->extents[k] && !failed(sides); i++)
    for_each_run(sides, src_adr + (uintptr_t)((ptrdiff_t)i * layout->src_strides[k]),
                 dst_adr + (uintptr_t)((ptrdiff_t)i * layout->dst_strides[k]), layout, k + 1, run);
}

static void read_one(Sides *sides, uintptr_t src_adr, uintptr_t buffer, size_t nbytes) {
  umem_read_run(sides->src, src_adr, sides->host, (void *)buffer, nbytes);
}

static void write_one(Sides *sides, uintptr_t buffer, uintptr_t dst_adr, size_t nbytes) {
  umem_write_run(sides->dst, dst_adr, sides->host, (void const *)buffer, nbytes);
}

static void route_one(Sides *sides, uintptr_t src_adr, uintptr_t dst_adr, size_t nbytes) {
  umem_copy_run(sides->src, src_adr, sides->dst, dst_adr, nbytes);
}

static size_t count_items(umemLayout const *layout) {
  size_t count = 1;
  for (int k = 0; k < layout->rank; k++) count *= layout->extents[k];
  return count;
}

/* Reads the whole span that the source items lie in, when the gaps are small; false if they are not,
 * or if there is no room for it. */
static bool read_sieved(Sides *sides, uintptr_t src_adr, char *packed, umemLayout const *layout) {
  umemLayoutSpan span;
  if (!umem_span_of(layout->item_size, layout->rank, layout->extents, layout->src_strides, &span))
    return false;
  size_t nbytes = (size_t)(span.high - span.low);
  size_t runs = count_items(layout);
  if (runs < 2 || nbytes > sieve_bytes || nbytes / runs > layout->item_size + cheap_gap)
    return false;
  char *buffer = malloc(nbytes);
  if (!buffer) return false;
  umem_read_run(sides->src, src_adr + (uintptr_t)span.low, sides->host, buffer, nbytes);
  umem_finish(sides->src);
  if (!failed(sides)) copy_dims(packed, buffer - span.low, layout, 0);
  free(buffer);
  return true;
}

/* Gathers the source's items into packed, in the order of layout. */
static void pack(Sides *sides, uintptr_t src_adr, char *packed, umemLayout const *layout) {
  umemNormalLayout n;
  uintptr_t to = (uintptr_t)packed;
  umemLayout gather = *layout;
  gather.dst_strides = NULL;
  umem_normalise(&n, &gather, &src_adr, &to);
  if (umem_cpu_reads(sides->src)) {
    umem_finish(sides->src);
    copy_dims((char *)to, (char const *)src_adr, &n.layout, 0);
  } else if (!read_sieved(sides, src_adr, (char *)to, &n.layout)) {
    for_each_run(sides, src_adr, to, &n.layout, 0, read_one);
    umem_finish(sides->src);
  }
}

/* Scatters packed to the destination's items. */
static void unpack(Sides *sides, uintptr_t dst_adr, char const *packed, umemLayout const *layout) {
  umemNormalLayout n;
  uintptr_t from = (uintptr_t)packed;
  umemLayout scatter = *layout;
  scatter.src_strides = NULL;
  umem_normalise(&n, &scatter, &from, &dst_adr);
  if (umem_cpu_writes(sides->dst))
    copy_dims((char *)dst_adr, (char const *)from, &n.layout, 0);
  else
    for_each_run(sides, from, dst_adr, &n.layout, 0, write_one);
  umem_finish(sides->dst); /* packed is used again */
}

/* Halves the outermost dimension until a piece fits into packed. */
static void copy_pieces(Sides *sides, uintptr_t src_adr, uintptr_t dst_adr,
                        umemLayout const *layout, char *packed) {
  if (failed(sides)) return;
  if (count_items(layout) <= piece_bytes / layout->item_size) {
    pack(sides, src_adr, packed, layout);
    if (!failed(sides)) unpack(sides, dst_adr, packed, layout);
    return;
  }
  if (layout->extents[0] == 1) {
    umemLayout inner = *layout;
    inner.rank--, inner.extents++, inner.src_strides++, inner.dst_strides++;
    copy_pieces(sides, src_adr, dst_adr, &inner, packed);
    return;
  }
  size_t extents[UMEM_MAX_RANK];
  memcpy(extents, layout->extents, (size_t)layout->rank * sizeof *extents);
  size_t half = extents[0] / 2;
  umemLayout part = *layout;
  part.extents = extents;
  extents[0] = half;
  copy_pieces(sides, src_adr, dst_adr, &part, packed);
  extents[0] = layout->extents[0] - half;
  copy_pieces(sides, src_adr + (uintptr_t)((ptrdiff_t)half * layout->src_strides[0]),
              dst_adr + (uintptr_t)((ptrdiff_t)half * layout->dst_strides[0]), &part, packed);
}

void umem_copy_items(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                     umemLayout const *layout) {
  Sides sides = {src, dst, NULL, umem_thread.failures};
  if (umem_cpu_reads(src) && umem_cpu_writes(dst)) {
    umem_finish(src);
    umem_finish(dst);
    if (!failed(&sides)) copy_dims((char *)dst_adr, (char const *)src_adr, layout, 0);
    return;
  }
  if (layout->item_size >= long_run) {
    for_each_run(&sides, src_adr, dst_adr, layout, 0, route_one);
    return;
  }
  sides.host = umem_host_between(src, dst);
  if (!sides.host) return;
  /* Earlier work of dst may still use what the CPU is going to read or overwrite. */
  if (umem_finish(dst) != umemOK) return;
  size_t all = count_items(layout) * layout->item_size;
  uintptr_t packed = umem_alloc(sides.host, all < piece_bytes ? all : piece_bytes);
  if (packed == umem_null_of(sides.host)) {
    umemVirtual_adopt(src, sides.before);
    return;
  }
  copy_pieces(&sides, src_adr, dst_adr, layout, (char *)packed);
  umem_free(sides.host, packed);
}
