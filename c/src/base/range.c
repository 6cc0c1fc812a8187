/* range.c - where a range is placed: the policy over index.h, which holds all ranges, live and
 * free, in order of address: free ranges are kept in lists by class of size, separate ones in lists
 * of their own. Sizes are counted in granules here. A class is a row and a column: row 0 has one
 * class for each size below 32, each further row cuts the next power of two into 32 equal parts.
 * Bitmaps of rows and columns say which lists are not empty. */
#include "base/range.h"

#include "base/index.h"

#include <stdlib.h>

enum {
  COLUMN_BITS = 5,
  COLUMNS = 1 << COLUMN_BITS,
  ROWS = 64 - COLUMN_BITS + 1,
  CLASSES = ROWS * COLUMNS,
  /* How many ranges that may be too small are looked at before a request fails. */
  LAST_RESORT = 64,
  /* How many ranges of a class are compared, and how many classes are tried. */
  COMPARED = 8
};

/* Free spans by class. */
typedef struct FreeLists {
  uint64_t rows;           /* bit r: a list of row r is not empty */
  uint32_t columns[ROWS];  /* [r], bit c: the list of row r and column c is not empty */
  uint32_t lists[CLASSES]; /* the first span of each; 0 when empty */
} FreeLists;

struct umemRange {
  umemIndex index;
  uint64_t tight_from;    /* in extents: those of this size or more are placed tightly */
  umemRangeTotals totals; /* but largest_free */
  FreeLists lists[2];     /* [separate] */
};

/* ---- sizes ---- */

static inline bool is_power_of_two(uint64_t n) { return n && !(n & (n - 1)); }

static inline uint64_t granule_of(umemRange const *range) {
  return UINT64_C(1) << range->index.shift;
}

static inline bool is_granular(umemRange const *range, uint64_t n) {
  return !(n & (granule_of(range) - 1));
}

/* n is at most 2^63, as is unit, a power of two. */
static inline uint64_t round_up(uint64_t n, uint64_t unit) { return (n + unit - 1) & ~(unit - 1); }

static inline uint64_t extent_of(umemRange const *range, umemSpan const *span) {
  return span->live ? round_up(span->size, granule_of(range)) : span->size;
}

/* ---- classes ---- */

/* The power of two that a class of n granules spans. */
static inline unsigned class_shift(uint64_t n) {
  return n < COLUMNS ? 0 : (unsigned)(63 - __builtin_clzll(n)) - COLUMN_BITS;
}

/* The class that n granules belong to. */
static inline unsigned class_of(uint64_t n) {
  unsigned shift = class_shift(n);
  return shift * COLUMNS + (unsigned)(n >> shift);
}

/* The lowest class all of whose ranges have n granules or more; CLASSES when there is none. */
static inline unsigned class_above(uint64_t n) {
  if (n > UINT64_C(1) << 63) return CLASSES;
  return class_of(n + (UINT64_C(1) << class_shift(n)) - 1);
}

/* The lowest class from class on whose list is not empty; CLASSES when there is none. */
static inline unsigned filled_class(FreeLists const *lists, unsigned class) {
  if (class >= CLASSES) return CLASSES;
  unsigned row = class / COLUMNS;
  uint32_t columns = lists->columns[row] & UINT32_MAX << class % COLUMNS;
  if (!columns) {
    uint64_t rows = lists->rows & UINT64_MAX << (row + 1);
    if (!rows) return CLASSES;
    row = (unsigned)__builtin_ctzll(rows);
    columns = lists->columns[row];
  }
  return row * COLUMNS + (unsigned)__builtin_ctz(columns);
}

static inline FreeLists *lists_of(umemRange *range, umemSpan const *span) {
  return span->separate ? &range->lists[true] : &range->lists[false];
}

