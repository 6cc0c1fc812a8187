/* pool_transfer.c - free memory that passes from one free list to another.
 *
 * What moves to another list is first taken out of its list, so that no other thread can have it.
 * Then the lock is opened, and the queue of the new list made to wait for the mark of the old one,
 * or for its queue: what is queued there includes the last use of the memory. Then the memory
 * enters the new list; or the old one again, when the queue could not be made to wait. */
#include "pool/pool_grow.h"
#include "pool/pool_cache.h"

#include <stdlib.h>

/* ---- in transit ---- */

/* Held ranges of home that are on their way to another list. */
typedef struct Transit {
  umemPoolFreeList *home;
  size_t room, count;
  uint64_t starts[];
} Transit;

/* Holds all free ranges. */
static void hold_all(Transit *transit) {
  umemRange *range = transit->home->range;
  umemRangeItem item;
  for (uint64_t at = 0; umemRange_next(range, at, &item); at = item.start + item.extent)
    if (!item.live) {
      umemRange_hold(range, item.start);
      transit->starts[transit->count++] = item.start;
    }
}

/* Holds what list may take. Without memory a part stays free. */
static void hold_marked(Transit *transit, umemPoolFreeList const *list) {
  umemPoolMarked walk = {.list = list, .from = transit->home};
  uint64_t *starts = transit->starts, *extents = transit->starts + transit->room;
  umemRangeItem item;
  size_t count = 0;
  for (; umemPoolMarked_next(&walk, 1, &item) && count < transit->room; count++) {
    starts[count] = item.start;
    extents[count] = item.extent;
  }
  for (size_t i = 0; i < count; i++)
    if (umemRange_take(transit->home->range, starts[i], extents[i]))
      starts[transit->count++] = starts[i];
}

/* One with all free ranges of home that list may take; NULL, with a failure, without memory. */
static Transit *begin_transit(umemPoolFreeList const *list, umemPoolFreeList *home) {
  bool all = umemPoolMark_is_needless(list, home) || !home->mark.count;
  size_t room = umemRange_totals(home->range).free_count + home->mark.count;
  Transit *transit = malloc(sizeof *transit + (all ? 1 : 2) * room * sizeof *transit->starts);
  if (!transit)
    return UMEM_FAIL_NULL(NULL, umemMemoryError, "no memory for the records of the pool");
  *transit = (Transit){home, room, 0};
  if (all)
    hold_all(transit);
  else
    hold_marked(transit, list);
  return transit;
}

/* Frees a held range of home, and gives it to the list; or to home, if there is no RAM for the
 * record. Returns whether the list has got it. Other queues then wait for the next mark of the
 * list. */
static bool hand_range(umemPoolFreeList *home, uint64_t start, umemPoolFreeList *list) {
  uint64_t units = umemRange_hand(home->range, start, list->range);
  if (!units) umemRange_free(home->range, start);
  if (units && list != home && list->mark.is_needed) umemPoolMark_note(list, start, units);
  return units;
}

static void end_transit(Transit *transit, umemPoolFreeList *list) {
  for (size_t i = 0; i < transit->count; i++) hand_range(transit->home, transit->starts[i], list);
  free(transit);
}

/* ---- ranges ---- */

enum {
  piece_least = 1 << 20 >> umemPoolUnitShift, /* units that are not halved */
  most_tries = 8 /* tries when a capture of another queue has begun meanwhile */
};

/* Of a free range of other: what list may take, if it is larger than best, and has as many units;
 * else best. */
static umemRangeItem larger_of(umemPoolFreeList const *list, umemPoolFreeList const *other,
                               uint64_t units, umemRangeItem best) {
  umemRangeItem item = {.extent = umemPoolRange_largest(other)};
  if (item.extent <= best.extent || item.extent < units) return best;
  if (!umemPoolMark_is_needless(list, other) && other->mark.count)
    item = umemPoolMarked_largest(list, other, units);
  return item.extent > best.extent ? item : best;
}

