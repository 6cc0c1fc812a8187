/* strided.c - copies of array sections, and copies within one memory whose sides overlap.
 *
 * A layout is first brought into a normal form that makes it as short as it can be, and is offered to
 * the contexts in that form. items.c copies what no context does by itself.
 *
 * No route may rely on an order of the items. So a copy whose sides overlap becomes several that do not: pieces of
 * items in the order in which none is overwritten before it is read, those that overlap with themselves by way of a
 * buffer in host memory. Where there is no such order, the buffer takes all items. */
#include "core/status.h"
#include "core/access.h"
#include "base/thread.h"
#include "core/ends.h"
#include "core/enter.h"
#include "core/guard.h"
#include "core/items.h"
#include "core/layout.h"
#include "core/order.h"
#include "core/overlap.h"
#include "core/ram.h"
#include "core/route.h"
#include "core/run.h"
#include "core/strided.h"

/* Whether the layout makes sense by itself; false with a status otherwise. */
static bool check_layout(umemVirtual *src, umemLayout const *layout) {
  if (!layout || layout->size < sizeof(umemLayout))
    return UMEM_FAIL(src, umemValueError, "the layout is %s",
                     layout ? "too small: set its size to sizeof(umemLayout)" : "NULL");
  if (layout->rank < 0 || layout->rank > UMEM_MAX_RANK)
    return UMEM_FAIL(src, umemValueError, "rank %d is not in 0 ... %d", layout->rank,
                     UMEM_MAX_RANK);
  if (layout->rank && !layout->extents)
    return UMEM_FAIL(src, umemValueError, "the layout of rank %d has no extents", layout->rank);
  return true;
}

static bool is_empty(umemLayout const *layout) {
  for (int k = 0; k < layout->rank; k++)
    if (!layout->extents[k]) return true;
  return !layout->item_size;
}

/* Whether all items that start at adr with these strides can have addresses; false with a status. */
static bool check_side(umemVirtual *ctx, uintptr_t adr, umemLayout const *layout,
                       ptrdiff_t const *strides, umemCapability access) {
  ptrdiff_t dense[UMEM_MAX_RANK];
  umemLayoutSpan span;
  bool sane = umem_c_strides(layout->item_size, layout->rank, layout->extents, dense) &&
              umem_span_of(layout->item_size, layout->rank, layout->extents,
                           strides ? strides : dense, &span);
  if (!sane || (span.low < 0 && adr < (uintptr_t)-span.low))
    return UMEM_FAIL(ctx, umemValueError, "the items leave the address space of %s",
                     umem_get_device_name(ctx));
  if (adr == umem_null_of(ctx)) return umem_validate(ctx, adr, 0, access);
  return umem_validate(ctx, adr + (uintptr_t)span.low, (size_t)(span.high - span.low), access);
}

/* Compiled twice, as copy_run in run.c. */
static inline __attribute__((always_inline)) void route(umemVirtual *src, uintptr_t src_adr,
                                                        umemVirtual *dst, uintptr_t dst_adr,
                                                        umemLayout const *layout, bool watched) {
  bool (*direct)(umemVirtual *, umemVirtual *, uintptr_t, umemVirtual *, uintptr_t,
                 umemLayout const *) = watched ? umem_copy_direct_watched : umem_copy_direct;
  if (!direct(src, src, src_adr, dst, dst_adr, layout) &&
      !direct(dst, src, src_adr, dst, dst_adr, layout))
    umem_copy_items(src, src_adr, dst, dst_adr, layout);
}

static __attribute__((noinline)) void watched_route(umemVirtual *src, uintptr_t src_adr,
                                                    umemVirtual *dst, uintptr_t dst_adr,
                                                    umemLayout const *layout) {
  size_t nbytes = umem_count_items(layout) * layout->item_size;
  umemTrace trace;
  __attribute__((cleanup(umem_leg_close))) umemOpenLeg whole;
  umem_trace_open(&trace, &whole, src, dst, nbytes);
  __attribute__((cleanup(umem_leg_close))) umemOpenLeg leg;
  umem_leg_open(&leg, src, dst, umemWayItems, nbytes);
  route(src, src_adr, dst, dst_adr, layout, true);
}

