/* pool_cache.h - the caches of threads, and the depot that passes batches between them. */
#ifndef UMEM_POOL_CACHE_H
#define UMEM_POOL_CACHE_H

#include "pool/pool_span.h"

typedef struct umemPoolSlot umemPoolSlot;

/* Blocks of one class on their way from thread to thread. */
struct umemPoolBatch {
  struct umemPoolBatch *next;
  umemPoolSlot const *from; /* has handed it over; may be gone */
  umemPoolEntry entries[umemPoolBatchMost];
};

/* What a thread keeps of one class: a stack of up to two batches, or four where it needs them. All
 * that an allocation or a free needs of the class is in one line of the processor's cache. */
struct umemPoolSlot {
  umemPoolEntry *entries; /* owned; NULL before the first use */
  /* Allocations in the upper bits, the number of entries in the lower ones, so that one store
   * changes both. Atomic: others read it. */
  uint64_t state;
  uint64_t magic; /* as in umemPoolShape */
  uint32_t size, blocks;
  uint32_t shift;
  uint32_t limit; /* of entries; 0 without a stack */
  uint32_t given; /* batches handed over and not taken back; others may have taken them */
  char cache_line_padding[20];
};
_Static_assert(sizeof(umemPoolSlot) == 64, "a line");

enum { umemPoolSlotShift = 8, umemPoolSlotMask = (1 << umemPoolSlotShift) - 1 };

/* A part of the page map that the thread has used. */
typedef struct umemPoolKnown {
  uint64_t region; /* valid where there is a leaf */
  umemPageLeaf const *leaf;
} umemPoolKnown;

enum { umemPoolKnownCount = 32 }; /* regions: 2 GiB when they follow one another */

/* The blocks that a thread keeps. The thread changes its slots either under the lock, or between
 * umemPoolCache_enter and umemPoolCache_leave. Others change them only under the lock, and after
 * they have closed the cache and waited until the thread is not busy: see pool_cache.c. */
struct umemPoolCache {
  uint64_t key;           /* atomic: serial, or 0 while others have closed the cache */
  uint32_t busy;          /* atomic: the thread is between enter and leave */
  bool ended;             /* atomic: the list has ended, the cache is empty, its thread frees it */
  unsigned lineage;       /* umem_fork_count() of the process in which its thread runs */
  uint64_t serial;        /* of the list; never used again */
  umemPoolCore *core;     /* holds a reference to it */
  umemPoolFreeList *list; /* until it has ended */
  struct umemPoolCache *next;           /* of the same thread */
  struct umemPoolCache *after, *before; /* of the same list; under the lock */
  struct umemPoolCache *newer, *older;  /* of all threads; under the global lock */
  umemPoolKnown known[umemPoolKnownCount];
  char cache_line_padding[64 - 3 * sizeof(void *)];
  umemPoolSlot slots[umemPoolClassMask + 1]; /* those of no class stay empty */
};
_Static_assert(offsetof(struct umemPoolCache, slots) % 64 == 0, "each slot is a line");

/* The cache that the calling thread has used last; never NULL. */
extern _Thread_local umemPoolCache *umem_pool_last_cache __attribute__((visibility("hidden")));

/* The calling thread's cache for the list. Makes it if there is none; NULL if it is out of
 * memory. */
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

/* Frees the blocks in the caches that all other threads have of the list; NULL: of all lists. Waits
 * for threads that are just changing one, a moment at most. Caches of before a fork remain as they
 * are. */
void umemPoolCache_drain_threads(umemPoolCore *core, umemPoolFreeList *list);

/* When the list ends: drains the caches of all threads. Each thread frees its cache later. */
void umemPoolCache_end_all(umemPoolFreeList *list);

/* When the pool ends: frees all batches, of the depots and empty ones. */
void umemPoolCache_free_batches(umemPoolCore *core);

/* ---- slots ---- */

static inline uint32_t umemPoolSlot_count(umemPoolSlot const *slot) {
  return (uint32_t)(__atomic_load_n(&slot->state, __ATOMIC_RELAXED) & umemPoolSlotMask);
}

