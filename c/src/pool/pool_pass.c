/* pool_pass.c - how what is free passes from lane to lane. See umem_pool.h.
 *
 * What passes is taken out of the lists of its lane first, so that nobody else can have it. Then the lock
 * is opened and the queue of the new lane told to wait for that of the old one: at that moment all that
 * is queued there includes the last use of what passes. Then it enters the lists of the new lane; or,
 * where the queue could not be told, of the old one again. Ranges are live in the meantime, and their
 * starts kept, as a wrong free could take them for blocks. */
#include "pool/pool.h"

#include <stdlib.h>

/* ---- ranges ---- */

enum {
  piece_least = 1 << 20 >> umemPoolUnitShift, /* units that are not halved */
  most_tries = 8 /* how often others are tried where one is being captured by now */
};

bool umemPool_is_held(umemPoolLane const *home, uint64_t start) {
  for (umemPoolHeld *held = home->core->held; held; held = held->next)
    for (size_t i = 0; held->home == home && i < held->count; i++)
      if (held->starts[i] == start) return true;
  return false;
}

/* Room for the starts of count ranges of home; NULL without memory. */
static umemPoolHeld *new_held(umemPoolLane *home, size_t count) {
  umemPoolHeld *held = malloc(sizeof *held + count * sizeof *held->starts);
  if (!held) {
    umemVirtual_fail(NULL, umemMemoryError, "no memory for the books of the pool");
    return NULL;
  }
  *held = (umemPoolHeld){home->core->held, home, 0};
  home->core->held = held;
  return held;
}

/* Makes the ranges free: for lane, or where that has no memory for its books, for their home. Whether all
 * are lane's now. */
static bool release_held(umemPoolHeld *held, umemPoolLane *lane) {
  bool all = true;
  for (size_t i = 0; i < held->count; i++)
    if (!umemRange_hand(held->home->range, held->starts[i], lane->range)) {
      umemRange_free(held->home->range, held->starts[i]);
      all = false;
    }
  umemPoolHeld **link = &lane->core->held;
  while (*link != held) link = &(*link)->next;
  *link = held->next;
  free(held);
  return all;
}

static uint64_t largest_of(umemPoolLane *lane) {
  return umemRange_totals(lane->range).largest_free;
}

/* The other lane with the largest piece that has as many units; NULL where there is none. */
static umemPoolLane *richest(umemPoolLane *lane, uint64_t units) {
  umemPoolLane *best = NULL;
  for (umemPoolLane *other = lane->core->lanes; other; other = other->next) {
    if (other == lane || other->ending || largest_of(other) < units) continue;
    if (best && largest_of(other) <= largest_of(best)) continue;
    if (!umemPoolLane_is_blocked(other)) best = other;
  }
  return best;
}

/* What others keep for what comes next is made free, as the lane's own is before a chunk is taken: large
 * blocks only if they are a sixteenth of all together. */
static void drain_others(umemPoolLane *lane) {
  umemPoolCore *core = lane->core;
  uint64_t waiting = 0;
  for (umemPoolLane *other = core->lanes; other; other = other->next)
    waiting += other->waiting_units << umemPoolUnitShift;
  for (umemPoolLane *other = core->lanes; other; other = other->next) {
    if (other == lane || other->ending) continue;
    umemPool_drain(other);
    if (waiting >= core->reserved / 16) umemPool_join_waiting(other);
  }
}

/* A large part of its largest piece, that it needs not to come again soon, or just the units. */
static uint64_t take_piece(umemPoolLane *from, uint64_t units, uint64_t step) {
  uint64_t const page = umemPoolPage / umemPoolUnit;
  uint64_t largest = largest_of(from);
  uint64_t wanted = largest > piece_least ? largest / 2 : largest;
  if (wanted < units) wanted = units;
  uint64_t start = umemRange_alloc(from->range, wanted, step > page ? step : page);
  return start == UMEM_RANGE_NONE ? umemRange_alloc(from->range, units, step) : start;
}

