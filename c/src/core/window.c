/* window.c - see window.h.
 *
 * A layout that reaches over more bytes than a window has is halved until it does not: first until the source
 * fits, then, while that window is open, until the destination fits. So each byte of the source is mapped once. */
#include "core/window.h"
#include "base/faultable.h"
#include "core/context.h"
#include "core/layout.h"
#include "core/order.h"
#include "core/watch.h"
#include "core/tiles.h"

/* Bytes of a window: at most the first number, and where there is no such window down to the second. */
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

/* Calls part for both halves of the dimension whose items reach farthest on the side of these strides. */
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

/* Opens a window for all items. Returns false with *halve true where one for fewer of them may exist. */
static bool open_items(Side *side, uintptr_t adr, umemLayout const *layout,
                       ptrdiff_t const *strides, bool *halve) {
  umemLayoutSpan span;
  umem_span_of(layout->item_size, layout->rank, layout->extents, strides, &span);
  size_t nbytes = (size_t)(span.high - span.low);
  if (nbytes <= window_most && open_window(side, adr, &span)) return true;
  *halve = nbytes > window_least;
  return false;
}

static bool copy_open(Copy *copy, uintptr_t src_adr, uintptr_t dst_adr, umemLayout const *layout) {
  umemFaultableRange const guards[] = {copy->dst.open, copy->src.open};
  uint64_t begin = umem_route_clock();
  if (!umem_copy_pointers(pointer_of(&copy->dst, dst_adr), pointer_of(&copy->src, src_adr), layout,
                          guards))
    return false;
  size_t nbytes = umem_count_items(layout) * layout->item_size;
  umem_note(umemWayWindow, nbytes, umem_pointer_workers(layout), begin);
  return true;
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

bool umem_copy_windows(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                       umemLayout const *layout) {
  Copy copy;
  if (!look_at(&copy.src, src, umemReadable) || !look_at(&copy.dst, dst, umemWritable))
    return false;
  if (layout->item_size > item_most || umem_count_items(layout) < least_runs) return false;
  if (umem_finish(src) != umemOK || umem_finish(dst) != umemOK) return true;
  return copy_from_windows(&copy, src_adr, dst_adr, layout);
}
