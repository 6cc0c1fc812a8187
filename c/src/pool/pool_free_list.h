/* pool_free_list.h - begins and ends free lists. See pool.h. All under the lock. */
#ifndef UMEM_POOL_FREE_LIST_H
#define UMEM_POOL_FREE_LIST_H

#include "pool/pool_core.h"

/* A free list in the order of queue; NULL without memory, or when queue is not constructed. */
umemPoolFreeList *umemPoolFreeList_new(umemPoolCore *core, umemVirtual *queue);

/* When a view ends: what is free in its list goes to the pool's own. False, with a failure that says why,
 * when nobody can be ordered after its queue: then this memory is not used again. The lock is open
 * meanwhile. An attempt must be open. */
bool umemPoolFreeList_end(umemPoolFreeList *list);

/* When the pool ends: frees what all lists hold. */
void umemPoolFreeList_end_all(umemPoolCore *core);

#endif
