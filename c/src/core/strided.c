/* strided.c - copies of array sections.
 *
 * A layout is first brought into a normal form that makes it as short as it can be, and is offered to
 * the contexts in that form. items.c copies what no context does by itself. */
#include "core/status.h"
#include "core/access.h"
#include "base/thread.h"
#include "core/enter.h"
#include "core/guard.h"
#include "core/items.h"
#include "core/layout.h"
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

/* layout has items. */
static inline __attribute__((always_inline)) void copy_layout(umemVirtual *src, uintptr_t src_adr,
                                                              umemVirtual *dst, uintptr_t dst_adr,
                                                              umemLayout const *layout) {
  umemNormalLayout n;
  umem_normalise(&n, layout, &src_adr, &dst_adr);
  if (!n.layout.rank)
    umem_copy_run(src, src_adr, dst, dst_adr, n.layout.item_size);
  else if (umem_is_watched())
    watched_route(src, src_adr, dst, dst_adr, &n.layout);
  else
    route(src, src_adr, dst, dst_adr, &n.layout, false);
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