/* From the richest one; *captured: that one is being captured by now, so that another one may do. */
static bool borrow(umemPoolLane *lane, uint64_t units, uint64_t step, bool *captured) {
  *captured = false;
  umemPoolLane *from = richest(lane, units);
  if (!from) {
    drain_others(lane);
    from = richest(lane, units);
  }
  umemPoolHeld *held = from ? new_held(from, 1) : NULL;
  if (!held) return false;
  held->starts[0] = take_piece(from, units, step);
  held->count = held->starts[0] != UMEM_RANGE_NONE;
  bool follows = held->count && umemPoolLane_follow(lane, from);
  *captured = held->count && !follows && umemPoolLane_is_blocked(from);
  return release_held(held, follows ? lane : from) && follows;
}

/* Where it fails there are other ways. */
bool umemPool_borrow(umemPoolLane *lane, uint64_t units, uint64_t step) {
  umemAttempt forgotten;
  if (umemPoolLane_is_blocked(lane)) return false;
  umemAttempt_begin(&forgotten);
  bool borrowed = false, again = true;
  for (int tries = 0; tries < most_tries && again && !borrowed; tries++)
    borrowed = borrow(lane, units, step, &again);
  umemAttempt_end(&forgotten);
  return borrowed;
}

/* All free ranges of a lane, as live ones; NULL without memory. */
static umemPoolHeld *hold_all(umemPoolLane *lane) {
  umemPoolHeld *held = new_held(lane, umemRange_totals(lane->range).free_count);
  umemRangeItem item;
  if (!held) return NULL;
  for (uint64_t at = 0; umemRange_next(lane->range, at, &item); at = item.start + item.extent)
    if (!item.live) {
      umemRange_claim(lane->range, item.start);
      held->starts[held->count++] = item.start;
    }
  return held;
}

/* ---- spans ---- */

/* Spans that are on their way, a list. */
typedef struct Lifted {
  umemPoolSpan *spans;
  uint64_t orders; /* of all */
} Lifted;

static void lift(umemPoolCore *core, Lifted *lifted, umemPoolSpan *span) {
  lifted->orders |= span->lane ? umemPoolLane_bit(span->lane) : span->orders;
  umemPool_lift_span(core, span);
  span->after = lifted->spans;
  lifted->spans = span;
}

/* Mixed spans of the class, with free blocks of nobody who is blocked. With whole, only those all of
 * whose blocks are free. */
static void lift_mixed(umemPoolCore *core, unsigned class, bool whole, uint64_t blocked,
                       Lifted *lifted) {
  uint32_t least = whole ? core->shapes[class].count : 1;
  for (umemPoolSpan *span = core->classes[class].mixed, *after; span; span = after) {
    after = span->after;
    if (!(span->orders & blocked) && span->free_count >= least) lift(core, lifted, span);
  }
}

/* To lane; or, where it could not follow, back to those they came from. */
static void lay_all(umemPoolLane *lane, Lifted const *lifted, bool follows) {
  for (umemPoolSpan *span = lifted->spans, *after; span; span = after) {
    after = span->after;
    if (!follows) span->orders |= lifted->orders;
    umemPool_lay_span(lane, span);
  }
}

static bool take_lifted(umemPoolLane *lane, Lifted const *lifted) {
  bool follows = umemPoolLane_follow_all(lane, lifted->orders);
  lay_all(lane, lifted, follows);
  return follows;
}

/* Every second one, rounded up, of the first other lane that has any. */
static bool borrow_from_one(umemPoolLane *lane, unsigned class, uint64_t blocked) {
  umemPoolLane *from = lane->core->lanes;
  while (from && (from == lane || from->ending || !from->shelves[class].spans ||
                  umemPoolLane_bit(from) & blocked))
    from = from->next;
  if (!from) return false;
  Lifted lifted = {NULL, 0};
  bool takes = true;
  for (umemPoolSpan *span = from->shelves[class].spans, *after; span; span = after) {
    after = span->after;
    if (takes) lift(lane->core, &lifted, span);
    takes = !takes;
  }
  bool follows = umemPoolLane_follow(lane, from);
  lay_all(follows ? lane : from, &lifted, true);
  return follows;
}

