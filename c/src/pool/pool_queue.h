/* pool_queue.h - the order of free lists: which queues wait for which. See pool.h. All under the lock. */
#ifndef UMEM_POOL_QUEUE_H
#define UMEM_POOL_QUEUE_H

#include "pool/pool_core.h"
#include "core/context.h"

/* Whether the queue of list and other queues cannot wait for each other: the queue is being captured, or it has ended
 * before another queue could wait for it. */
bool umemPoolQueue_is_blocked(umemPoolFreeList const *list);

/* The bits of all lists that are blocked. */
uint64_t umemPoolQueue_blocked(umemPoolCore const *core);

/* 64 bits distinguish the lists. If there are more lists, some share a bit, and a list that waits for one of these
 * waits for all. */
static inline uint64_t umemPoolQueue_bit(umemPoolFreeList const *list) {
  return UINT64_C(1) << list->number;
}

/* Makes the queue of list wait for the work that the queue of other has now. Releases the lock for some time; neither
 * list ends in this time. Returns false, and records a failure, if that fails. */
bool umemPoolQueue_follow(umemPoolFreeList *list, umemPoolFreeList *other);

/* The same for all lists of these bits. */
bool umemPoolQueue_follow_all(umemPoolFreeList *list, uint64_t bits);

/* Waits until the work that may use what is free in list is done. Releases the lock for this time; the list does not
 * end in it. Returns false, and records a failure, if that fails or the list is blocked. */
bool umemPoolQueue_finish(umemPoolFreeList *list);

/* Whether the queue of list must wait for an ordered upstream before it uses new memory. */
bool umemPoolQueue_must_follow_upstream(umemPoolFreeList const *list);

/* Whether it should and can wait for an upstream that is not ordered: the upstream may allocate memory that a GPU is
 * still using for an earlier block. */
bool umemPoolQueue_should_follow_upstream(umemPoolFreeList const *list);

/* Waits until no other list uses the queue of list. Releases the lock for this time. */
void umemPoolQueue_await_users(umemPoolFreeList *list);

/* Whether another list uses the queue of list. */
bool umemPoolQueue_has_users(umemPoolFreeList const *list);

static inline bool umemPoolQueue_is_ordered(umemPoolFreeList const *list) {
  return umem_can(list->queue, umemOrdered);
}

#endif
