/* pool_transfer.h - begins and ends free lists, and moves free memory from one to another. See
 * pool.h. All under the lock. The functions that transfer, except umemPoolTransfer_at_end, release
 * it while they make a queue wait for another one. */
#ifndef UMEM_POOL_TRANSFER_H
#define UMEM_POOL_TRANSFER_H

#include "pool/pool_core.h"

/* ---- transfer ---- */

/* Moves a free range to the list, from the other list that has the largest one: half of that, but
 * at least as many units as are needed, at a multiple of step units. False when no other list has
 * one. */
bool umemPoolTransfer_range(umemPoolFreeList *list, uint64_t units, uint64_t step);

/* Moves spans of the class with free blocks to the list. False when there are none. */
bool umemPoolTransfer_spans(umemPoolFreeList *list, unsigned class);

/* Moves all free ranges of the list from, after its queue was waited for. Returns false, and
 * records no failure, if this queue is being captured by then. An attempt must be open. */
bool umemPoolTransfer_from(umemPoolFreeList *list, umemPoolFreeList *from);

/* Moves those of all other lists that are not blocked, and mixed spans that are all free. An
 * attempt must be open. */
void umemPoolTransfer_all(umemPoolFreeList *list);

/* Moves all free ranges and spans of the list from, whose queue was waited for already. An attempt
 * must be open. */
void umemPoolTransfer_at_end(umemPoolFreeList *list, umemPoolFreeList *from);

/* ---- free lists ---- */

/* A free list in the order of queue; NULL without memory, or when queue is not constructed. */
umemPoolFreeList *umemPoolFreeList_new(umemPoolCore *core, umemVirtual *queue);

/* When a view ends: moves the free memory of its list to the pool's own list. Returns false, and
 * records a failure, if no queue can wait for the queue of the view: then this memory is not used
 * again. Releases the lock for some time. An attempt must be open. */
bool umemPoolFreeList_end(umemPoolFreeList *list);

/* When the pool ends: frees the memory of all lists. */
void umemPoolFreeList_end_all(umemPoolCore *core);

#endif
