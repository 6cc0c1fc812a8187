/* pool_grow.h - gets more free memory for a free list. See pool.h. All under the lock. */
#ifndef UMEM_POOL_GROW_H
#define UMEM_POOL_GROW_H

#include "pool/pool_core.h"

/* How a list that has too little memory may grow. Each way includes the ones before. */
typedef enum umemPoolGrowth {
  umemPoolGrowNot,
  umemPoolGrowByOthers, /* by free memory of other lists */
  umemPoolGrowLeast,    /* by a chunk of the needed size */
  umemPoolGrowWell      /* by an ordinary chunk: one at a time, other threads wait for it */
} umemPoolGrowth;

/* A list that grows until a range of this size fits. */
typedef struct umemPoolGrower {
  umemPoolFreeList *list;
  size_t size, alignment;
  umemPoolGrowth growth;
  unsigned step;            /* 0 at the beginning */
  umemPoolFailure *failure; /* borrowed */
  bool refused; /* the upstream has refused pages: it is asked for no more than is needed */
} umemPoolGrower;

/* Does the next step that may help: first it frees what the list keeps for later requests, then it takes memory of
 * another list, then it allocates a chunk from the upstream. Releases the lock for some time. Returns false if there
 * is no step left, or if the last one failed, and describes this in *failure. umemPoolGrowNot and umemPoolGrowByOthers
 * do not change *failure. */
bool umemPoolGrower_next(umemPoolGrower *grower);

#endif
