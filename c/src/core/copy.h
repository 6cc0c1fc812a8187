/* copy.h - copies of items with strides and of lists of runs, and whether the two sides of a copy
 * have bytes in common. */
#ifndef UMEM_CORE_COPY_H
#define UMEM_CORE_COPY_H

#include <stddef.h>
#include <stdint.h>

#include "core/context.h"
#include "core/plan.h"

/* ---- overlap ---- */

/* Items of one size, the first of which is at adr. There is at least one, and umem_span_of finds
 * their span. */
typedef struct umemItems {
  uintptr_t adr;
  size_t item_size;
  int rank;
  size_t const *extents;
  ptrdiff_t const *strides;
} umemItems;

/* Whether an item of one has a byte of an item of the other. Also true where it would take too
 * long to find out: layouts whose strides are no multiples of each other, in several dimensions. */
bool umem_items_meet(umemItems const *one, umemItems const *other);

/* Whether both contexts have the same bytes at the same addresses. Where they have one storage
 * at other addresses, such as a file and a mapping of it, changes both addresses to numbers of
 * bytes in that. */
bool umem_share_bytes(umemVirtual *src, uintptr_t *src_adr, umemVirtual *dst, uintptr_t *dst_adr);

/* In which order the items of a copy can be moved, so that none is overwritten before it is
 * read. */
typedef enum umemOverlap {
  umemOverlapNone,  /* in any order */
  umemOverlapShift, /* by their addresses: falling, where they move to higher ones, else rising */
  umemOverlapAll    /* in none: all must be read first */
} umemOverlap;

/* layout is in normal form. */
umemOverlap umem_overlap(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                         umemLayout const *layout);

/* False only if umem_overlap is umemOverlapNone for n bytes. */
static inline bool umem_may_overlap(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst,
                                    uintptr_t dst_adr, size_t n) {
  uint32_t const aliased = umemOffsets | umemFaultable; /* a file may have several contexts */
  bool near = src_adr < dst_adr + n && dst_adr < src_adr + n;
  return __builtin_expect(near || ((src->capabilities & aliased) && (dst->capabilities & aliased)),
                          0);
}

/* ---- items ---- */

/* The bytes of both sides from the first that belongs to an item up to the last one. */
typedef struct umemRanges {
  uintptr_t src, dst;
  size_t src_bytes, dst_bytes;
} umemRanges;

/* Whether the items of layout can be copied; false with a status otherwise. Fills in *ranges;
 * src_bytes is 0 if there are no items. */
bool umem_check_strided(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                        umemLayout const *layout, umemRanges *ranges);

/* Copies the items of a layout that was checked. */
void umem_copy_layout(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                      umemLayout const *layout, umemRanges const *ranges);

/* umem_copy_run for sides of which umem_may_overlap knows nothing better. */
void umem_copy_bytes_over(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                          size_t nbytes);

/* Copies a validated run of nbytes > 0, also over itself. */
static inline __attribute__((always_inline)) void
umem_copy_any_run(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                  size_t nbytes) {
  if (umem_may_overlap(src, src_adr, dst, dst_adr, nbytes))
    umem_copy_bytes_over(src, src_adr, dst, dst_adr, nbytes);
  else
    umem_copy_run(src, src_adr, dst, dst_adr, nbytes);
}

#endif
