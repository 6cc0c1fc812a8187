/* pool_pages.h - gets memory for a pool page by page, where the upstream can map it. All
 * but umemPoolPages_init and umemPoolPages_end under the lock. */
#ifndef UMEM_POOL_PAGES_H
#define UMEM_POOL_PAGES_H

#include "pool/pool_core.h"

/* The method pages of the upstream of a new core. */
void umemPoolPages_init(umemPoolCore *core);

/* Whether the list can grow by pages. */
bool umemPoolPages_suit(umemPoolFreeList const *list, size_t alignment);

/* Whether another thread is mapping pages. */
bool umemPoolPages_are_busy(umemPoolCore *core);

/* How much new memory a growth may take that it does not need, in bytes. */
typedef struct umemPoolExtra {
  size_t ample;   /* mapped beside the range, for later requests */
  size_t unmoved; /* of the range itself, in place of pages that could be moved */
} umemPoolExtra;

/* Makes a free range of size bytes in the list, a multiple of units, at a multiple of alignment. It
 * moves pages of which all is free, of the list first and then of others, as far as their queues
 * can be waited for. The rest is new memory of the upstream, and so is what extra says; memory of
 * large pages that cannot be moved goes back for it. The caller has coalesced all lists. Releases
 * the lock for some time. Returns false, and why in *failure, if it cannot. Not while others are
 * busy. */
bool umemPoolPages_grow(umemPoolFreeList *list, size_t size, size_t alignment, umemPoolExtra extra,
                        umemPoolFailure *failure);

/* Whether some list may have pages of which all is free. */
bool umemPoolPages_may_move(umemPoolCore const *core);

/* Gives the memory of pages back that are all free in the pool's own list, as long as at least keep
 * bytes stay. An attempt must be open. Releases the lock for some time. */
void umemPoolPages_release(umemPoolCore *core, size_t keep);

/* When the pool ends: waits for all work that may use memory of the pool, and gives all pages and
 * addresses back. */
void umemPoolPages_end(umemPoolCore *core);

#endif