/* Makes span free, first in the list of its class. */
static inline void link_free(umemRange *range, uint32_t span) {
  umemSpan *spans = range->index.spans, *self = &spans[span];
  FreeLists *lists = lists_of(range, self);
  unsigned class = class_of(self->size >> range->index.shift);
  self->live = false;
  self->list_before = 0;
  self->list_after = lists->lists[class] & (UMEM_INDEX_LIMIT - 1);
  spans[self->list_after].list_before = span; /* that of span 0 means nothing */
  lists->lists[class] = span;
  lists->columns[class / COLUMNS] |= UINT32_C(1) << class % COLUMNS;
  lists->rows |= UINT64_C(1) << class / COLUMNS;
  range->totals.free_count += 1;
  range->totals.free_bytes += self->size;
}

/* Takes a free span out of its list. */
static void unlink_free(umemRange *range, uint32_t span) {
  umemSpan *spans = range->index.spans, *self = &spans[span];
  spans[self->list_after].list_before = self->list_before;
  if (self->list_before) {
    spans[self->list_before].list_after = self->list_after;
  } else {
    FreeLists *lists = lists_of(range, self);
    unsigned class = class_of(self->size >> range->index.shift);
    unsigned row = class / COLUMNS;
    lists->lists[class] = self->list_after;
    if (!self->list_after) lists->columns[row] &= ~(UINT32_C(1) << class % COLUMNS);
    if (!lists->columns[row]) lists->rows &= ~(UINT64_C(1) << row);
  }
  range->totals.free_count -= 1;
  range->totals.free_bytes -= self->size;
}

/* ---- split and join ---- */

/* Cuts span, which is in no list, at at inside of it. Returns the upper part; room for it must have
 * been reserved. */
static uint32_t cut(umemRange *range, uint32_t span, uint64_t at) {
  uint32_t upper = umemIndex_insert(&range->index, span, at);
  umemSpan *low = &range->index.spans[span], *high = &range->index.spans[upper];
  high->size = low->start + low->size - at;
  high->wall_above = low->wall_above;
  high->separate = low->separate;
  low->size = at - low->start;
  low->wall_above = false;
  return upper;
}

/* Whether low and the span after it are both free, both separate or neither, and nothing is between
 * them. */
static inline bool joins_next(umemRange const *range, uint32_t low) {
  umemSpan const *spans = range->index.spans, *self = &spans[low], *next = &spans[self->after];
  return !self->live && !next->live && !self->wall_above && !next->wall_below &&
         self->separate == next->separate && self->start + self->size == next->start;
}

/* Adds the span after low to low. Neither is in a list. */
static void absorb_next(umemRange *range, uint32_t low) {
  umemSpan *self = &range->index.spans[low];
  umemSpan const *next = &range->index.spans[self->after];
  self->size += next->size;
  self->wall_above = next->wall_above;
  umemIndex_erase(&range->index, self->after);
}

/* Makes span, which is in no list, free and joins it with its free neighbours. */
static void release(umemRange *range, uint32_t span) {
  umemSpan *self = &range->index.spans[span];
  self->live = self->held = false;
  if (joins_next(range, span)) {
    unlink_free(range, self->after);
    absorb_next(range, span);
  }
  uint32_t before = self->before;
  if (joins_next(range, before)) {
    unlink_free(range, before);
    absorb_next(range, before);
    span = before;
  }
  link_free(range, span);
}

/* ---- create and destroy ---- */

umemRange *umemRange_create(uint64_t granule) {
  if (!is_power_of_two(granule)) return NULL;
  umemRange *range = calloc(1, sizeof *range);
  if (!range) return NULL;
  if (!umemIndex_init(&range->index, (unsigned)__builtin_ctzll(granule))) {
    free(range);
    return NULL;
  }
  range->tight_from = UINT64_MAX;
  return range;
}

void umemRange_destroy(umemRange *range) {
  if (!range) return;
  umemIndex_fini(&range->index);
  free(range);
}

void umemRange_fit_tightly(umemRange *range, uint64_t size) { range->tight_from = size; }

/* ---- regions ---- */

/* Inserts a span of new numbers, in no list. 0, with nothing changed, without memory or when the
 * rules are broken. */