/* The other list from which list may take the largest range, *largest, if that has as many units;
 * else NULL. */
static umemPoolFreeList *richest_list(umemPoolFreeList *list, uint64_t units,
                                      umemRangeItem *largest) {
  umemPoolFreeList *best = NULL;
  *largest = (umemRangeItem){.extent = 0};
  for (umemPoolFreeList *other = list->core->lists; other; other = other->next) {
    if (other == list || other->ending) continue;
    umemRangeItem item = larger_of(list, other, units, *largest);
    if (item.extent <= largest->extent || umemPoolQueue_is_closed(other)) continue;
    *largest = item;
    best = other;
  }
  return best;
}

/* Makes free what other lists keep for later requests: large blocks only if all of them together
 * are a sixteenth of the pool. What threads keep of lists that need marks is not marked. */
static void drain_others(umemPoolFreeList *list) {
  umemPoolCore *core = list->core;
  uint64_t quick = 0;
  for (umemPoolFreeList *other = core->lists; other; other = other->next)
    quick += other->quick_units << umemPoolUnitShift;
  for (umemPoolFreeList *other = core->lists; other; other = other->next) {
    if (other == list || other->ending) continue;
    if (umemPoolMark_is_needless(list, other)) umemPoolCache_drain(other);
    if (quick >= core->reserved / 16) umemPoolLarge_coalesce(other);
  }
}

/* Holds the first so many units of a range, at a multiple of step units. */
static uint64_t hold_part(umemRange *range, umemRangeItem const *item, uint64_t units,
                          uint64_t step) {
  uint64_t start = (item->start + step - 1) & ~(step - 1), skipped = start - item->start;
  bool fits = item->extent >= skipped && item->extent - skipped >= units;
  return fits && umemRange_take(range, start, units) ? start : UMEM_RANGE_NONE;
}

/* Takes half of the largest range, so that the next request seldom has to wait, or just the
 * units. */
static uint64_t take_piece(umemPoolFreeList const *list, umemPoolFreeList *from,
                           umemRangeItem const *largest, uint64_t units, uint64_t step) {
  uint64_t const page = umemPoolPage / umemPoolUnit;
  uint64_t wanted = largest->extent > piece_least ? largest->extent / 2 : largest->extent;
  if (wanted < units) wanted = units;
  if (!umemPoolMark_is_needless(list, from) && from->mark.count) {
    uint64_t part = hold_part(from->range, largest, wanted, step > page ? step : page);
    return part == UMEM_RANGE_NONE ? hold_part(from->range, largest, units, step) : part;
  }
  uint64_t start = umemRange_alloc(from->range, wanted, step > page ? step : page);
  return start == UMEM_RANGE_NONE ? umemRange_alloc(from->range, units, step) : start;
}

/* *captured: the queue of the list with the largest range is being captured by now, so that another
 * list may do. */
static bool transfer_range(umemPoolFreeList *list, uint64_t units, uint64_t step, bool *captured) {
  *captured = false;
  umemRangeItem largest;
  umemPoolFreeList *from = richest_list(list, units, &largest);
  if (!from) {
    drain_others(list);
    from = richest_list(list, units, &largest);
  }
  if (!from) umemPoolMark_want(list, umemPoolWantKept);
  uint64_t start = from ? take_piece(list, from, &largest, units, step) : UMEM_RANGE_NONE;
  if (start == UMEM_RANGE_NONE) return false;
  umemRange_hold(from->range, start);
  bool follows = umemPoolQueue_follow(list, from);
  *captured = !follows && umemPoolQueue_is_closed(from);
  return hand_range(from, start, follows ? list : from) && follows;
}

bool umemPoolTransfer_range(umemPoolFreeList *list, uint64_t units, uint64_t step) {
  if (umemPoolQueue_is_blocked(list)) return false;
  UMEM_FORGETTING();
  bool moved = false, again = true;
  for (int tries = 0; tries < most_tries && again && !moved; tries++)
    moved = transfer_range(list, units, step, &again);
  return moved;
}

/* ---- spans ---- */

