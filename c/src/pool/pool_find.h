/* pool_find.h - finds a block where the calling thread's cache has none, and gets more memory for
 * its free list. See pool.h. Growth is under the lock. */
#ifndef UMEM_POOL_FIND_H
#define UMEM_POOL_FIND_H

#include "pool/pool_cache.h"
#include "pool/pool_core.h"

/* ---- growth ---- */

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

/* Does the next step that may help: first it frees what the list keeps for later requests, then it
 * takes memory of another list, then it allocates a chunk from the upstream. Releases the lock for
 * some time. Returns false if there is no step left, or if the last one failed, and describes this
 * in *failure. umemPoolGrowNot and umemPoolGrowByOthers do not change *failure. */
bool umemPoolGrower_next(umemPoolGrower *grower);

/* ---- search ---- */

typedef struct umemPoolRequest {
  umemPoolFreeList *list;
  unsigned class;     /* umemPoolClasses: a large block, which has none */
  umemPoolSlot *slot; /* the calling thread's, empty; gets more blocks. NULL: the thread has none */
  size_t size;      /* at most PTRDIFF_MAX / 2; of a block of class: when it becomes a large one */
  size_t alignment; /* likewise */
  umemPoolEntry entry;     /* what was found; live is NULL when it is a large block */
  umemPoolFailure failure; /* why nothing was */
} umemPoolRequest;

/* Finds the block, under the lock, which may be open meanwhile. False, and why in request->failure,
 * when it cannot. */
bool umemPoolRequest_find(umemPoolRequest *request);

#endif