static uint32_t insert_new(umemRange *range, uint64_t start, uint64_t size) {
  uint64_t const limit = UINT64_C(1) << 63;
  if (!size || size > limit || start > limit - size) return 0;
  if (!is_granular(range, start) || !is_granular(range, size)) return 0;
  umemIndex *index = &range->index;
  uint32_t before = umemIndex_floor(index, start);
  uint32_t after = index->spans[before].after;
  if (before && start - index->spans[before].start < extent_of(range, &index->spans[before]))
    return 0;
  if (after && index->spans[after].start - start < size) return 0;
  if (!umemIndex_reserve(index, 1)) return 0;
  uint32_t span = umemIndex_insert(index, before, start);
  index->spans[span].size = size;
  return span;
}

bool umemRange_add(umemRange *range, uint64_t start, uint64_t size, bool joins) {
  uint32_t span = insert_new(range, start, size);
  if (!span) return false;
  umemSpan *self = &range->index.spans[span];
  self->wall_below = self->wall_above = !joins;
  release(range, span);
  return true;
}

/* Takes [start, start + size) out of the free span that holds it; what is left on either side stays
 * free. Returns its span, in no list any more; 0, with nothing changed, without memory. */
static uint32_t carve(umemRange *range, uint32_t span, uint64_t start, uint64_t size) {
  umemIndex *index = &range->index;
  uint64_t below = start - index->spans[span].start;
  uint64_t above = index->spans[span].size - below - size;
  if (!umemIndex_reserve(index, (below ? 1u : 0) + (above ? 1u : 0))) return 0;
  unlink_free(range, span);
  if (above) link_free(range, cut(range, span, start + size));
  if (!below) return span;
  uint32_t carved = cut(range, span, start);
  link_free(range, span);
  return carved;
}

/* carve of what must be inside one free span; 0, with nothing changed, where it is not, or
 * without memory. */
static uint32_t carve_free(umemRange *range, uint64_t start, uint64_t size) {
  if (!size || !is_granular(range, start) || !is_granular(range, size)) return 0;
  uint32_t span = umemIndex_floor(&range->index, start);
  umemSpan const *self = &range->index.spans[span];
  if (!span || self->live) return 0;
  uint64_t below = start - self->start;
  if (below >= self->size || self->size - below < size) return 0;
  return carve(range, span, start, size);
}

bool umemRange_remove(umemRange *range, uint64_t start, uint64_t size) {
  uint32_t removed = carve_free(range, start, size);
  if (removed) umemIndex_erase(&range->index, removed);
  return removed;
}

/* ---- allocate and free ---- */

/* Where in the free span extent bytes at a multiple of alignment begin; UMEM_RANGE_NONE when
 * they do not fit. */
static uint64_t place(umemSpan const *span, uint64_t extent, uint64_t alignment) {
  uint64_t skipped = round_up(span->start, alignment) - span->start;
  if (skipped > span->size || span->size - skipped < extent) return UMEM_RANGE_NONE;
  return span->start + skipped;
}

/* Whether a is a tighter place than b for the same block. */
static bool is_tighter(umemSpan const *a, umemSpan const *b) {
  return a->size != b->size ? a->size < b->size : a->start < b->start;
}

/* The tightest of the spans that were added to the class last; 0 when none suffices. */
static uint32_t tightest_of(umemSpan const *spans, uint32_t span, uint64_t extent,
                            uint64_t alignment) {
  uint32_t best = 0;
  for (unsigned i = 0; span && i < COMPARED; span = spans[span].list_after, i++)
    if (place(&spans[span], extent, alignment) != UMEM_RANGE_NONE &&
        (!best || is_tighter(&spans[span], &spans[best])))
      best = span;
  return best;
}

/* As choose_loosely; 0 also when a look at more ranges may find one. */
static uint32_t choose_tightly(umemRange const *range, FreeLists const *lists, uint64_t extent,
                               uint64_t alignment) {
  unsigned class = filled_class(lists, class_of(extent >> range->index.shift));
  for (unsigned i = 0; class < CLASSES && i < COMPARED; i++) {
    uint32_t span = tightest_of(range->index.spans, lists->lists[class], extent, alignment);
    if (span) return span;
    class = filled_class(lists, class + 1);
  }
  return 0;
}

