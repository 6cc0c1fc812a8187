/* pool_grow.h - how a free list gets more memory: pages, free memory of other lists, chunks. */
#ifndef UMEM_POOL_GROW_H
#define UMEM_POOL_GROW_H

#include "pool/pool_space.h"

/* ==== pool_pages.c: memory page by page. Under the lock, but for _init and _end ==== */

/* Finds out whether the upstream of a new core can map pages. */
void umemPoolPages_init(umemPoolCore *core);

/* Whether the list can grow by pages. */
bool umemPoolPages_suit(umemPoolFreeList const *list, size_t alignment);

/* Whether another thread is mapping pages. */
bool umemPoolPages_are_busy(umemPoolCore *core);

/* Makes a free range of size bytes in the list, a multiple of units, at a multiple of alignment. It
 * moves pages of which all is free, of the list first and then of others, as far as their queues
 * can be waited for. The rest is new memory of the upstream, and so is what extra says; memory of
 * large pages that cannot be moved goes back for it. The caller has coalesced all lists. Releases
 * the lock for some time. Returns false, and why in *failure, if it cannot. Not while others are
 * busy. */
bool umemPoolPages_grow(umemPoolFreeList *list, size_t size, size_t alignment, umemPoolExtra extra,
                        umemPoolFailure *failure);

/* Whether there are pages of which all is free, and which may serve the list. */
bool umemPoolPages_may_move(umemPoolFreeList const *list);

/* Gives the memory of pages back that are all free in the pool's own list, as long as at least keep
 * bytes stay. An attempt must be open. Releases the lock for some time. */
void umemPoolPages_release(umemPoolCore *core, size_t keep);

/* When the pool ends: waits for all work that may use memory of the pool, and gives all pages and
 * addresses back. */
void umemPoolPages_end(umemPoolCore *core);

/* ==== pool_transfer.c: free memory of other lists. Under the lock ====
 *
 * All but umemPoolTransfer_at_end release the lock for some time. */

/* Marks what is free in the list, and as much of what it keeps as other lists want. */
void umemPoolTransfer_mark_now(umemPoolFreeList *list);

/* Does this if enough became free or other lists want it. Only in calls of the view of the list;
 * frees: the call frees blocks, and allocates none. */
static inline void umemPoolTransfer_mark(umemPoolFreeList *list, bool frees) {
  umemPoolMark const *mark = &list->mark;
  if (!frees && mark->is_needed && mark->thread != umem_pool_thread) umemPoolMark_claim(list);
  if (__builtin_expect(mark->nbytes < mark->enough, 1)) return;
  if (!frees || umemPoolMark_is_mine(list)) umemPoolTransfer_mark_now(list);
}

/* Makes all free that the threads and the list keep, and marks it unless the queue is blocked.
 * Returns whether it is marked; if not, and the queue is not blocked, records a failure. */
bool umemPoolTransfer_mark_all(umemPoolFreeList *list, bool blocked);

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

/* ==== pool_grow.c: more free memory for a list. Under the lock, but not all of the time ==== */

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
  bool zeros;               /* the range is for umem_calloc */
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