static inline uint64_t umemPoolSlot_served(umemPoolSlot const *slot) {
  return __atomic_load_n(&slot->state, __ATOMIC_RELAXED) >> umemPoolSlotShift;
}

static inline void umemPoolSlot_set_count(umemPoolSlot *slot, uint32_t count) {
  uint64_t others = __atomic_load_n(&slot->state, __ATOMIC_RELAXED) & ~(uint64_t)umemPoolSlotMask;
  __atomic_store_n(&slot->state, others | count, __ATOMIC_RELAXED);
}

/* Takes an entry, which counts as an allocation. False when there is none. */
static inline bool umemPoolSlot_pop(umemPoolSlot *slot, umemPoolEntry *entry) {
  uint64_t state = __atomic_load_n(&slot->state, __ATOMIC_RELAXED);
  uint32_t count = state & umemPoolSlotMask;
  if (__builtin_expect(!count, 0)) return false;
  *entry = slot->entries[count - 1];
  __atomic_store_n(&slot->state, state + (1 << umemPoolSlotShift) - 1, __ATOMIC_RELAXED);
  return true;
}

/* False when it is full. */
static inline bool umemPoolSlot_push(umemPoolSlot *slot, umemPoolEntry entry) {
  uint64_t state = __atomic_load_n(&slot->state, __ATOMIC_RELAXED);
  uint32_t count = state & umemPoolSlotMask;
  if (__builtin_expect(count == slot->limit, 0)) return false;
  slot->entries[count] = entry;
  __atomic_store_n(&slot->state, state + 1, __ATOMIC_RELAXED);
  return true;
}

/* ---- slots without the lock ---- */

/* Begins a change of a cache of the calling thread. False when the cache is not that of the list
 * with this serial, or others have closed it; then no leave follows. */
static inline bool umemPoolCache_enter(umemPoolCache *cache, uint64_t serial) {
  __atomic_store_n(&cache->busy, 1, __ATOMIC_RELAXED);
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  if (__builtin_expect(__atomic_load_n(&cache->key, __ATOMIC_ACQUIRE) == serial, 1)) return true;
  __atomic_store_n(&cache->busy, 0, __ATOMIC_RELEASE);
  return false;
}

static inline void umemPoolCache_leave(umemPoolCache *cache) {
  __atomic_store_n(&cache->busy, 0, __ATOMIC_RELEASE);
}

/* The slot is computed once: the asm keeps the compiler from doing it again for each atomic
 * member. */
static inline umemPoolSlot *umemPoolCache_slot(umemPoolCache *cache, size_t class) {
  umemPoolSlot *slot = &cache->slots[class];
  __asm__("" : "+r"(slot));
  return slot;
}

/* Takes a block for an allocation. */
static inline bool umemPoolCache_take(umemPoolCache *cache, uint64_t serial, size_t class,
                                      umemPoolEntry *entry) {
  if (!umemPoolCache_enter(cache, serial)) return false;
  bool taken = umemPoolSlot_pop(umemPoolCache_slot(cache, class), entry);
  umemPoolCache_leave(cache);
  return taken;
}

/* Keeps a block that is not live any more. */
static inline bool umemPoolCache_keep(umemPoolCache *cache, uint64_t serial, size_t class,
                                      umemPoolEntry entry) {
  if (!umemPoolCache_enter(cache, serial)) return false;
  bool kept = umemPoolSlot_push(umemPoolCache_slot(cache, class), entry);
  umemPoolCache_leave(cache);
  return kept;
}

/* The cache that the calling thread has used last. To read a thread variable may be a function
 * call, which is cheapest where a function begins: then few registers must be saved. The asm keeps
 * the compiler from reading it later. */
static inline umemPoolCache *umemPoolCache_last(void) {
  umemPoolCache *cache = umem_pool_last_cache;
  __asm__("" : "+r"(cache));
  return cache;
}

#endif
