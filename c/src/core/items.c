/* items.c - see items.h. Copies item by item where the CPU can address both sides, or has windows on them;
 * otherwise run by run where the runs are long, else in packed pieces through host memory. */
#include "core/items.h"
#include "base/thread.h"
#include "core/run.h"
#include "core/context.h"
#include "core/layout.h"
#include "core/order.h"
#include "core/watch.h"
#include "core/tiles.h"
#include "core/window.h"

#include <stdlib.h>

/* Runs at least this long are copied one by one; shorter ones are packed first. */
static size_t const long_run = 16 << 10;
/* Bytes of a packed piece; it stays in the CPU's cache between reading and writing. */
static size_t const piece_bytes = 1 << 20;
/* Reading a gap of this many bytes costs less than another call ("data sieving": R. Thakur, W. Gropp,
 * E. Lusk: "Data Sieving and Collective I/O in ROMIO", Frontiers 1999). */
static size_t const cheap_gap = 4 << 10;
static size_t const sieve_bytes = 16 << 20;

/* ---- in packed pieces ---- */

typedef struct Sides {
  umemVirtual *src, *dst, *host;
  uint64_t before; /* failures of this thread when the copy began */
  size_t piece;    /* bytes of a packed piece */
  uintptr_t
      ordered; /* as many bytes, for a piece in the order of the source; 0 until they are needed */
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

/* Reads the whole span of the source's runs when the gaps are small, and sorts their items into packed. Returns false
 * if they are not, or if there is no memory for the span. */
static bool read_sieved(Sides *sides, uintptr_t src_adr, uintptr_t packed, umemLayout const *items,
                        umemLayout const *of_runs) {
  umemLayoutSpan span;
  if (!umem_span_of(items->item_size, items->rank, items->extents, items->src_strides, &span))
    return false;
  size_t nbytes = (size_t)(span.high - span.low), runs = umem_count_items(of_runs);
  if (runs < 2 || nbytes > sieve_bytes || nbytes / runs > of_runs->item_size + cheap_gap)
    return false;
  char *buffer = malloc(nbytes);
  if (!buffer) return false;
  umem_read_run(sides->src, src_adr + (uintptr_t)span.low, sides->host, buffer, nbytes);
  umem_finish(sides->src);
  if (!failed(sides)) umem_copy_tiles((char *)packed, buffer - span.low, items);
  free(buffer);
  return true;
}

/* Allocates sides->ordered; false if there is no memory for it. */
static bool take_ordered(Sides *sides) {
  if (sides->ordered) return true;
  umemAttempt ignored;
  umemAttempt_begin(&ignored);
  uintptr_t adr = umem_alloc(sides->host, sides->piece);
  umemAttempt_end(&ignored);
  if (adr != umem_null_of(sides->host)) sides->ordered = adr;
  return sides->ordered != 0;
}

/* A layout between the source and a buffer that has its items in the order of the source, in normal form. */
static void order_by_source(umemNormalLayout *runs, umemLayout const *sorted, uintptr_t *src_adr,
                            uintptr_t *buffer) {
  umemLayout read = *sorted;
  read.src_strides = sorted->dst_strides;
  read.dst_strides = NULL;
  umem_normalise(runs, &read, src_adr, buffer);
}

/* Lets the source read the runs of a layout into host memory by itself, where it can. */
static bool read_direct(Sides *sides, uintptr_t src_adr, uintptr_t buffer,
                        umemLayout const *layout) {
  if (!layout->rank)
    read_one(sides, src_adr, buffer, layout->item_size);
  else if (!umem_copy_direct(sides->src, sides->src, src_adr, sides->host, buffer, layout))
    return false;
  umem_finish(sides->src);
  return true;
}

/* Reads in the order of the source, and then sorts the items into packed: in the order of packed a run may be no more
 * than an item. items is the layout between both. */
static void read_items(Sides *sides, uintptr_t src_adr, uintptr_t packed, umemLayout const *items) {
  umemLayout turned = *items;
  turned.src_strides = items->dst_strides;
  turned.dst_strides = items->src_strides;
  uintptr_t to = packed, first = src_adr, from = first, buffer = sides->ordered;
  umemNormalLayout sorted, runs, back;
  umem_normalise(&sorted, &turned, &to, &first); /* by falling strides of the source */
  from = first;
  order_by_source(&runs, &sorted.layout, &from, &buffer);
  bool differs = runs.layout.item_size != items->item_size || runs.layout.rank != items->rank;
  if (!differs && read_direct(sides, src_adr, packed, items)) return;
  bool done = differs && UMEM_SLOT(sides->src, copy_direct) && take_ordered(sides) &&
              read_direct(sides, from, sides->ordered, &runs.layout);
  if (!done) {
    if (read_sieved(sides, src_adr, packed, items, &runs.layout)) return;
    bool in_runs = runs.layout.item_size != items->item_size && take_ordered(sides);
    if (in_runs)
      for_each_run(sides, from, sides->ordered, &runs.layout, 0, read_one);
    else
      for_each_run(sides, src_adr, packed, items, 0, read_one);
    umem_finish(sides->src);
    if (!in_runs) return;
  }
  if (failed(sides)) return;
  umemLayout place = sorted.layout;
  place.src_strides = NULL;
  place.dst_strides = sorted.src;
  uintptr_t gathered = sides->ordered;
  umem_normalise(&back, &place, &gathered, &to);
  umem_copy_tiles((char *)to, (char const *)gathered, &back.layout);
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
    umem_copy_tiles((char *)to, (char const *)src_adr, &n.layout);
  } else if (n.layout.rank && umem_copy_windows(sides->src, src_adr, sides->host, to, &n.layout)) {
    umem_finish(sides->src);
  } else {
    read_items(sides, src_adr, to, &n.layout);
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
    umem_copy_tiles((char *)dst_adr, (char const *)from, &n.layout);
  else if (!n.layout.rank ||
           !(umem_copy_windows(sides->host, from, sides->dst, dst_adr, &n.layout) ||
             umem_copy_direct(sides->dst, sides->host, from, sides->dst, dst_adr, &n.layout)))
    for_each_run(sides, from, dst_adr, &n.layout, 0, write_one);
  umem_finish(sides->dst); /* packed is used again */
}

/* Packing and unpacking as legs of the copy. */
static void pack_leg(Sides *sides, uintptr_t src_adr, char *packed, umemLayout const *layout) {
  __attribute__((cleanup(umem_leg_close))) umemOpenLeg leg = {0};
  if (umem_is_watched()) {
    umem_leg_open(&leg, sides->src, NULL, umemWayItems,
                  umem_count_items(layout) * layout->item_size);
    leg.dst = umem_buffer_place(sides->host);
  }
  pack(sides, src_adr, packed, layout);
}

static void unpack_leg(Sides *sides, uintptr_t dst_adr, char const *packed,
                       umemLayout const *layout) {
  __attribute__((cleanup(umem_leg_close))) umemOpenLeg leg = {0};
  if (umem_is_watched()) {
    umem_leg_open(&leg, NULL, sides->dst, umemWayItems,
                  umem_count_items(layout) * layout->item_size);
    leg.src = umem_buffer_place(sides->host);
  }
  unpack(sides, dst_adr, packed, layout);
}

/* Halves the layout until a piece fits into packed. */
static void copy_pieces(Sides *sides, uintptr_t src_adr, uintptr_t dst_adr,
                        umemLayout const *layout, char *packed) {
  if (failed(sides)) return;
  if (umem_count_items(layout) <= piece_bytes / layout->item_size) {
    pack_leg(sides, src_adr, packed, layout);
    if (!failed(sides)) unpack_leg(sides, dst_adr, packed, layout);
    return;
  }
  umemHalves halves;
  umem_halve(&halves, layout, umem_widest(layout, layout->extents));
  copy_pieces(sides, src_adr, dst_adr, &halves.first, packed);
  copy_pieces(sides, src_adr + (uintptr_t)halves.src, dst_adr + (uintptr_t)halves.dst,
              &halves.second, packed);
}

void umem_copy_items(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                     umemLayout const *layout) {
  Sides sides = {.src = src, .dst = dst, .before = umem_thread.failures};
  if (umem_cpu_reads(src) && umem_cpu_writes(dst)) {
    umem_finish(src);
    umem_finish(dst);
    if (!failed(&sides)) umem_copy_pointers((char *)dst_adr, (char const *)src_adr, layout, NULL);
    return;
  }
  if (umem_copy_windows(src, src_adr, dst, dst_adr, layout)) return;
  if (layout->item_size >= long_run) {
    for_each_run(&sides, src_adr, dst_adr, layout, 0, route_one);
    return;
  }
  sides.host = umem_host_between(src, dst);
  if (!sides.host) return;
  /* Earlier work of dst may still use what the CPU is going to read or overwrite. */
  if (umem_finish(dst) != umemOK) return;
  size_t all = umem_count_items(layout) * layout->item_size;
  sides.piece = all < piece_bytes ? all : piece_bytes;
  uintptr_t packed = umem_alloc(sides.host, sides.piece);
  if (packed == umem_null_of(sides.host)) {
    umemVirtual_adopt(src, sides.before);
    return;
  }
  copy_pieces(&sides, src_adr, dst_adr, layout, (char *)packed);
  umem_free(sides.host, packed);
  if (sides.ordered) umem_free(sides.host, sides.ordered);
}
