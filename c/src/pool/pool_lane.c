/* pool_lane.c - what lies free in the order of a queue: lanes, and how queues wait for each other.
 * See umem_pool.h.
 *
 * Other lanes use a queue without asking whose it is. They are its guests, and it ends when there are
 * none. A lane whose view has ended stays, as live blocks may be ranges of its own, and serves the next
 * view. */
#include "pool/pool.h"

#include <stdlib.h>

/* ---- waiting ---- */

bool umemPoolLane_is_blocked(umemPoolLane const *lane) {
  return lane->lost || umem_is_captured(lane->place);
}

uint64_t umemPool_blocked(umemPoolCore const *core) {
  uint64_t bits = 0;
  for (umemPoolLane *lane = core->lanes; lane; lane = lane->next)
    if (umemPoolLane_is_blocked(lane)) bits |= umemPoolLane_bit(lane);
  return bits;
}

bool umemPoolLane_must_follow_upstream(umemPoolLane const *lane) {
  umemPoolLane const *own = lane->core->own;
  return umemPoolLane_is_ordered(own) && lane->place != own->place;
}

/* Guests of before a fork have stayed with the parent. */
static void invite(umemPoolLane *lane) {
  unsigned lineage = umem_fork_count();
  if (lane->lineage != lineage) lane->guests = 0;
  lane->lineage = lineage;
  lane->guests++;
}

static void dismiss(umemPoolLane *lane) {
  if (--lane->guests) return;
  umemPool_renew_waits(lane->core);
  pthread_cond_broadcast(&lane->core->no_guests);
}

static bool has_guests(umemPoolLane const *lane) {
  return lane->guests && lane->lineage == umem_fork_count();
}

/* Where lane is not ordered its blocks are used at once. */
static bool order_after(umemPoolLane *lane, umemPoolLane *other) {
  uint64_t before = umem_thread.failures;
  if (umemPoolLane_is_ordered(lane))
    umem_wait_apart(lane->queue, other->queue);
  else
    umem_synchronize_apart(other->queue);
  return umem_thread.failures == before;
}

bool umemPoolLane_follow(umemPoolLane *lane, umemPoolLane *other) {
  umemPoolCore *core = lane->core;
  if (lane->place == other->place || !umemPoolLane_leaves_work(other)) return true;
  invite(other);
  umemLock_release(&core->lock);
  bool follows = order_after(lane, other);
  umemLock_acquire(&core->lock);
  dismiss(other);
  return follows;
}

/* Lanes that become others' meanwhile have a newer serial, and the guest keeps the rest as they are. */
bool umemPoolLane_follow_all(umemPoolLane *lane, uint64_t bits) {
  umemPoolCore *core = lane->core;
  uint64_t newest = 0;
  bool follows = true;
  for (umemPoolLane *other = core->lanes; other; other = other->next) {
    if (other->serial > newest) newest = other->serial;
    if (other->alive && umemPoolLane_bit(other) & bits) invite(other);
  }
  for (umemPoolLane *other = core->lanes; other; other = other->next)
    if (other->alive && umemPoolLane_bit(other) & bits && other->serial <= newest) {
      follows = follows && umemPoolLane_follow(lane, other);
      dismiss(other);
    }
  return follows;
}

/* ---- the beginning ---- */

/* A number that no other lane has, as long as there are such. */
static unsigned new_number(umemPoolCore const *core, uint64_t serial) {
  uint64_t taken = 0;
  for (umemPoolLane *lane = core->lanes; lane; lane = lane->next)
    if (lane->alive || lane->lost) taken |= umemPoolLane_bit(lane);
  return ~taken ? (unsigned)__builtin_ctzll(~taken) : (unsigned)(serial % 64);
}

/* Of a lane that has ended nothing is left but ranges of live blocks; without memory more may be. */
static bool is_vacant(umemPoolLane const *lane) {
  return !lane->alive && !lane->lost && !has_guests(lane) && !lane->waiting_units &&
         !umemRange_totals(lane->range).free_count;
}

static umemPoolLane *add_lane(umemPoolCore *core) {
  umemPoolLane *lane = calloc(1, sizeof *lane);
  if (lane) lane->range = umemRange_create(1);
  if (!lane || !lane->range) {
    free(lane);
    return NULL;
  }
  lane->core = core;
  lane->next = core->lanes;
  core->lanes = lane;
  return lane;
}