static bool others_have(umemPoolLane const *lane, unsigned class) {
  if (lane->core->classes[class].mixed) return true;
  for (umemPoolLane *other = lane->core->lanes; other; other = other->next)
    if (other != lane && other->shelves[class].spans) return true;
  return false;
}

static bool borrow_spans(umemPoolLane *lane, unsigned class, uint64_t blocked) {
  Lifted lifted = {NULL, 0};
  lift_mixed(lane->core, class, false, blocked, &lifted);
  return (lifted.spans && take_lifted(lane, &lifted)) || borrow_from_one(lane, class, blocked);
}

/* Again, while there are more that are being captured than before. */
bool umemPool_borrow_spans(umemPoolLane *lane, unsigned class) {
  bool borrowed = false, again = true;
  umemAttempt forgotten;
  umemAttempt_begin(&forgotten);
  for (int tries = 0; tries < most_tries && again && !borrowed; tries++) {
    if (!others_have(lane, class) || umemPoolLane_is_blocked(lane)) break;
    uint64_t blocked = umemPool_blocked(lane->core);
    borrowed = borrow_spans(lane, class, blocked);
    again = !borrowed && umemPool_blocked(lane->core) & ~blocked;
  }
  umemAttempt_end(&forgotten);
  return borrowed;
}

/* ---- all of it ---- */

void umemPool_move(umemPoolLane *lane, umemPoolLane *from) {
  for (unsigned i = 0; i < umemPoolClasses; i++)
    for (umemPoolSpan *span; (span = from->shelves[i].spans);) {
      umemPool_lift_span(lane->core, span);
      umemPool_lay_span(lane, span);
    }
  umemPoolHeld *held = hold_all(from);
  if (held) release_held(held, lane);
}

bool umemPool_gather_from(umemPoolLane *lane, umemPoolLane *from) {
  umemPool_drain(from);
  umemPool_join_waiting(from);
  umemPoolHeld *held = umemRange_totals(from->range).free_count ? hold_all(from) : NULL;
  if (!held) return true;
  umemAttempt attempt;
  umemAttempt_begin(&attempt);
  bool follows = umemPoolLane_follow(lane, from);
  umemAttempt_end(&attempt);
  bool captured = !follows && umemPoolLane_is_blocked(from);
  if (!captured) umemAttempt_record(&attempt);
  release_held(held, follows ? lane : from);
  return !captured;
}

/* Mixed spans that are all free, of nobody who is blocked. Whether somebody is by now who was not. */
static bool gather_mixed(umemPoolLane *lane) {
  Lifted lifted = {NULL, 0};
  umemPoolCore *core = lane->core;
  uint64_t blocked = umemPool_blocked(core);
  for (unsigned i = 0; i < umemPoolClasses; i++) lift_mixed(core, i, true, blocked, &lifted);
  if (!lifted.spans) return false;
  umemAttempt attempt;
  umemAttempt_begin(&attempt);
  bool taken = take_lifted(lane, &lifted);
  umemAttempt_end(&attempt);
  bool captured = !taken && umemPool_blocked(core) & ~blocked;
  if (!captured) umemAttempt_record(&attempt);
  return captured;
}

void umemPool_gather(umemPoolLane *lane) {
  umemPoolCore *core = lane->core;
  for (umemPoolLane *from = core->lanes; from; from = from->next)
    if (from != lane && !from->ending && !umemPoolLane_is_blocked(from))
      umemPool_gather_from(lane, from); /* one that is captured by now keeps what it has */
  for (int tries = 0; tries < most_tries && gather_mixed(lane); tries++) {
  }
}
