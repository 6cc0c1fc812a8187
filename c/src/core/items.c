/* items.c - copies items with strides, for sides that have no route of their own: item by item
 * where the CPU can address both sides, or has windows on them; otherwise run by run where the
 * runs are long, else in packed pieces through host memory. */
#include "core/copy.h"
#include "core/layout.h"
#include "core/hook.h"
#include "core/ram.h"

#include <stdlib.h>

/* ---- through windows ----
 *
 * A layout that reaches over more bytes than a window has is halved until it does not: first until
 * the source fits, then, while that window is open, until the destination fits. So each byte of the
 * source is mapped once. */

/* Bytes of a window: at most the first number, and where there is no such window down to the
 * second. */
static size_t const window_most = (size_t)1 << 30, window_least = 64 << 20;
/* Longer items are runs, which copy_to and copy_from move best. */
static size_t const item_most = 1 << 20;
/* Fewer runs than this are copied with fewer system calls one by one. */
static size_t const least_runs = 8;

/* One side of the copy, and the part of it that is open. */
typedef struct Side {
  umemVirtual *ctx;
  umemCapability access;
  bool has_window; /* otherwise the CPU may use its addresses */
  umemWindow window;
  umemFaultableRange open;
  uintptr_t first; /* address in ctx of the first byte that is open */
} Side;

typedef struct Copy {
  Side src, dst;
} Copy;

static bool look_at(Side *side, umemVirtual *ctx, umemCapability access) {
  *side = (Side){.ctx = ctx, .access = access};
  if (access == umemReadable ? umem_cpu_reads(ctx) : umem_cpu_writes(ctx)) return true;
  side->has_window = UMEM_SLOT(ctx, window) != NULL;
  return side->has_window;
}

static bool open_window(Side *side, uintptr_t adr, umemLayoutSpan const *span) {
  size_t nbytes = (size_t)(span->high - span->low);
  side->first = adr + (uintptr_t)span->low;
  side->window = (umemWindow){0};
  if (!side->ctx->vptr->window(side->ctx, side->first, nbytes, side->access, &side->window))
    return false;
  side->open = (umemFaultableRange){(uintptr_t)side->window.bytes, nbytes};
  return true;
}

static void close_window(Side *side) {
  if (side->window.release) side->window.release(side->ctx, &side->window);
  side->open = (umemFaultableRange){0};
}

/* The pointer to adr, which is open. */
static char *pointer_of(Side const *side, uintptr_t adr) {
  return (char *)(side->has_window ? side->open.first + (adr - side->first) : adr);
}

/* ---- halving ---- */

typedef bool CopyPart(Copy *copy, uintptr_t src_adr, uintptr_t dst_adr, umemLayout const *layout);

/* Calls part for both halves of the dimension whose items reach farthest on the side of these
 * strides. */
static bool halve(Copy *copy, uintptr_t src_adr, uintptr_t dst_adr, umemLayout const *layout,
                  ptrdiff_t const *strides, CopyPart *part) {
  umemLayout only = *layout;
  only.src_strides = only.dst_strides = strides;
  int k = umem_widest(&only, layout->extents);
  umemHalves halves;
  umem_halve(&halves, layout, k);
  return part(copy, src_adr, dst_adr, &halves.first) &&
         part(copy, src_adr + (uintptr_t)halves.src, dst_adr + (uintptr_t)halves.dst,
              &halves.second);
}

/* Opens a window for all items. Returns false with *halve true where one for fewer of them may
 * exist. */
static bool open_items(Side *side, uintptr_t adr, umemLayout const *layout,
                       ptrdiff_t const *strides, bool *halve) {
  umemLayoutSpan span;
  umem_span_of(layout->item_size, layout->rank, layout->extents, strides, &span);
  size_t nbytes = (size_t)(span.high - span.low);
  if (nbytes <= window_most && open_window(side, adr, &span)) return true;
  *halve = nbytes > window_least;
  return false;
}

/* Items between open windows. */
typedef struct Part {
  char *dst;
  char const *src;
  umemLayout const *layout;
  umemFaultableRange ranges[2];
} Part;

static bool copy_part(void *job) {
  Part const *part = job;
  return umem_copy_pointers(part->dst, part->src, part->layout, part->ranges);
}