umemPoolLane *umemPoolLane_new(umemPoolCore *core, umemVirtual *queue) {
  static uint64_t last_serial;
  uint64_t before = umem_thread.failures;
  umemVirtual *place = umem_innermost(queue);
  if (umem_thread.failures != before) return NULL;
  umemPoolLane *lane = core->lanes;
  while (lane && !is_vacant(lane)) lane = lane->next;
  if (!lane) lane = add_lane(core);
  if (!lane) return NULL;
  lane->serial = __atomic_add_fetch(&last_serial, 1, __ATOMIC_RELAXED);
  lane->number = new_number(core, lane->serial);
  lane->queue = queue;
  lane->place = place;
  lane->alive = true;
  lane->ending = false;
  return lane;
}

/* ---- the end ---- */

/* Whether some other lane that blocks may belong to has this bit. */
static bool is_shared(umemPoolLane const *lane) {
  for (umemPoolLane *other = lane->core->lanes; other; other = other->next)
    if (other != lane && (other->alive || other->lost) && other->number == lane->number)
      return true;
  return false;
}

/* What was freed in the order of lane, among others, is in that of the pool's own now. */
static void forget_orders(umemPoolLane *lane) {
  uint64_t bit = umemPoolLane_bit(lane), kept = is_shared(lane) ? bit : 0;
  for (unsigned i = 0; i < umemPoolClasses; i++)
    for (umemPoolSpan *span = lane->core->classes[i].mixed; span; span = span->after)
      if (span->orders & bit)
        span->orders = (span->orders & ~bit) | kept | umemPoolLane_bit(lane->core->own);
}

/* When the upstream cannot wait, nobody needs to if the work is complete. Tried twice: work that has
 * failed is complete as well, and says so once. */
static bool finish(umemPoolLane *lane) {
  umemPoolLane *own = lane->core->own;
  if (umemPoolLane_is_blocked(lane)) {
    umemVirtual_fail(NULL, umemNotSupportedError,
                     "the stream is being captured into a graph: what is free in its order is "
                     "out of use until the pool ends");
    return false;
  }
  if (umemPoolLane_is_ordered(own) && !umemPoolLane_is_blocked(own)) {
    umemAttempt attempt;
    umemAttempt_begin(&attempt);
    bool follows = umemPoolLane_follow(own, lane);
    umemAttempt_end(&attempt);
    if (follows) return true;
  }
  umemLock_release(&lane->core->lock);
  bool finished = umem_synchronize_apart(lane->queue) == umemOK;
  if (!finished) finished = umem_synchronize_apart(lane->queue) == umemOK;
  umemLock_acquire(&lane->core->lock);
  return finished;
}

bool umemPoolLane_end(umemPoolLane *lane) {
  umemPoolCore *core = lane->core;
  lane->ending = true;
  umemPool_end_caches(lane);
  umemPool_drain(lane);
  umemPool_join_waiting(lane);
  bool finished = finish(lane);
  umemPool_renew_waits(core);
  while (has_guests(lane)) umemLock_wait(&core->lock, &core->no_guests);
  lane->alive = false;
  lane->lost = !finished;
  lane->queue = core->own->queue;
  lane->place = core->own->place;
  if (!finished) return false;
  lane->ending = false;
  forget_orders(lane);
  umemPool_move(core->own, lane);
  return true;
}

static void free_batches(umemPoolBatch *batch) {
  while (batch) {
    umemPoolBatch *next = batch->next;
    free(batch);
    batch = next;
  }
}

/* The structs themselves go with the core: views that have outlived the pool hold them. */
void umemPool_end_lanes(umemPoolCore *core) {
  for (umemPoolLane *lane = core->lanes; lane; lane = lane->next) umemPool_end_caches(lane);
  for (umemPoolLane *lane = core->lanes; lane; lane = lane->next) {
    for (unsigned i = 0; i < umemPoolClasses; i++) {
      free_batches(lane->shelves[i].depot);
      lane->shelves[i].depot = NULL;
    }
    umemRange_destroy(lane->range);
    lane->range = NULL;
  }
  free_batches(core->empty_batches);
  core->empty_batches = NULL;
  while (core->held) {
    umemPoolHeld *held = core->held;
    core->held = held->next;
    free(held);
  }
}
