/* pool_range.h - ranges of a pool's chunks, which belong to its free lists. See pool.h. All under the lock.
 *
 * A range is counted in units from address 0 on. A live range of a list is a span, a large block, or in
 * transit to another list. */
#ifndef UMEM_POOL_RANGE_H
#define UMEM_POOL_RANGE_H

#include "pool/pool_core.h"

/* The result of a request for a range of the list. */
typedef enum umemPoolResult {
  umemPoolFound,
  umemPoolNoneFree, /* no free range of the list suits */
  umemPoolNoRam     /* for the record of what was found */
} umemPoolResult;

/* Makes free units of the list a live range, at a multiple of alignment bytes. False when no free range of
 * the list suits. */
bool umemPoolRange_take(umemPoolFreeList *list, uint64_t units, size_t alignment, uintptr_t *adr);

/* Frees a live range of home, and gives it to list. Returns its units. Returns 0, and changes nothing, if no such
 * range begins at adr, or if there is no RAM for the records, which cannot happen if list is home. */
uint64_t umemPoolRange_free(umemPoolFreeList *list, umemPoolFreeList *home, uintptr_t adr);

/* The list whose live range, not in transit, begins at adr, and its units; NULL when there is none. */
umemPoolFreeList *umemPoolRange_home(umemPoolCore *core, uintptr_t adr, uint64_t *units);

static inline uint64_t umemPoolRange_largest(umemPoolFreeList const *list) {
  return umemRange_totals(list->range).largest_free;
}

/* ---- in transit ---- */

/* Live ranges of home that are on their way to another list, and no blocks. */
struct umemPoolTransit {
  struct umemPoolTransit *next;
  umemPoolFreeList *home;
  size_t count;
  uint64_t starts[];
};

/* An empty one with room for count ranges of home; NULL, with a failure, without memory. */
umemPoolTransit *umemPoolTransit_new(umemPoolFreeList *home, size_t count);

/* One with all free ranges of home; NULL, with a failure, without memory. */
umemPoolTransit *umemPoolTransit_of_all(umemPoolFreeList *home);

/* Frees the ranges and gives them to the list; or to their home, if there is no RAM for the records. Frees transit.
 * Returns whether the list has got all. */
bool umemPoolTransit_end(umemPoolTransit *transit, umemPoolFreeList *list);

/* Frees all that are left when the pool ends. */
void umemPoolTransit_free_all(umemPoolCore *core);

#endif
