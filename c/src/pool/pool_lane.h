/* pool_lane.h - how what is free passes between the queues of a pool. See pool.h, which ends with
 * it. */
#ifndef UMEM_POOL_LANE_PRIVATE_H
#define UMEM_POOL_LANE_PRIVATE_H

#include "pool/pool.h"

/* ---- pool_lane.c; all under the lock ---- */

/* A lane in the order of queue; NULL without memory, or when queue is not constructed. */
umemPoolLane *umemPoolLane_new(umemPoolCore *core, umemVirtual *queue);

/* The view's queue ends: what is free in its order goes to the pool's own lane. False, with a failure
 * that says why, when that cannot be ordered after it: then it is used no more. An attempt must be
 * open. */
bool umemPoolLane_end(umemPoolLane *lane);

/* Frees all lanes, which are empty, or whose memory is gone. */
void umemPool_end_lanes(umemPoolCore *core);

/* Whether nothing can be ordered after the lane's queue, nor it after others, as it is being captured. */
bool umemPoolLane_is_blocked(umemPoolLane const *lane);

/* The bits of those that are blocked. */
uint64_t umemPool_blocked(umemPoolCore const *core);

/* 64 bits distinguish the lanes. Where there are more, some share one, and whoever waits for one of
 * these waits for all. */
static inline uint64_t umemPoolLane_bit(umemPoolLane const *lane) {
  return UINT64_C(1) << lane->number;
}

/* Tells the queue of lane to wait for what is queued on that of other. Both stay what they are meanwhile;
 * the lock is open. False, with a failure, when that fails. */
bool umemPoolLane_follow(umemPoolLane *lane, umemPoolLane *other);

/* The same for all lanes of these bits. */
bool umemPoolLane_follow_all(umemPoolLane *lane, uint64_t bits);

/* Whether the queue of lane is ordered, and another than the upstream, which is ordered too. */
bool umemPoolLane_must_follow_upstream(umemPoolLane const *lane);

static inline bool umemPoolLane_is_ordered(umemPoolLane const *lane) {
  return umem_can(lane->queue, umemOrdered);
}

/* Whether work with what was freed in the lane may go on after the free: its queue is ordered, or a GPU may
 * use the memory by itself, as when the last bytes of a short copy are on their way. */
static inline bool umemPoolLane_leaves_work(umemPoolLane const *lane) {
  return lane->queue->capabilities & (umemOrdered | umemDeviceShared);
}

/* Whether there are lanes but this one. */
static inline bool umemPoolLane_has_others(umemPoolLane const *lane) {
  return lane->core->lanes->next != NULL;
}

/* ---- pool_pass.c; all under the lock, which is open while queues begin to wait ---- */

/* Takes free memory from one other lane, the one that has the largest piece: half of that, but as many
 * units as are needed, at a multiple of step. False where there is none to be had. */
bool umemPool_borrow(umemPoolLane *lane, uint64_t units, uint64_t step);

/* Takes spans of the class with free blocks from others. False where there are none to be had. */
bool umemPool_borrow_spans(umemPoolLane *lane, unsigned class);

/* Takes all free ranges of the lane from, and its spans, without waiting. An attempt must be open. */
void umemPool_move(umemPoolLane *lane, umemPoolLane *from);

/* Takes all free ranges of the lane from, when it has been waited for. False, with nothing recorded, where it
 * is being captured by now. An attempt must be open. */
bool umemPool_gather_from(umemPoolLane *lane, umemPoolLane *from);

/* Takes those of all others that are not blocked, and mixed spans that are all free. An attempt must be
 * open. */
void umemPool_gather(umemPoolLane *lane);

/* Whether a range of the lane's is no block, but on its way. */
bool umemPool_is_held(umemPoolLane const *home, uint64_t start);

/* False when it is empty. */
static inline bool umemPoolSlot_pop(umemPoolSlot *slot, umemPoolEntry *entry) {
  if (!slot->count) return false;
  uint32_t count = slot->count - 1;
  __atomic_store_n(&slot->count, count, __ATOMIC_RELAXED);
  *entry = slot->entries[count];
  return true;
}

static inline void umemPoolSlot_push(umemPoolSlot *slot, umemPoolEntry entry) {
  uint32_t count = __atomic_load_n(&slot->count, __ATOMIC_RELAXED);
  slot->entries[count] = entry;
  __atomic_store_n(&slot->count, count + 1, __ATOMIC_RELAXED);
}

#endif
