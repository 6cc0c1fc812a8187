/* pool_transfer.c - begins and ends free lists, and moves free memory from one to another. See
 * pool.h.
 *
 * First the memory is taken out of its list, so that no other thread can have it. Then the lock is
 * opened, and the queue of the new list made to wait for the queue of the old one: what is queued
 * there at that moment includes the last use of the memory. Then the memory enters the new list; or
 * the old one again, when the queue could not be made to wait. Ranges in transit are live, and
 * their starts recorded, because a wrong free could take them for blocks.
 *
 * A list whose view has ended stays, because live blocks may be ranges of it, and serves the next
 * view. */
#include "pool/pool_transfer.h"
#include "base/thread.h"
#include "core/context.h"
#include "core/order.h"
#include "pool/pool_cache.h"
#include "pool/pool_chunk.h"
#include "pool/pool_core.h"
#include "pool/pool_span.h"

#include <stdlib.h>

/* ---- ranges ---- */

enum {
  piece_least = 1 << 20 >> umemPoolUnitShift, /* units that are not halved */
  most_tries = 8 /* tries when a capture of another queue has begun meanwhile */
};

/* The other list with the largest free range, if that has as many units; else NULL. */
static umemPoolFreeList *richest(umemPoolFreeList *list, uint64_t units) {
  umemPoolFreeList *best = NULL;
  for (umemPoolFreeList *other = list->core->lists; other; other = other->next) {
    if (other == list || other->ending || umemPoolRange_largest(other) < units) continue;
    if (best && umemPoolRange_largest(other) <= umemPoolRange_largest(best)) continue;
    if (!umemPoolQueue_is_blocked(other)) best = other;
  }
  return best;
}

/* Makes free what other lists keep for later requests: large blocks only if all of them together
 * are a sixteenth of the pool. */
static void drain_others(umemPoolFreeList *list) {
  umemPoolCore *core = list->core;
  uint64_t quick = 0;
  for (umemPoolFreeList *other = core->lists; other; other = other->next)
    quick += other->quick_units << umemPoolUnitShift;
  for (umemPoolFreeList *other = core->lists; other; other = other->next) {
    if (other == list || other->ending) continue;
    umemPoolCache_drain(other);
    if (quick >= core->reserved / 16) umemPoolLarge_coalesce(other);
  }
}

/* Takes half of the largest free range, so that the next request seldom has to wait, or just the
 * units. */
static uint64_t take_piece(umemPoolFreeList *from, uint64_t units, uint64_t step) {
  uint64_t const page = umemPoolPage / umemPoolUnit;
  uint64_t largest = umemPoolRange_largest(from);
  uint64_t wanted = largest > piece_least ? largest / 2 : largest;
  if (wanted < units) wanted = units;
  uint64_t start = umemRange_alloc(from->range, wanted, step > page ? step : page);
  return start == UMEM_RANGE_NONE ? umemRange_alloc(from->range, units, step) : start;
}

/* *captured: the queue of the list with the largest range is being captured by now, so that another
 * list may do. */
static bool transfer_range(umemPoolFreeList *list, uint64_t units, uint64_t step, bool *captured) {
  *captured = false;
  umemPoolFreeList *from = richest(list, units);
  if (!from) {
    drain_others(list);
    from = richest(list, units);
  }
  umemPoolTransit *transit = from ? umemPoolTransit_new(from, 1) : NULL;
  if (!transit) return false;
  transit->starts[0] = take_piece(from, units, step);
  transit->count = transit->starts[0] != UMEM_RANGE_NONE;
  bool follows = transit->count && umemPoolQueue_follow(list, from);
  *captured = transit->count && !follows && umemPoolQueue_is_blocked(from);
  return umemPoolTransit_end(transit, follows ? list : from) && follows;
}

bool umemPoolTransfer_range(umemPoolFreeList *list, uint64_t units, uint64_t step) {
  umemAttempt forgotten;
  if (umemPoolQueue_is_blocked(list)) return false;
  umemAttempt_begin(&forgotten);
  bool moved = false, again = true;
  for (int tries = 0; tries < most_tries && again && !moved; tries++)
    moved = transfer_range(list, units, step, &again);
  umemAttempt_end(&forgotten);
  return moved;
}

/* ---- spans ---- */

/* Spans in transit. */
typedef struct Detached {
  umemPoolSpan *spans;
  uint64_t queues; /* to wait for, as bits of umemPoolQueue_bit */
} Detached;

static void detach(umemPoolCore *core, Detached *detached, umemPoolSpan *span) {
  detached->queues |= span->list ? umemPoolQueue_bit(span->list) : span->queues;
  umemPoolSpan_detach(core, span);
  span->after = detached->spans;
  detached->spans = span;
}

/* Detaches the mixed spans of the class that wait for no blocked queue. With whole, only those all
 * of whose blocks are free. */