/* Spans in transit. */
typedef struct Detached {
  umemPoolSpan *spans;
  uint64_t queues; /* to wait for, as bits of umemPoolQueue_bit */
} Detached;

static void detach_span(umemPoolCore *core, Detached *detached, umemPoolSpan *span) {
  detached->queues |= span->list ? umemPoolQueue_bit(span->list) : span->queues;
  umemPoolSpan_detach(core, span);
  span->after = detached->spans;
  detached->spans = span;
}

/* Whether the marks of all lists of these bits are behind this time, so that list may wait for
 * them. */
static bool are_marked(umemPoolFreeList const *list, uint64_t bits, uint64_t time) {
  for (umemPoolFreeList *other = list->core->lists; other; other = other->next)
    if (umemPoolQueue_bit(other) & bits && !umemPoolMark_is_needless(list, other) &&
        other->mark.is_old && !umemPoolMark_covers(other, time))
      return false;
  return true;
}

/* Detaches the mixed spans of the class that list may take: of no closed queue. With whole, only
 * those all of whose blocks are free. */
static void detach_mixed(umemPoolFreeList *list, unsigned class, bool whole, uint64_t closed,
                         Detached *detached) {
  umemPoolCore *core = list->core;
  uint32_t least = whole ? core->shapes[class].count : 1;
  for (umemPoolSpan *span = core->classes[class].mixed, *after; span; span = after) {
    after = span->after;
    if (!(span->queues & closed) && span->free_count >= least &&
        are_marked(list, span->queues, span->time))
      detach_span(core, detached, span);
  }
}

/* Puts them into the list; as mixed ones, if its queue does not follow theirs. */
static void attach_all(umemPoolFreeList *list, Detached const *detached, bool follows) {
  for (umemPoolSpan *span = detached->spans, *after; span; span = after) {
    after = span->after;
    if (follows)
      umemPoolSpan_note(list, span);
    else
      span->queues |= detached->queues;
    umemPoolSpan_attach(list, span);
  }
}

static bool take_detached(umemPoolFreeList *list, Detached const *detached) {
  bool follows = umemPoolQueue_follow_all(list, detached->queues);
  attach_all(list, detached, follows);
  return follows;
}

/* The first list that has spans of the class that list may take. */
static umemPoolFreeList *list_with_spans(umemPoolFreeList *list, unsigned class, uint64_t closed) {
  for (umemPoolFreeList *from = list->core->lists; from; from = from->next) {
    if (from == list || from->ending || umemPoolQueue_bit(from) & closed) continue;
    for (umemPoolSpan *span = from->classes[class].spans; span; span = span->after)
      if (are_marked(list, umemPoolQueue_bit(from), span->time)) return from;
  }
  return NULL;
}

/* Moves every second span, rounded up, of the first other list that has any. */
static bool spans_of_one(umemPoolFreeList *list, unsigned class, uint64_t closed) {
  umemPoolFreeList *from = list_with_spans(list, class, closed);
  if (!from) return false;
  Detached detached = {NULL, 0};
  bool takes = true;
  for (umemPoolSpan *span = from->classes[class].spans, *after; span; span = after) {
    after = span->after;
    if (!are_marked(list, umemPoolQueue_bit(from), span->time)) continue;
    if (takes) detach_span(list->core, &detached, span);
    takes = !takes;
  }
  bool follows = umemPoolQueue_follow(list, from);
  attach_all(follows ? list : from, &detached, true);
  return follows;
}

static bool others_have(umemPoolFreeList const *list, unsigned class) {
  if (list->core->classes[class].mixed) return true;
  for (umemPoolFreeList *other = list->core->lists; other; other = other->next)
    if (other != list && other->classes[class].spans) return true;
  return false;
}

static bool transfer_spans(umemPoolFreeList *list, unsigned class, uint64_t closed) {
  Detached detached = {NULL, 0};
  detach_mixed(list, class, false, closed, &detached);
  return (detached.spans && take_detached(list, &detached)) || spans_of_one(list, class, closed);
}