static inline __attribute__((always_inline)) bool check_sides(umemVirtual *src, uintptr_t src_adr,
                                                              umemVirtual *dst, uintptr_t dst_adr,
                                                              umemLayout const *layout) {
  return check_side(src, src_adr, layout, layout->src_strides, umemReadable) &&
         check_side(dst, dst_adr, layout, layout->dst_strides, umemWritable);
}

/* layout is in normal form. */
static inline __attribute__((always_inline)) void copy_normal(umemVirtual *src, uintptr_t src_adr,
                                                              umemVirtual *dst, uintptr_t dst_adr,
                                                              umemLayout const *layout) {
  if (!layout->rank)
    umem_copy_run(src, src_adr, dst, dst_adr, layout->item_size);
  else if (umem_is_watched())
    watched_route(src, src_adr, dst, dst_adr, layout);
  else
    route(src, src_adr, dst, dst_adr, layout, false);
}

/* ---- sides that overlap ---- */

/* Bytes of the buffer for pieces; and of pieces that are worth a copy of their own, which needs no buffer. */
static size_t const most_buffer = 4 << 20, least_piece = 64 << 10;

typedef struct Move {
  umemVirtual *src, *dst, *host;
  uintptr_t src_adr, dst_adr;
  ptrdiff_t
      shift; /* from an item of the source to that of the destination, in bytes of their memory */
  uintptr_t buffer; /* in host */
  size_t room;      /* bytes of the buffer; 0: pieces need none */
  uint64_t before;  /* failures of this thread when the copy began */
} Move;

static bool failed(Move const *move) { return umem_thread.failures != move->before; }

/* src or dst NULL: the buffer. */
static void copy_leg(Move const *move, umemVirtual *src, ptrdiff_t src_offset, umemVirtual *dst,
                     ptrdiff_t dst_offset, umemLayout const *layout) {
  umemNormalLayout n;
  uintptr_t from = src ? move->src_adr + (uintptr_t)src_offset : move->buffer;
  uintptr_t to = dst ? move->dst_adr + (uintptr_t)dst_offset : move->buffer;
  umem_normalise(&n, layout, &from, &to);
  copy_normal(src ? src : move->host, from, dst ? dst : move->host, to, &n.layout);
}

/* Reads all items before it writes the first. An item that goes to many is in the buffer once. offset: of the first item
 * from that of the whole copy. */
static void copy_buffered(Move const *move, ptrdiff_t offset, ptrdiff_t dst_offset,
                          umemLayout const *layout) {
  size_t extents[UMEM_MAX_RANK];
  ptrdiff_t strides[UMEM_MAX_RANK];
  for (int k = 0; k < layout->rank; k++)
    extents[k] = layout->src_strides[k] ? layout->extents[k] : 1;
  umem_c_strides(layout->item_size, layout->rank, extents, strides);
  for (int k = 0; k < layout->rank; k++)
    if (!layout->src_strides[k]) strides[k] = 0;
  umemLayout gather = *layout, scatter = *layout;
  gather.extents = extents;
  gather.dst_strides = scatter.src_strides = strides;
  copy_leg(move, move->src, offset, NULL, 0, &gather);
  if (failed(move) || umem_finish(move->src) != umemOK) return;
  copy_leg(move, NULL, 0, move->dst, dst_offset, &scatter);
  umem_finish(move->dst);
}

/* How many bytes a buffer for all items needs. */
static size_t buffered_bytes(umemLayout const *layout) {
  size_t nbytes = layout->item_size;
  for (int k = 0; k < layout->rank; k++)
    if (layout->src_strides[k]) nbytes *= layout->extents[k];
  return nbytes;
}

