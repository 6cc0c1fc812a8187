/* overlap.h - which bytes the two sides of a copy have in common. */
#ifndef UMEM_OVERLAP_H
#define UMEM_OVERLAP_H

#include "core/guard.h"

#include <stddef.h>
#include <stdint.h>

/* Items of one size, the first of which is at adr. There is at least one, and umem_span_of finds their span. */
typedef struct umemItems {
  uintptr_t adr;
  size_t item_size;
  int rank;
  size_t const *extents;
  ptrdiff_t const *strides;
} umemItems;

/* Whether an item of one has a byte of an item of the other. Also true where it would take too long to find out: layouts
 * whose strides are no multiples of each other, in several dimensions. */
bool umem_items_meet(umemItems const *one, umemItems const *other);

/* Whether both contexts have the same bytes at the same addresses. Where they have one storage at other addresses, such
 * as a file and a mapping of it, changes both addresses to numbers of bytes in that. */
bool umem_share_bytes(umemVirtual *src, uintptr_t *src_adr, umemVirtual *dst, uintptr_t *dst_adr);

/* In which order the items of a copy can be moved, so that none is overwritten before it is read. */
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

#endif
