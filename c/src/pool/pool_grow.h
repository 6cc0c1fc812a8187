/* pool_grow.h - gets more free memory for a free list: from other lists, or from the upstream. All
 * under the lock, which the functions release for some time, except umemPoolTransfer_at_end. */
#ifndef UMEM_POOL_GROW_H
#define UMEM_POOL_GROW_H

#include "pool/pool_core.h"

/* ---- from other lists ---- */

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

/* ---- from the upstream ---- */

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

/* When the pool is out of memory: brings together what is not used, and gives back chunks of it.
 * Returns how the list may grow then: by the upstream, if that got anything or moves pages. */
umemPoolGrowth umemPoolGrow_reclaim(umemPoolFreeList *list, umemPoolFailure const *failure);

#endif