/* The free span to take extent bytes at a multiple of alignment from; 0 when none was found. */
static __attribute__((noinline)) uint32_t choose_loosely(umemRange const *range,
                                                         FreeLists const *lists, uint64_t extent,
                                                         uint64_t alignment) {
  umemSpan const *spans = range->index.spans;
  unsigned shift = range->index.shift;
  unsigned own = class_of(extent >> shift);
  uint32_t span = lists->lists[own];
  if (span && place(&spans[span], extent, alignment) != UMEM_RANGE_NONE) return span;
  uint64_t slack = alignment > granule_of(range) ? alignment - granule_of(range) : 0;
  unsigned class = filled_class(lists, class_above((extent + slack) >> shift));
  if (class < CLASSES) return lists->lists[class];
  /* What is left may fit by chance. */
  unsigned looks = 0;
  for (class = filled_class(lists, own); class < CLASSES; class = filled_class(lists, class + 1))
    for (span = lists->lists[class]; span; span = spans[span].list_after) {
      if (place(&spans[span], extent, alignment) != UMEM_RANGE_NONE) return span;
      if (++looks == LAST_RESORT) return 0;
    }
  return 0;
}

static uint32_t choose(umemRange const *range, FreeLists const *lists, uint64_t extent,
                       uint64_t alignment) {
  uint32_t span = extent >= range->tight_from ? choose_tightly(range, lists, extent, alignment) : 0;
  return span ? span : choose_loosely(range, lists, extent, alignment);
}

/* Makes a span that is in no list live; extent is that of size. */
static void make_live(umemRange *range, uint32_t span, uint64_t size, uint64_t extent) {
  range->index.spans[span].size = size;
  range->index.spans[span].live = true;
  range->totals.live_count += 1;
  range->totals.live_bytes += extent;
}

/* separate: from separate numbers alone. Otherwise these serve if no others do. */
static uint64_t alloc_from(umemRange *range, bool separate, uint64_t size, uint64_t alignment) {
  if (!size || size > UINT64_C(1) << 63 || !is_power_of_two(alignment)) return UMEM_RANGE_NONE;
  umemIndex *index = &range->index;
  uint64_t extent = round_up(size, granule_of(range));
  uint32_t span = 0;
  for (FreeLists const *lists = &range->lists[separate]; !span && lists < range->lists + 2; lists++)
    span = choose(range, lists, extent, alignment);
  if (!span) return UMEM_RANGE_NONE;
  uint64_t start = place(&index->spans[span], extent, alignment);
  uint32_t taken = carve(range, span, start, extent);
  if (!taken) return UMEM_RANGE_NONE;
  make_live(range, taken, size, extent);
  return start;
}

uint64_t umemRange_alloc(umemRange *range, uint64_t size, uint64_t alignment) {
  return alloc_from(range, false, size, alignment);
}

uint64_t umemRange_alloc_separate(umemRange *range, uint64_t size, uint64_t alignment) {
  return alloc_from(range, true, size, alignment);
}

uint64_t umemRange_free(umemRange *range, uint64_t start) {
  uint32_t span = umemIndex_exact(&range->index, start);
  umemSpan *self = &range->index.spans[span];
  if (!span || !self->live) return 0;
  uint64_t size = self->size;
  self->size = extent_of(range, self);
  range->totals.live_count -= 1;
  range->totals.live_bytes -= self->size;
  release(range, span);
  return size;
}

/* ---- from hand to hand ---- */

/* Makes a span that is in no list a held one. */
static void make_held(umemRange *range, uint32_t span, uint64_t size) {
  make_live(range, span, size, size);
  range->index.spans[span].held = true;
}

uint64_t umemRange_hold(umemRange *range, uint64_t start) {
  uint32_t span = umemIndex_exact(&range->index, start);
  umemSpan *self = &range->index.spans[span];
  if (!span) return 0;
  if (!self->live) {
    unlink_free(range, span);
    make_live(range, span, self->size, self->size);
  }
  self->held = true;
  return self->size;
}

bool umemRange_take(umemRange *range, uint64_t start, uint64_t size) {
  uint32_t taken = carve_free(range, start, size);
  if (taken) make_held(range, taken, size);
  return taken;
}

