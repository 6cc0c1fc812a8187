/* pool_free_list.h - begins and ends free lists. See pool.h. All under the lock. */
#ifndef UMEM_POOL_FREE_LIST_H
#define UMEM_POOL_FREE_LIST_H

#include "pool/pool_core.h"

/* A free list in the order of queue; NULL without memory, or when queue is not constructed. */
umemPoolFreeList *umemPoolFreeList_new(umemPoolCore *core, umemVirtual *queue);

/* When a view ends: moves the free memory of its list to the pool's own list. Returns false, and records a failure,
 * if no queue can wait for the queue of the view: then this memory is not used again. Releases the lock for some
 * time. An attempt must be open. */
bool umemPoolFreeList_end(umemPoolFreeList *list);

/* When the pool ends: frees the memory of all lists. */
void umemPoolFreeList_end_all(umemPoolCore *core);

#endif