static bool copy_open(Copy *copy, uintptr_t src_adr, uintptr_t dst_adr, umemLayout const *layout) {
  Part part = {pointer_of(&copy->dst, dst_adr),
               pointer_of(&copy->src, src_adr),
               layout,
               {copy->dst.open, copy->src.open}};
  if (!umem_is_watched()) return copy_part(&part);
  return umem_step_hook(&(umemStep){.way = umemWayWindow,
                                    .nbytes = umem_count_items(layout) * layout->item_size,
                                    .workers = umem_pointer_workers(layout)},
                        copy_part, &part);
}

/* The window of the source is open. */
static bool copy_to_windows(Copy *copy, uintptr_t src_adr, uintptr_t dst_adr,
                            umemLayout const *layout) {
  bool smaller = false;
  if (!copy->dst.has_window) return copy_open(copy, src_adr, dst_adr, layout);
  if (!open_items(&copy->dst, dst_adr, layout, layout->dst_strides, &smaller))
    return smaller && halve(copy, src_adr, dst_adr, layout, layout->dst_strides, copy_to_windows);
  bool done = copy_open(copy, src_adr, dst_adr, layout);
  close_window(&copy->dst);
  return done;
}

static bool copy_from_windows(Copy *copy, uintptr_t src_adr, uintptr_t dst_adr,
                              umemLayout const *layout) {
  bool smaller = false;
  if (!copy->src.has_window) return copy_to_windows(copy, src_adr, dst_adr, layout);
  if (!open_items(&copy->src, src_adr, layout, layout->src_strides, &smaller))
    return smaller && halve(copy, src_adr, dst_adr, layout, layout->src_strides, copy_from_windows);
  bool done = copy_to_windows(copy, src_adr, dst_adr, layout);
  close_window(&copy->src);
  return done;
}

/* Copies a layout of rank > 0 where each side has a window or addresses that the CPU may use.
 * Returns true if all is copied, or if waiting for a side failed with a status. Returns false,
 * with nothing recorded, if there are no windows or fewer items than make them worth it, or if a
 * page could not be touched: some of the items may be in dst then. */
static bool copy_windows(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                         umemLayout const *layout) {
  Copy copy;
  if (!look_at(&copy.src, src, umemReadable) || !look_at(&copy.dst, dst, umemWritable))
    return false;
  if (layout->item_size > item_most || umem_count_items(layout) < least_runs) return false;
  if (umem_finish(src) != umemOK || umem_finish(dst) != umemOK) return true;
  return copy_from_windows(&copy, src_adr, dst_adr, layout);
}

/* ---- in packed pieces ---- */

/* Runs at least this long are copied one by one; shorter ones are packed first. */
static size_t const long_run = 16 << 10;
/* Bytes of a packed piece; it fits the CPU's cache between reading and writing. */
static size_t const piece_bytes = 1 << 20;
/* Reading a gap of this many bytes costs less than another call ("data sieving": R. Thakur, W.
 * Gropp, E. Lusk: "Data Sieving and Collective I/O in ROMIO", Frontiers 1999). */
static size_t const cheap_gap = 4 << 10;
static size_t const sieve_bytes = 16 << 20;

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

static void copy_one(Sides *sides, uintptr_t src_adr, uintptr_t dst_adr, size_t nbytes) {
  umem_copy_run(sides->src, src_adr, sides->dst, dst_adr, nbytes);
}

/* Reads the whole span of the source's runs when the gaps are small, and sorts their items into
 * packed. Returns false if they are not, or if there is no memory for the span. */
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
  UMEM_FORGETTING();
  uintptr_t adr = umem_alloc(sides->host, sides->piece);
  if (adr != umem_null_of(sides->host)) sides->ordered = adr;
  return sides->ordered != 0;
}

/* A layout between the source and a buffer that has its items in the order of the source, in
 * normal form. */
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
  else if (!umem_copy_direct(sides->src, src_adr, sides->host, buffer, layout))
    return false;
  umem_finish(sides->src);
  return true;
}

/* items with the source as destination, by falling strides of the source. */
static void sort_by_source(umemNormalLayout *sorted, umemLayout const *items, uintptr_t *src_adr,
                           uintptr_t *packed) {
  umemLayout turned = *items;
  turned.src_strides = items->dst_strides;
  turned.dst_strides = items->src_strides;
  umem_normalise(sorted, &turned, packed, src_adr);
}

