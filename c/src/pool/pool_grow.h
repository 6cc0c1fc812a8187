/* pool_grow.h - gets more free memory for a free list. See pool.h. All under the lock. */
#ifndef UMEM_POOL_GROW_H
#define UMEM_POOL_GROW_H

#include "pool/pool_core.h"

/* How a list that has not enough may grow. */
typedef enum umemPoolGrowth {
  umemPoolGrowNot,
  umemPoolGrowByOthers, /* from what other lists have free */
  umemPoolGrowLeast,    /* or by a chunk of the size that is needed */
  umemPoolGrowWell /* or first by an ordinary chunk: one at a time, other threads wait for it */
} umemPoolGrowth;

/* A list that grows until a range of this size fits. */
typedef struct umemPoolGrower {
  umemPoolFreeList *list;
  size_t size, alignment;
  umemPoolGrowth growth;
  unsigned step;            /* 0 at the beginning */
  umemPoolFailure *failure; /* borrowed */
} umemPoolGrower;

/* Takes the next of the steps that may help: what is kept for later requests is made free, then another
 * list's memory is taken, then a chunk of the upstream. The lock is open in the meantime. False when there
 * is no step left, or the last one failed: why is in *failure, which umemPoolGrowNot and
 * umemPoolGrowByOthers leave as it was. */
bool umemPoolGrower_next(umemPoolGrower *grower);

#endif