static void detach_mixed(umemPoolCore *core, unsigned class, bool whole, uint64_t blocked,
                         Detached *detached) {
  uint32_t least = whole ? core->shapes[class].count : 1;
  for (umemPoolSpan *span = core->classes[class].mixed, *after; span; span = after) {
    after = span->after;
    if (!(span->queues & blocked) && span->free_count >= least) detach(core, detached, span);
  }
}

/* Puts them into the list; as mixed ones, if its queue does not follow theirs. */
static void attach_all(umemPoolFreeList *list, Detached const *detached, bool follows) {
  for (umemPoolSpan *span = detached->spans, *after; span; span = after) {
    after = span->after;
    if (!follows) span->queues |= detached->queues;
    umemPoolSpan_attach(list, span);
  }
}

static bool take_detached(umemPoolFreeList *list, Detached const *detached) {
  bool follows = umemPoolQueue_follow_all(list, detached->queues);
  attach_all(list, detached, follows);
  return follows;
}

/* Moves every second span, rounded up, of the first other list that has any. */
static bool spans_of_one(umemPoolFreeList *list, unsigned class, uint64_t blocked) {
  umemPoolFreeList *from = list->core->lists;
  while (from && (from == list || from->ending || !from->classes[class].spans ||
                  umemPoolQueue_bit(from) & blocked))
    from = from->next;
  if (!from) return false;
  Detached detached = {NULL, 0};
  bool takes = true;
  for (umemPoolSpan *span = from->classes[class].spans, *after; span; span = after) {
    after = span->after;
    if (takes) detach(list->core, &detached, span);
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

static bool transfer_spans(umemPoolFreeList *list, unsigned class, uint64_t blocked) {
  Detached detached = {NULL, 0};
  detach_mixed(list->core, class, false, blocked, &detached);
  return (detached.spans && take_detached(list, &detached)) || spans_of_one(list, class, blocked);
}

/* Tries again while captures of more queues begin. */
bool umemPoolTransfer_spans(umemPoolFreeList *list, unsigned class) {
  bool moved = false, again = true;
  umemAttempt forgotten;
  umemAttempt_begin(&forgotten);
  for (int tries = 0; tries < most_tries && again && !moved; tries++) {
    if (!others_have(list, class) || umemPoolQueue_is_blocked(list)) break;
    uint64_t blocked = umemPoolQueue_blocked(list->core);
    moved = transfer_spans(list, class, blocked);
    again = !moved && umemPoolQueue_blocked(list->core) & ~blocked;
  }
  umemAttempt_end(&forgotten);
  return moved;
}

/* ---- all free memory ---- */

void umemPoolTransfer_at_end(umemPoolFreeList *list, umemPoolFreeList *from) {
  for (unsigned i = 0; i < umemPoolClasses; i++)
    for (umemPoolSpan *span; (span = from->classes[i].spans);) {
      umemPoolSpan_detach(list->core, span);
      umemPoolSpan_attach(list, span);
    }
  umemPoolTransit *transit = umemPoolTransit_of_all(from);
  if (transit) umemPoolTransit_end(transit, list);
}

bool umemPoolTransfer_from(umemPoolFreeList *list, umemPoolFreeList *from) {
  umemPoolCache_drain(from);
  umemPoolLarge_coalesce(from);
  umemPoolTransit *transit =
      umemRange_totals(from->range).free_count ? umemPoolTransit_of_all(from) : NULL;
  if (!transit) return true;
  umemAttempt attempt;
  umemAttempt_begin(&attempt);
  bool follows = umemPoolQueue_follow(list, from);
  umemAttempt_end(&attempt);
  bool captured = !follows && umemPoolQueue_is_blocked(from);
  if (!captured) umemAttempt_record(&attempt);
  umemPoolTransit_end(transit, follows ? list : from);
  return !captured;
}

/* Moves mixed spans that are all free, and wait for no blocked queue. True when it failed because a
 * capture has begun meanwhile. */
static bool transfer_mixed(umemPoolFreeList *list) {
  Detached detached = {NULL, 0};
  umemPoolCore *core = list->core;
  uint64_t blocked = umemPoolQueue_blocked(core);
  for (unsigned i = 0; i < umemPoolClasses; i++) detach_mixed(core, i, true, blocked, &detached);
  if (!detached.spans) return false;
  umemAttempt attempt;
  umemAttempt_begin(&attempt);
  bool taken = take_detached(list, &detached);
  umemAttempt_end(&attempt);
  bool captured = !taken && umemPoolQueue_blocked(core) & ~blocked;
  if (!captured) umemAttempt_record(&attempt);
  return captured;
}

void umemPoolTransfer_all(umemPoolFreeList *list) {
  umemPoolCore *core = list->core;
  for (umemPoolFreeList *from = core->lists; from; from = from->next)
    if (from != list && !from->ending && !umemPoolQueue_is_blocked(from))
      umemPoolTransfer_from(list, from); /* one that is being captured by now keeps its memory */
  for (int tries = 0; tries < most_tries && transfer_mixed(list); tries++) {
  }
}

/* ---- the beginning ---- */

/* A number that no other list has, as long as there is one. */
static unsigned new_number(umemPoolCore const *core, uint64_t serial) {
  uint64_t taken = 0;
  for (umemPoolFreeList *list = core->lists; list; list = list->next)
    if (list->in_use || list->unusable) taken |= umemPoolQueue_bit(list);
  return ~taken ? (unsigned)__builtin_ctzll(~taken) : (unsigned)(serial % 64);
}

/* Whether the list can serve another view. One that has ended holds nothing but ranges of live
 * blocks; when no RAM was left, it may hold more. */
static bool is_vacant(umemPoolFreeList const *list) {
  return !list->in_use && !list->unusable && !umemPoolQueue_has_users(list) && !list->quick_units &&
         !umemRange_totals(list->range).free_count;
}

static umemPoolFreeList *add_list(umemPoolCore *core) {
  umemPoolFreeList *list = calloc(1, sizeof *list);
  if (list) list->range = umemRange_create(1);
  if (list && list->range) umemRange_fit_tightly(list->range, 0);
  if (!list || !list->range) {
    free(list);
    return NULL;
  }
  list->core = core;
  list->next = core->lists;
  core->lists = list;
  return list;
}

umemPoolFreeList *umemPoolFreeList_new(umemPoolCore *core, umemVirtual *queue) {
  static uint64_t last_serial;
  uint64_t before = umem_thread.failures;
  umemVirtual *innermost = umem_innermost(queue);
  if (umem_thread.failures != before) return NULL;
  umemPoolFreeList *list = core->lists;
  while (list && !is_vacant(list)) list = list->next;
  if (!list) list = add_list(core);
  if (!list) return NULL;
  list->serial = __atomic_add_fetch(&last_serial, 1, __ATOMIC_RELAXED);
  list->number = new_number(core, list->serial);
  list->queue = queue;
  list->innermost = innermost;
  list->in_use = true;
  list->ending = false;
  return list;
}

/* ---- the end ---- */

/* Whether another list that blocks may belong to has this bit. */
static bool shares_bit(umemPoolFreeList const *list) {
  for (umemPoolFreeList *other = list->core->lists; other; other = other->next)
    if (other != list && (other->in_use || other->unusable) && other->number == list->number)
      return true;
  return false;
}

/* In mixed spans: what was freed in the order of list is now in the order of the pool's own. */
static void replace_bit(umemPoolFreeList *list) {
  uint64_t bit = umemPoolQueue_bit(list), kept = shares_bit(list) ? bit : 0;
  for (unsigned i = 0; i < umemPoolClasses; i++)
    for (umemPoolSpan *span = list->core->classes[i].mixed; span; span = span->after)
      if (span->queues & bit)
        span->queues = (span->queues & ~bit) | kept | umemPoolQueue_bit(list->core->own);
}

/* Orders the pool's own list after this one. If the upstream cannot wait, that is needless once the
 * work is complete. That is tried twice: work that has failed is complete as well, and reports its
 * failure once. */
static bool finish(umemPoolFreeList *list) {
  umemPoolFreeList *own = list->core->own;
  if (umemPoolQueue_is_blocked(list)) {
    umemVirtual_fail(NULL, umemNotSupportedError,
                     "the stream is being captured into a graph: what is free in its order is "
                     "out of use until the pool ends");
    return false;
  }
  if (umemPoolQueue_is_ordered(own) && !umemPoolQueue_is_blocked(own)) {
    umemAttempt attempt;
    umemAttempt_begin(&attempt);
    bool follows = umemPoolQueue_follow(own, list);
    umemAttempt_end(&attempt);
    if (follows) return true;
  }
  umemLock_release(&list->core->lock);
  bool finished = umem_synchronize_apart(list->queue) == umemOK;
  if (!finished) finished = umem_synchronize_apart(list->queue) == umemOK;
  umemLock_acquire(&list->core->lock);
  return finished;
}

bool umemPoolFreeList_end(umemPoolFreeList *list) {
  umemPoolCore *core = list->core;
  list->ending = true;
  umemPoolCache_end_all(list);
  umemPoolCache_drain(list);
  umemPoolLarge_coalesce(list);
  bool finished = finish(list);
  umemPoolQueue_await_users(list);
  list->in_use = false;
  list->unusable = !finished;
  list->queue = core->own->queue;
  list->innermost = core->own->innermost;
  if (!finished) return false;
  list->ending = false;
  replace_bit(list);
  umemPoolTransfer_at_end(core->own, list);
  return true;
}

/* The lists themselves go with the core: views that have outlived the pool hold them. */
void umemPoolFreeList_end_all(umemPoolCore *core) {
  for (umemPoolFreeList *list = core->lists; list; list = list->next) umemPoolCache_end_all(list);
  for (umemPoolFreeList *list = core->lists; list; list = list->next) {
    umemPoolCache_free_depot(list);
    umemRange_destroy(list->range);
    list->range = NULL;
  }
  umemPoolCache_free_empty(core);
  umemPoolTransit_free_all(core);
}
