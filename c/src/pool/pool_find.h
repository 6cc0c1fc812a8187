/* pool_find.h - finds a block where the calling thread's cache has none. See pool.h. */
#ifndef UMEM_POOL_FIND_H
#define UMEM_POOL_FIND_H

#include "pool/pool_cache.h"
#include "pool/pool_core.h"

typedef struct umemPoolRequest {
  umemPoolFreeList *list;
  unsigned class;     /* umemPoolClasses: a large block, which has none */
  umemPoolSlot *slot; /* the calling thread's, empty; gets more blocks. NULL: the thread has none */
  size_t size;      /* at most PTRDIFF_MAX / 2; of a block of class: when it becomes a large one */
  size_t alignment; /* likewise */
  umemPoolEntry entry;     /* what was found; live is NULL when it is a large block */
  umemPoolFailure failure; /* why nothing was */
} umemPoolRequest;

/* Finds the block, under the lock, which may be open meanwhile. False, and why in request->failure, when it
 * cannot. */
bool umemPoolRequest_find(umemPoolRequest *request);

#endif
