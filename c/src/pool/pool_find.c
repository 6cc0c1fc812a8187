/* pool_find.c - finds a block where the calling thread keeps none. See umem_pool.h.
 *
 * First the pool takes what it has, or lets the upstream add to it. Where memory is lacking, but some is on
 * its way to another thread, it looks again when that has come. Then it gives back what it does not use and
 * looks for the last time: the upstream is asked again only if it was given something, or for less. */
#include "pool/pool.h"

/* ---- looks ---- */

/* Makes sure that the lane has a span with free blocks: of its own, mixed ones, others', a new one. */
static bool have_span(umemPoolLane *lane, unsigned class, umemPoolGrowth growth,
                      umemPoolLack *lack) {
  if (lane->shelves[class].spans) return true;
  if (umemPoolLane_has_others(lane) &&
      (umemPool_add_span(lane, class, umemPoolGrowNot, lack) ||
       (umemPool_borrow_spans(lane, class) && lane->shelves[class].spans)))
    return true;
  return umemPool_add_span(lane, class, growth, lack);
}

/* While the upstream is asked, a function that it calls may have freed blocks to the slot; but a new span
 * must not stay without a live block, as it goes back when its last one is freed. */
static bool find_small(umemPoolRequest *request, umemPoolGrowth growth) {
  umemPoolLane *lane = request->lane;
  umemPoolSlot *slot = request->slot;
  unsigned class = request->class;
  if (slot && (slot->count || umemPool_fetch(lane, class, slot)))
    return umemPoolSlot_pop(slot, &request->entry);
  if (!have_span(lane, class, growth, &request->lack)) return false;
  if (!slot || slot->count) return umemPool_take(lane, class, &request->entry, 1) == 1;
  uint32_t count = umemPool_take(lane, class, slot->entries, lane->core->shapes[class].batch);
  __atomic_store_n(&slot->count, count, __ATOMIC_RELAXED);
  return umemPoolSlot_pop(slot, &request->entry);
}

static bool find_range(umemPoolRequest *request, umemPoolGrowth growth) {
  request->entry.live = NULL;
  return umemPool_alloc_large(request->lane, request->size, request->alignment, growth,
                              &request->entry.adr, &request->lack);
}

/* Where there is no room for a span there may be some for a block alone. */
static bool look(umemPoolRequest *request, umemPoolGrowth growth, umemPoolGrowth alone) {
  if (request->class == umemPoolClasses) return find_range(request, growth);
  if (find_small(request, growth)) return true;
  return request->lack.why != umemPoolLanded && find_range(request, alone);
}

/* Looks until memory comes no more. The upstream, once it has refused, is asked no more meanwhile. */
static bool keep_looking(umemPoolRequest *request, umemPoolGrowth growth, umemPoolGrowth alone) {
  umemPoolLack *lack = &request->lack;
  for (;;) {
    if (look(request, growth, alone)) return true;
    if (lack->why == umemPoolLanded) {
      lack->why = umemPoolBooks;
    } else {
      bool waited = umemPoolLack_is_of_memory(lack) && umemPool_await_chunk(request->lane->core);
      if (!waited) return false;
      if (lack->why == umemPoolUpstream) growth = alone = umemPoolGrowByOthers;
    }
  }
}

/* ---- where memory is lacking ---- */

/* What is not used comes together, but what other threads keep: with the pool's own lane, from which
 * chunks can go; or, where the upstream cannot wait, with the one that needs it. */
static void collect(umemPoolLane *lane) {
  umemPoolLane *own = lane->core->own;
  umemPool_drain(lane);
  umemPool_join_waiting(lane);
  if (!umemPoolLane_has_others(lane)) return;
  umemPoolLane *to = umemPoolLane_is_blocked(own) ? lane : own;
  if (!umemPoolLane_is_blocked(to)) umemPool_gather(to);
}

/* Gives back what is not used. How the lane may grow then: by the upstream's, if it was given any. */
static umemPoolGrowth reclaim(umemPoolLane *lane, umemPoolLack const *lack) {
  umemPoolCore *core = lane->core;
  umemAttempt forgotten;
  umemAttempt_begin(&forgotten);
  collect(lane);
  uint64_t before = core->reserved;
  umemPool_release_chunks(core, 0);
  umemAttempt_end(&forgotten);
  if (core->reserved == before) return umemPoolGrowByOthers;
  return lack->why == umemPoolMaximum ? umemPoolGrowWell : umemPoolGrowLeast;
}

bool umemPool_find(umemPoolRequest *request) {
  request->lack.why = umemPoolBooks;
  if (keep_looking(request, umemPoolGrowWell, umemPoolGrowByOthers)) return true;
  if (!umemPoolLack_is_of_memory(&request->lack)) return false;
  return keep_looking(request, reclaim(request->lane, &request->lack), umemPoolGrowLeast);
}