bool umemRange_enter(umemRange *range, uint64_t start, uint64_t size, bool separate) {
  uint32_t entered = insert_new(range, start, size);
  if (!entered) return false;
  range->index.spans[entered].separate = separate;
  make_held(range, entered, size);
  return true;
}

uint64_t umemRange_drop(umemRange *range, uint64_t start) {
  uint32_t span = umemIndex_exact(&range->index, start);
  umemSpan const self = range->index.spans[span];
  if (!span || !self.live) return 0;
  umemIndex_erase(&range->index, span);
  range->totals.live_count -= 1;
  range->totals.live_bytes -= extent_of(range, &self);
  return self.size;
}

uint64_t umemRange_hand(umemRange *range, uint64_t start, umemRange *to) {
  if (range == to) return umemRange_free(range, start);
  uint32_t span = umemIndex_exact(&range->index, start);
  umemSpan const self = range->index.spans[span];
  if (!span || !self.live || !umemIndex_reserve(&to->index, 1)) return 0;
  uint64_t extent = extent_of(range, &self);
  umemIndex_erase(&range->index, span);
  range->totals.live_count -= 1;
  range->totals.live_bytes -= extent;
  uint32_t handed = umemIndex_insert(&to->index, umemIndex_floor(&to->index, start), start);
  umemSpan *there = &to->index.spans[handed];
  there->size = extent;
  there->wall_below = self.wall_below;
  there->wall_above = self.wall_above;
  there->separate = self.separate;
  release(to, handed);
  return self.size;
}

/* ---- questions ---- */

static void describe(umemRange const *range, uint32_t span, umemRangeItem *item) {
  umemSpan const *self = &range->index.spans[span];
  *item = (umemRangeItem){self->start, self->size, extent_of(range, self), self->live, self->held};
}

bool umemRange_find(umemRange const *range, uint64_t at, umemRangeItem *item) {
  uint32_t span = umemIndex_floor(&range->index, at);
  umemSpan const *self = &range->index.spans[span];
  if (!span || at - self->start >= extent_of(range, self)) return false;
  describe(range, span, item);
  return true;
}

bool umemRange_next(umemRange const *range, uint64_t at, umemRangeItem *item) {
  uint32_t span = umemIndex_floor(&range->index, at);
  if (!span || range->index.spans[span].start < at) span = range->index.spans[span].after;
  if (!span) return false;
  describe(range, span, item);
  return true;
}

bool umemRange_next_free(umemRange const *range, uint64_t size, uint32_t *cursor,
                         umemRangeItem *item) {
  umemSpan const *spans = range->index.spans;
  unsigned const shift = range->index.shift, least = class_of(size >> shift);
  bool separate = spans[*cursor].separate; /* that of span 0 is false */
  unsigned class = *cursor ? class_of(spans[*cursor].size >> shift) + 1 : least;
  uint32_t span = *cursor ? spans[*cursor].list_after : 0;
  for (;; span = spans[span].list_after) {
    while (!span) {
      class = filled_class(&range->lists[separate], class);
      if (class == CLASSES && separate) return false;
      if (class < CLASSES)
        span = range->lists[separate].lists[class ++];
      else
        separate = true, class = least;
    }
    if (spans[span].size >= size) break;
  }
  *cursor = span;
  describe(range, span, item);
  return true;
}

static uint64_t largest_of(FreeLists const *lists, umemSpan const *spans) {
  if (!lists->rows) return 0;
  unsigned row = 63 - (unsigned)__builtin_clzll(lists->rows);
  unsigned column = 31 - (unsigned)__builtin_clz(lists->columns[row]);
  uint64_t largest = 0;
  for (uint32_t span = lists->lists[row * COLUMNS + column]; span; span = spans[span].list_after)
    if (spans[span].size > largest) largest = spans[span].size;
  return largest;
}

umemRangeTotals umemRange_totals(umemRange const *range) {
  umemRangeTotals totals = range->totals;
  uint64_t separate = largest_of(&range->lists[true], range->index.spans);
  totals.largest_free = largest_of(&range->lists[false], range->index.spans);
  if (separate > totals.largest_free) totals.largest_free = separate;
  return totals;
}