/* Whether the items of a piece that moves overlap with themselves: far from the ends of all addresses. */
static bool meets_itself(Move const *move, umemLayout const *layout) {
  umemItems const from = {UINTPTR_MAX / 2, layout->item_size, layout->rank, layout->extents,
                          layout->dst_strides};
  umemItems to = from;
  to.adr += (uintptr_t)move->shift;
  return umem_items_meet(&from, &to);
}

/* Cuts a layout whose strides are those of both sides into pieces that follow one another by their addresses, and copies
 * them in the order of the move. */
static void copy_in_order(Move const *move, ptrdiff_t offset, umemLayout const *layout) {
  size_t nbytes = umem_count_items(layout) * layout->item_size;
  if (failed(move)) return;
  if (!meets_itself(move, layout)) {
    copy_leg(move, move->src, offset, move->dst, offset, layout);
    return;
  }
  if (nbytes <= move->room) {
    copy_buffered(move, offset, offset, layout);
    return;
  }
  umemHalves halves;
  umemLayout low = *layout, high = *layout;
  ptrdiff_t half;
  int k = 0;
  while (k < layout->rank && layout->extents[k] == 1) k++;
  if (k < layout->rank) {
    umem_halve(&halves, layout, k);
    low = halves.first, high = halves.second, half = halves.src;
  } else {
    low.item_size /= 2;
    high.item_size -= low.item_size;
    half = (ptrdiff_t)low.item_size;
  }
  bool up = move->shift < 0;
  copy_in_order(move, up ? offset : offset + half, up ? &low : &high);
  copy_in_order(move, up ? offset + half : offset, up ? &high : &low);
}

static void copy_moving(Move *move, umemOverlap overlap, umemLayout const *layout) {
  size_t nbytes = buffered_bytes(layout);
  bool short_shift = (size_t)(move->shift < 0 ? -move->shift : move->shift) < least_piece;
  if (overlap == umemOverlapAll)
    move->room = nbytes;
  else if (layout->rank || short_shift)
    move->room = nbytes < most_buffer ? nbytes : most_buffer;
  if (move->room) {
    move->host = umem_host_between(move->src, move->dst);
    if (!move->host) return;
    move->buffer = umem_alloc(move->host, move->room);
    if (move->buffer == umem_null_of(move->host)) {
      umemVirtual_adopt(move->src, move->before);
      return;
    }
  }
  /* Earlier work of dst may still use what is going to be read. */
  bool ready = !move->room || umem_finish(move->dst) == umemOK;
  if (ready && overlap == umemOverlapAll)
    copy_buffered(move, 0, 0, layout);
  else if (ready)
    copy_in_order(move, 0, layout);
  if (move->room) umem_free(move->host, move->buffer);
}

/* An adaptor hands the copy to its upstream, where the sides overlap as well. */
static bool pass_on(umemVirtual *self, umemVirtual *src, uintptr_t src_adr, umemVirtual *dst,
                    uintptr_t dst_adr, umemLayout const *layout) {
  return UMEM_SLOT(self, upstream) && umem_copy_direct(self, src, src_adr, dst, dst_adr, layout);
}

/* layout is in normal form. */
static __attribute__((noinline)) void copy_overlapping(umemVirtual *src, uintptr_t src_adr,
                                                       umemVirtual *dst, uintptr_t dst_adr,
                                                       umemOverlap overlap,
                                                       umemLayout const *layout) {
  if (pass_on(src, src, src_adr, dst, dst_adr, layout) ||
      pass_on(dst, src, src_adr, dst, dst_adr, layout))
    return;
  bool in_ram = src->vptr->copy_to == umem_ram_copy_to && umem_cpu_writes(dst) &&
                !UMEM_SLOT(src, copy_direct) && !UMEM_SLOT(dst, copy_direct);
  if (in_ram && !layout->rank) { /* its method is memmove */
    umem_copy_run(src, src_adr, dst, dst_adr, layout->item_size);
    return;
  }
  Move move = {.src = src,
               .dst = dst,
               .src_adr = src_adr,
               .dst_adr = dst_adr,
               .before = umem_thread.failures};
  umem_share_bytes(src, &src_adr, dst, &dst_adr);
  move.shift = (ptrdiff_t)(dst_adr - src_adr);
  size_t nbytes = umem_count_items(layout) * layout->item_size;
  __attribute__((cleanup(umem_leg_close))) umemOpenLeg whole = {0};
  umemTrace trace;
  if (umem_is_watched()) umem_trace_open(&trace, &whole, src, dst, nbytes);
  copy_moving(&move, overlap, layout);
}

