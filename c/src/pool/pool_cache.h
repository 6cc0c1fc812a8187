/* pool_cache.h - the caches of threads, and the depot that passes batches between them. See pool.h. */
#ifndef UMEM_POOL_CACHE_H
#define UMEM_POOL_CACHE_H

#include "pool/pool_core.h"
#include "pool/pool_span.h"

/* Blocks of one class on their way from thread to thread. */
struct umemPoolBatch {
  struct umemPoolBatch *next;
  umemPoolEntry entries[umemPoolBatchMost];
};

/* What a thread keeps of one class: a stack of up to two batches. */
typedef struct umemPoolSlot {
  umemPoolEntry *entries; /* owned; NULL before the first use */
  uint32_t count;         /* atomic: written by the thread alone */
  uint32_t limit;
  uint64_t served; /* allocations; atomic likewise */
} umemPoolSlot;

struct umemPoolCache {
  uint64_t serial;        /* of the list; never used again */
  bool ended;             /* atomic: the list has ended, the cache is empty, its thread frees it */
  unsigned lineage;       /* umem_fork_count() when it was made */
  umemPoolCore *core;     /* holds a reference to it */
  umemPoolFreeList *list; /* until it has ended */
  struct umemPoolCache *next;           /* of the same thread */
  struct umemPoolCache *after, *before; /* of the same list; under the lock */
  umemPoolSlot slots[umemPoolClasses];
};

/* The cache that the calling thread has used last; never NULL. */
extern _Thread_local umemPoolCache *umem_pool_last_cache __attribute__((visibility("hidden")));

/* The calling thread's cache for the list. Makes it if there is none; NULL if it is out of memory. */
umemPoolCache *umemPoolCache_mine(umemPoolFreeList *list);

/* Gives the slot of this class its stack. False without memory. */
bool umemPoolCache_prepare(umemPoolCore *core, umemPoolSlot *slot, unsigned class);

/* ---- under the lock ---- */

/* Moves a batch from the depot to the empty slot. False when there is none. */
bool umemPoolCache_fetch(umemPoolFreeList *list, unsigned class, umemPoolSlot *slot);

/* Moves a batch from slot, which is full, to the depot; or to the spans, when the depot is full. */
void umemPoolCache_hand_over(umemPoolFreeList *list, unsigned class, umemPoolSlot *slot);

/* Frees the blocks of the calling thread's cache and of the depot in their spans. */
void umemPoolCache_drain(umemPoolFreeList *list);

/* When the list ends: drains the caches of all threads. Each thread frees its cache later. */
void umemPoolCache_end_all(umemPoolFreeList *list);

/* When the pool ends: frees the batches of the depot. */
void umemPoolCache_free_depot(umemPoolFreeList *list);

/* The same for empty batches. */
void umemPoolCache_free_empty(umemPoolCore *core);

/* ---- slots ---- */

/* False when it is empty. */
static inline bool umemPoolSlot_pop(umemPoolSlot *slot, umemPoolEntry *entry) {
  if (!slot->count) return false;
  uint32_t count = slot->count - 1;
  __atomic_store_n(&slot->count, count, __ATOMIC_RELAXED);
  *entry = slot->entries[count];
  return true;
}

static inline void umemPoolSlot_push(umemPoolSlot *slot, umemPoolEntry entry) {
  uint32_t count = __atomic_load_n(&slot->count, __ATOMIC_RELAXED);
  slot->entries[count] = entry;
  __atomic_store_n(&slot->count, count + 1, __ATOMIC_RELAXED);
}

#endif