/* Reads in the order of the source, and then sorts the items into packed: in the order of packed
 * a run may be no more than an item. items is the layout between both. */
static void read_items(Sides *sides, uintptr_t src_adr, uintptr_t packed, umemLayout const *items) {
  uintptr_t to = packed, first = src_adr, from = first, buffer = sides->ordered;
  umemNormalLayout sorted, runs, back;
  sort_by_source(&sorted, items, &first, &to);
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

/* ---- runs that their context reads or writes by itself, rather than through a window ---- */

static bool plans(umemVirtual *ctx, umemVirtual *src, uintptr_t src_adr, umemVirtual *dst,
                  uintptr_t dst_adr, umemLayout const *layout) {
  return layout->rank && ctx->vptr->plan_copy(ctx, src, src_adr, dst, dst_adr, layout);
}

/* Whether src does so with the runs of a layout in the order of src. */
static bool reads_runs(umemVirtual *src, uintptr_t src_adr, umemLayout const *layout) {
  if (!UMEM_SLOT(src, window) || !UMEM_SLOT(src, plan_copy) || !src->host) return false;
  umemNormalLayout sorted, runs;
  uintptr_t packed = 0, buffer = 0;
  sort_by_source(&sorted, layout, &src_adr, &packed);
  order_by_source(&runs, &sorted.layout, &src_adr, &buffer);
  return plans(src, src, src_adr, src->host, buffer, &runs.layout);
}

/* Whether dst does so with the items of a layout. */
static bool writes_runs(umemVirtual *dst, uintptr_t dst_adr, umemLayout const *layout) {
  if (!UMEM_SLOT(dst, window) || !UMEM_SLOT(dst, plan_copy) || !dst->host) return false;
  umemNormalLayout n;
  uintptr_t packed = 0;
  umemLayout scatter = *layout;
  scatter.src_strides = NULL;
  umem_normalise(&n, &scatter, &packed, &dst_adr);
  return plans(dst, dst->host, packed, dst, dst_adr, &n.layout);
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
  } else if (n.layout.rank && !reads_runs(sides->src, src_adr, &n.layout) &&
             copy_windows(sides->src, src_adr, sides->host, to, &n.layout)) {
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
           !(umem_copy_direct(sides->host, from, sides->dst, dst_adr, &n.layout) ||
             copy_windows(sides->host, from, sides->dst, dst_adr, &n.layout)))
    for_each_run(sides, from, dst_adr, &n.layout, 0, write_one);
  umem_finish(sides->dst); /* packed is used again */
}

typedef struct Packing {
  Sides *sides;
  uintptr_t adr; /* of the first item, in the source or the destination */
  char *packed;
  umemLayout const *layout;
  bool unpacks;
} Packing;

static bool pack_job(void *job) {
  Packing const *packing = job;
  if (packing->unpacks)
    unpack(packing->sides, packing->adr, packing->packed, packing->layout);
  else
    pack(packing->sides, packing->adr, packing->packed, packing->layout);
  return true;
}

static void do_packing(Packing packing) {
  Sides *sides = packing.sides;
  if (failed(sides)) return;
  umemStep step = {.src = packing.unpacks ? sides->host : sides->src,
                   .dst = packing.unpacks ? sides->dst : sides->host,
                   .from_buffer = packing.unpacks,
                   .to_buffer = !packing.unpacks,
                   .way = umemWayItems,
                   .nbytes = umem_count_items(packing.layout) * packing.layout->item_size};
  if (umem_is_watched())
    umem_step_hook(&step, pack_job, &packing);
  else
    pack_job(&packing);
}

/* Halves the layout until a piece fits into packed. */
static void copy_pieces(Sides *sides, uintptr_t src_adr, uintptr_t dst_adr,
                        umemLayout const *layout, char *packed) {
  if (failed(sides)) return;
  if (umem_count_items(layout) <= piece_bytes / layout->item_size) {
    do_packing((Packing){sides, src_adr, packed, layout, false});
    do_packing((Packing){sides, dst_adr, packed, layout, true});
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
  bool by_runs = reads_runs(src, src_adr, layout) || writes_runs(dst, dst_adr, layout);
  if (!by_runs && copy_windows(src, src_adr, dst, dst_adr, layout)) return;
  if (layout->item_size >= long_run) {
    for_each_run(&sides, src_adr, dst_adr, layout, 0, copy_one);
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