/* ---- any layout ---- */

/* layout is in normal form and has items. */
static umemOverlap overlap_of(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst,
                              uintptr_t dst_adr, umemLayout const *layout) {
  umemLayoutSpan from = {0, (ptrdiff_t)layout->item_size}, to = from;
  if (layout->rank) {
    umem_span_of(layout->item_size, layout->rank, layout->extents, layout->src_strides, &from);
    umem_span_of(layout->item_size, layout->rank, layout->extents, layout->dst_strides, &to);
  }
  size_t from_length = (size_t)(from.high - from.low), to_length = (size_t)(to.high - to.low);
  size_t length = from_length > to_length ? from_length : to_length;
  if (!umem_may_overlap(src, src_adr + (uintptr_t)from.low, dst, dst_adr + (uintptr_t)to.low,
                        length))
    return umemOverlapNone;
  return umem_overlap(src, src_adr, dst, dst_adr, layout);
}

/* layout has items. */
static inline __attribute__((always_inline)) void copy_layout(umemVirtual *src, uintptr_t src_adr,
                                                              umemVirtual *dst, uintptr_t dst_adr,
                                                              umemLayout const *layout) {
  umemNormalLayout n;
  umem_normalise(&n, layout, &src_adr, &dst_adr);
  umemOverlap overlap = overlap_of(src, src_adr, dst, dst_adr, &n.layout);
  if (__builtin_expect(overlap != umemOverlapNone, 0))
    copy_overlapping(src, src_adr, dst, dst_adr, overlap, &n.layout);
  else
    copy_normal(src, src_adr, dst, dst_adr, &n.layout);
}

void umem_copy_bytes_over(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                          size_t nbytes) {
  umemLayout layout = {.size = sizeof layout, .item_size = nbytes};
  umemOverlap overlap = umem_overlap(src, src_adr, dst, dst_adr, &layout);
  if (overlap != umemOverlapNone)
    copy_overlapping(src, src_adr, dst, dst_adr, overlap, &layout);
  else
    umem_copy_run(src, src_adr, dst, dst_adr, nbytes);
}

bool umem_check_strided(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                        umemLayout const *layout) {
  return check_layout(src, layout) &&
         (is_empty(layout) || check_sides(src, src_adr, dst, dst_adr, layout));
}

void umem_copy_layout(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                      umemLayout const *layout) {
  if (!is_empty(layout)) copy_layout(src, src_adr, dst, dst_adr, layout);
}

umemStatusType umem_copy_strided(void *src, uintptr_t src_adr, void *dst, uintptr_t dst_adr,
                                 umemLayout const *layout) {
  UMEM_ENTER();
  uint64_t before = umem_thread.failures;
  umemVirtual *from = umem_guard(src);
  umemVirtual *to = umem_guard(dst);
  if (from && to && check_layout(from, layout) && !is_empty(layout) &&
      check_sides(from, src_adr, to, dst_adr, layout))
    copy_layout(from, src_adr, to, dst_adr, layout);
  return umem_result(before);
}

bool umem_copy_overlaps(void *src, uintptr_t src_adr, void *dst, uintptr_t dst_adr,
                        umemLayout const *layout) {
  UMEM_ENTER();
  umemVirtual *from = umem_guard(src);
  umemVirtual *to = umem_guard(dst);
  umemNormalLayout n;
  if (!from || !to || !umem_check_strided(from, src_adr, to, dst_adr, layout) || is_empty(layout))
    return false;
  umem_normalise(&n, layout, &src_adr, &dst_adr);
  return overlap_of(from, src_adr, to, dst_adr, &n.layout) != umemOverlapNone;
}
