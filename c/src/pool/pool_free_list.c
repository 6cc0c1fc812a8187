/* pool_free_list.c - begins and ends free lists. See pool.h.
 *
 * A list whose view has ended stays, because live blocks may be ranges of it, and serves the next view. */
#include "pool/pool_free_list.h"
#include "base/thread.h"
#include "core/context.h"
#include "core/order.h"
#include "pool/pool_cache.h"
#include "pool/pool_large.h"
#include "pool/pool_queue.h"
#include "pool/pool_range.h"
#include "pool/pool_span.h"
#include "pool/pool_transfer.h"

#include <stdlib.h>

/* ---- the beginning ---- */

/* A number that no other list has, as long as there is one. */
static unsigned new_number(umemPoolCore const *core, uint64_t serial) {
  uint64_t taken = 0;
  for (umemPoolFreeList *list = core->lists; list; list = list->next)
    if (list->in_use || list->unusable) taken |= umemPoolQueue_bit(list);
  return ~taken ? (unsigned)__builtin_ctzll(~taken) : (unsigned)(serial % 64);
}

/* Whether the list can serve another view. One that has ended holds nothing but ranges of live blocks; when
 * no RAM was left, it may hold more. */
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

/* Orders the pool's own list after this one. If the upstream cannot wait, nobody needs to once the work is
 * complete. That is tried twice: work that has failed is complete as well, and reports its failure once. */
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