/* Tries again while captures of more queues begin. */
bool umemPoolTransfer_spans(umemPoolFreeList *list, unsigned class) {
  bool moved = false, again = true;
  UMEM_FORGETTING();
  for (int tries = 0; tries < most_tries && again && !moved; tries++) {
    if (!others_have(list, class) || umemPoolQueue_is_blocked(list)) break;
    uint64_t closed = umemPoolQueue_closed(list->core);
    moved = transfer_spans(list, class, closed);
    again = !moved && umemPoolQueue_closed(list->core) & ~closed;
  }
  if (!moved) umemPoolMark_want(list, umemPoolWantFree);
  return moved;
}

/* ---- all free memory ---- */

void umemPoolTransfer_at_end(umemPoolFreeList *list, umemPoolFreeList *from) {
  for (unsigned i = 0; i < umemPoolClasses; i++)
    for (umemPoolSpan *span; (span = from->classes[i].spans);) {
      umemPoolSpan_detach(list->core, span);
      umemPoolSpan_attach(list, span);
    }
  Transit *transit = begin_transit(from, from);
  if (transit) end_transit(transit, list);
}

bool umemPoolTransfer_from(umemPoolFreeList *list, umemPoolFreeList *from) {
  if (umemPoolMark_is_needless(list, from)) umemPoolCache_drain(from);
  umemPoolLarge_coalesce(from);
  Transit *transit = umemRange_totals(from->range).free_count ? begin_transit(list, from) : NULL;
  if (!transit) return true;
  umemAttempt attempt;
  umemAttempt_begin(&attempt);
  bool follows = umemPoolQueue_follow(list, from);
  umemAttempt_end(&attempt);
  bool captured = !follows && umemPoolQueue_is_closed(from);
  if (!captured) umemAttempt_record(&attempt);
  end_transit(transit, follows ? list : from);
  return !captured;
}

/* Moves mixed spans that are all free, and wait for no blocked queue. True when it failed because a
 * capture has begun meanwhile. */
static bool transfer_mixed(umemPoolFreeList *list) {
  Detached detached = {NULL, 0};
  umemPoolCore *core = list->core;
  uint64_t closed = umemPoolQueue_closed(core);
  for (unsigned i = 0; i < umemPoolClasses; i++) detach_mixed(list, i, true, closed, &detached);
  if (!detached.spans) return false;
  umemAttempt attempt;
  umemAttempt_begin(&attempt);
  bool taken = take_detached(list, &detached);
  umemAttempt_end(&attempt);
  bool captured = !taken && umemPoolQueue_closed(core) & ~closed;
  if (!captured) umemAttempt_record(&attempt);
  return captured;
}

void umemPoolTransfer_all(umemPoolFreeList *list) {
  umemPoolCore *core = list->core;
  for (umemPoolFreeList *from = core->lists; from; from = from->next)
    if (from != list && !from->ending && !umemPoolQueue_is_closed(from))
      umemPoolTransfer_from(list, from); /* one that is being captured by now keeps its memory */
  for (int tries = 0; tries < most_tries && transfer_mixed(list); tries++) {
  }
}

/* ---- for other lists ---- */

/* Makes free what the list keeps, as far as other lists have looked for it. */
static void drain_wanted(umemPoolFreeList *list, umemPoolWanted wanted) {
  if (wanted >= umemPoolWantThreads) umemPoolCache_drain_threads(list->core, list);
  if (wanted >= umemPoolWantKept) {
    umemPoolCache_drain(list);
    umemPoolLarge_coalesce(list);
  }
}

void umemPoolTransfer_mark_now(umemPoolFreeList *list) {
  UMEM_FORGETTING();
  drain_wanted(list, list->mark.wanted);
  umemPoolMark_set(list);
}

bool umemPoolTransfer_mark_all(umemPoolFreeList *list, bool blocked) {
  umemPoolMark_claim(list);
  drain_wanted(list, umemPoolWantThreads);
  return !blocked && umemPoolMark_set(list);
}
