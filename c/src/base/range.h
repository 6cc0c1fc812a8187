/* range.h - an allocator of ranges of numbers.
 *
 * Hands out, takes back and looks up ranges [start, start + size) of one or more regions of a
 * 64-bit number line. It never touches what the numbers stand for (bytes of a file, of a GPU, of a
 * pool's chunk): all bookkeeping is in RAM, beside. Files and pools are built on it.
 *
 * Good fit in constant time: two-level segregated fit (M. Masmano, I. Ripoll, A. Crespo, J. Real:
 * "TLSF: a New Dynamic Memory Allocator for Real-Time Systems", ECRTS 2004). Live and free ranges
 * are found by address in an index whose cost depends on the length of the numbers only.
 *
 * The place of a range depends on nothing but the sequence of calls that succeeded. Files rely on
 * it from one version of the library to the next: a change of placement makes a program miss the
 * blocks that it wrote earlier.
 *
 * At most 2^27 ranges, live and free together; beyond that memory is short. A range costs 32 bytes,
 * and 25 or so in the index.
 *
 * Threads: none of its own concern; the owner holds a lock. */
#ifndef UMEM_RANGE_H
#define UMEM_RANGE_H

#include <stdbool.h>
#include <stdint.h>

/* No range: what failed requests return. */
#define UMEM_RANGE_NONE UINT64_MAX

typedef struct umemRange umemRange;

/* One range, as find and next return it. */
typedef struct umemRangeItem {
  uint64_t start;
  uint64_t size;   /* live: as requested. free: all of it */
  uint64_t extent; /* the bytes it occupies: size rounded up to the granule when live */
  bool live;
  bool held; /* live, but not by umemRange_alloc: on its way to be free, or to be dropped */
} umemRangeItem;

typedef struct umemRangeTotals {
  uint64_t live_count, live_bytes; /* bytes: extents */
  uint64_t free_count, free_bytes;
  uint64_t largest_free;
} umemRangeTotals;

/* Returns an allocator without any region, or NULL without memory or when granule, the natural
 * alignment and the unit of extents, is not a power of two. The caller owns it. */
umemRange *umemRange_create(uint64_t granule);
void umemRange_destroy(umemRange *range); /* NULL is ignored */

/* From now on umemRange_alloc looks longer for a place for requests of size or more, for less
 * waste, and promises no place from one version of the library to the next: of each class it
 * looks at the 8 ranges freed last, and takes the smallest that suffices, the lowest of several. */
void umemRange_fit_tightly(umemRange *range, uint64_t size);

/* Adds the region [start, start + size) as free. Both are multiples of the granule, size is not
 * 0, the end does not exceed 2^63, and it must not overlap what was added before. Neighbouring
 * regions join when joins is true; with false a range never spans the border, so that each
 * region can be removed again. Returns false, with nothing changed, without memory or when the
 * rules are broken. */
bool umemRange_add(umemRange *range, uint64_t start, uint64_t size, bool joins);

/* Removes [start, start + size), both multiples of the granule, which must be inside one free
 * range; what is left of it on either side stays. Returns false, with nothing changed, otherwise
 * or without memory. */
bool umemRange_remove(umemRange *range, uint64_t start, uint64_t size);

/* Returns the start, a multiple of alignment (a power of two) and of the granule, of a new live
 * range of size bytes; UMEM_RANGE_NONE when nothing fits, memory is short, size is 0 or
 * alignment is not a power of two, with nothing changed. Deterministic good fit, at the low end
 * of a free range. A class is one size below 32 granules, and 1/32 of a power of two above.
 * Tried in this order, always the one freed last first: the first range of the request's own
 * class, the first of the smallest class whose ranges all fit, and when there is none up to 64
 * of the ranges that may fit by chance. Separate numbers serve only if no others do. */
uint64_t umemRange_alloc(umemRange *range, uint64_t size, uint64_t alignment);

/* Does this with separate numbers alone: see umemRange_enter. */
uint64_t umemRange_alloc_separate(umemRange *range, uint64_t size, uint64_t alignment);

/* Frees the live range that begins at start, and joins it with free neighbours. Returns its
 * requested size, or 0, with nothing changed, when no live range begins there. Needs no memory:
 * cannot fail. */
uint64_t umemRange_free(umemRange *range, uint64_t start);

/* Makes the range that begins at start, free or live, a held one, all of it. Returns its size, or
 * 0, with nothing changed, when no range begins there. Needs no memory: cannot fail. */
uint64_t umemRange_hold(umemRange *range, uint64_t start);

/* Makes [start, start + size), both multiples of the granule, which must be inside one free
 * range, a held range. What is left on either side stays free. Returns false, with nothing
 * changed, otherwise or without memory. */
bool umemRange_take(umemRange *range, uint64_t start, uint64_t size);

/* Adds a held range of numbers that were not added before; when it is freed it joins its
 * neighbours. separate: these numbers stay separate from others as long as they are here, or in an
 * allocator to which they are handed; they join only one another. start, size and failures are
 * those of umemRange_add. */
bool umemRange_enter(umemRange *range, uint64_t start, uint64_t size, bool separate);

/* Removes the live range that begins at start, and its numbers. Returns its size; 0, with
 * nothing changed, when no live range begins there. Needs no memory: cannot fail. */
uint64_t umemRange_drop(umemRange *range, uint64_t start);

/* Frees the live range that begins at start into to, an allocator of the same granule that knows
 * nothing of these numbers: there it joins its free neighbours, but across no border of a region
 * that never joins. to may be range itself. Returns its requested size; 0, with nothing changed,
 * when no live range begins there, or to has no memory. */
uint64_t umemRange_hand(umemRange *range, uint64_t start, umemRange *to);

/* Fills in the range, live or free, that contains the number at. False when no region does. */
bool umemRange_find(umemRange const *range, uint64_t at, umemRangeItem *item);

/* Fills in the first range that begins at or after at, in order of address. False at the end.
 *     for (at = 0; umemRange_next(range, at, &item); at = item.start + item.extent) ... */
bool umemRange_next(umemRange const *range, uint64_t at, umemRangeItem *item);

/* Fills in another free range of size or more, in no order of address or size. *cursor is 0 before
 * the first one; nothing may change until the last one. False at the end. Smaller ranges cost
 * nothing, but for those of the class of size:
 *     for (cursor = 0; umemRange_next_free(range, size, &cursor, &item);) ... */
bool umemRange_next_free(umemRange const *range, uint64_t size, uint32_t *cursor,
                         umemRangeItem *item);

/* largest_free costs a look at each free range of the largest class; the rest is at hand. */
umemRangeTotals umemRange_totals(umemRange const *range);

#endif
