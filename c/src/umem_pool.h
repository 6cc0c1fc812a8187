/* umem_pool.h - what the files of the pool share.
 *
 *   umem_pool.c         the context: options and methods
 *   umem_pool_chunk.c   takes chunks from the upstream, and ranges of them for spans and large blocks
 *   umem_pool_large.c   large blocks, and those that are freed and wait for the next of their size
 *   umem_pool_span.c    cuts spans into small blocks, and knows which of these are free
 *   umem_pool_cache.c   each thread's small blocks, and how they pass between threads
 *   umem_page_map.c     finds the span of an address
 *   umem_pool_stats.c   counts
 *
 * A small block is in one of three states: free in its span (a bit there is set), kept by a thread or
 * waiting in the depot for one, or live. A byte for each block, beside its span's descriptor, says whether
 * it is live; whoever changes it from 1 to 0 owns the block, so that of two threads that free one block,
 * one is refused.
 *
 * Threads: the lock guards all members of the core below it. Spans' descriptors are never given back
 * before the end, as a wrong free may be looking at one; the map tells whether they are what they were.
 * Failures under the lock are held until it is released, because the failure hook may call back. */
#ifndef UMEM_POOL_PRIVATE_H
#define UMEM_POOL_PRIVATE_H

#include "umem_core.h"
#include "umem_lock.h"
#include "umem_page_map.h"
#include "umem_range.h"

#include <umem/pool.h>

enum {
  umemPoolUnitShift = 12, /* large blocks and chunks are counted in these */
  umemPoolUnit = 1 << umemPoolUnitShift,
  umemPoolPage = 1 << umemPageShift, /* chunks and spans are aligned to this */
  umemPoolGrain = 16,                /* the smallest block, and what small sizes are counted in */
  umemPoolSmall = 64 << 10,          /* the largest small block */
  umemPoolClasses = 44,
  umemPoolFirstWide = 32,     /* the first class whose spans have several pages */
  umemPoolLargeClass = 63,    /* stands in the map for a large block, which has no class */
  umemPoolWaitingSizes = 1025 /* large blocks of fewer units wait when they are freed */
};

/* ---- small blocks ---- */

/* What all spans of a class are like. */
typedef struct umemPoolShape {
  uint32_t size;  /* bytes of a block */
  uint32_t count; /* blocks in a span */
  uint32_t pages; /* of a span */
  uint32_t batch; /* blocks that pass between threads at once */
  uint64_t magic; /* 2^40 / size, rounded up: offset * magic >> 40 is offset / size */
} umemPoolShape;

/* The descriptor of a span. Behind the bytes there are as many bits, at umemPoolSpan_bits: which blocks
 * are free. In the map stands its address, a multiple of 64, plus its class, which it never leaves. */
typedef struct umemPoolSpan {
  struct umemPoolSpan *after, *before; /* in the list of spans with free blocks, or (after) of those
                                          that are not in use */
  uint32_t room;                       /* how many blocks there are bytes and bits for */
  uint32_t free_count;
  uint64_t page;        /* its first; atomic */
  unsigned char live[]; /* atomic, one for each block */
} umemPoolSpan;

enum { umemPoolClassMask = 63 };

static inline umemPoolSpan *umemPoolSpan_of(uintptr_t word) {
  return (umemPoolSpan *)(word & ~(uintptr_t)umemPoolClassMask);
}
static inline unsigned umemPoolClass_of(uintptr_t word) {
  return (unsigned)(word & umemPoolClassMask);
}

typedef struct umemPoolSlab umemPoolSlab;
typedef struct umemPoolLarge umemPoolLarge;

/* A block that is not live. */
typedef struct umemPoolEntry {
  uintptr_t adr;
  unsigned char *live; /* its byte */
} umemPoolEntry;

/* Blocks of one class on their way from thread to thread. */
typedef struct umemPoolBatch {
  struct umemPoolBatch *next;
  umemPoolEntry entries[32];
} umemPoolBatch;

enum { umemPoolBatchMost = sizeof((umemPoolBatch *)0)->entries / sizeof(umemPoolEntry) };

/* What a thread keeps of one class: a stack of up to two batches. */
typedef struct umemPoolSlot {
  umemPoolEntry *entries; /* owned; NULL before the first use */
  uint32_t count;         /* atomic: written by the thread alone */
  uint32_t limit;
  uint64_t served; /* allocations; atomic likewise */
} umemPoolSlot;

typedef struct umemPoolCache {
  uint64_t serial;                      /* of the core; never used again */
  struct umemPoolCore *core;            /* holds a share of it */
  struct umemPoolCache *next;           /* of the same thread */
  struct umemPoolCache *after, *before; /* of the same core; under its lock */
  umemPoolSlot slots[umemPoolClasses];
} umemPoolCache;

/* The class's part of the core that changes. */
typedef struct umemPoolClass {
  umemPoolSpan *spans;  /* those with free blocks */
  umemPoolSpan *unused; /* descriptors */
  umemPoolBatch *depot; /* full batches; owned */
  uint32_t depot_count;
  uint64_t out; /* blocks that are not free in their span */
} umemPoolClass;

/* ---- the core ---- */

typedef struct umemPoolChunk {
  uintptr_t adr;
  size_t size;
  bool special; /* of an alignment that made it costly: given back as soon as it is empty */
} umemPoolChunk;

/* Lives as long as the pool, and as the last thread that has a cache of it. */
typedef struct umemPoolCore {
  uint64_t serial; /* names the pool in this process; never 0 */
  uint32_t shares; /* atomic: of the pool and of the caches */
  bool ended;      /* atomic; changes under the lock: the pool is gone */
  struct umemPoolCore *next_grave;
  umemVirtual *upstream; /* borrowed */
  size_t alignment, growth, maximum;
  umemPageMap map;
  umemPoolShape shapes[umemPoolClassMask + 1];         /* those that are no class have no block */
  uint8_t class_of[umemPoolSmall / umemPoolGrain + 1]; /* [size / 16, rounded up] */

  umemLock lock;
  umemRange *range; /* owned; of units, in all chunks: spans and large blocks are its live ranges */
  umemPoolChunk *chunks; /* owned */
  size_t chunk_count, chunk_room, special_count;
  umemPoolClass classes[umemPoolClasses];
  umemPoolCache *caches;
  umemPoolSlab *slabs;          /* all descriptors; owned */
  umemPoolBatch *empty_batches; /* owned */
  umemPoolLarge *unused_large;
  umemPoolLarge *waiting[umemPoolWaitingSizes]; /* [units]: freed blocks of that size */
  uint8_t waiting_counts[umemPoolWaitingSizes];
  uint64_t waiting_units;
  uint64_t large_count, large_units, small_out; /* small_out: bytes that are not free in spans */
  uint64_t served;                              /* allocations that no living cache counts */
  uint64_t reserved, reserved_peak, used_peak;
} umemPoolCore;

/* Why there is no memory. */
typedef struct umemPoolLack {
  enum { umemPoolUpstream, umemPoolMaximum, umemPoolBooks } why;
  uint64_t reserved;   /* umemPoolMaximum: bytes that the pool has */
  umemAttempt attempt; /* umemPoolUpstream: what it said */
} umemPoolLack;

/* Notes the bytes in use now, when they have become more. */
static inline void umemPool_note_peak(umemPoolCore *core) {
  uint64_t used = core->small_out + (core->large_units << umemPoolUnitShift);
  if (used > core->used_peak) core->used_peak = used;
}

/* ---- umem_pool_chunk.c; all under the lock ---- */

/* A new live range of size bytes, at most PTRDIFF_MAX, rounded up to units, at a multiple of alignment.
 * Where there is none, first what waits to be used again is made free, then a new chunk taken (see
 * umemPool_add_chunk). False, and why in *lack, without memory. */
bool umemPool_reserve(umemPoolCore *core, size_t size, size_t alignment, uintptr_t *adr,
                      umemPoolLack *lack);

/* Takes a chunk of this size, a multiple of units. While the upstream is asked for it the lock is open, so
 * that others need not wait, and what the upstream calls (umemRetry, a function of the program) may use the
 * pool. Nothing that was known of the pool before holds afterwards; but the chunk is all free. */
bool umemPool_add_chunk(umemPoolCore *core, size_t size, size_t alignment, umemPoolLack *lack);

/* Makes a live range free. Returns its units; 0, with nothing changed, when none begins at adr. */
uint64_t umemPool_unreserve(umemPoolCore *core, uintptr_t adr);

/* The bytes of the live range that begins at adr; 0 when there is none. */
uint64_t umemPool_extent(umemPoolCore *core, uintptr_t adr);

/* Gives free chunks back as long as no less than keep bytes stay. An attempt must be open. */
void umemPool_release_chunks(umemPoolCore *core, size_t keep);

/* The same for special chunks that are free. */
void umemPool_release_special_chunks(umemPoolCore *core);

/* Gives all chunks back, whatever is in them. */
void umemPool_end_chunks(umemPoolCore *core);

/* ---- umem_pool_large.c; all under the lock ---- */

/* A live block that is no part of a span. False, and why in *lack, without memory. */
bool umemPool_alloc_large(umemPoolCore *core, size_t size, size_t alignment, uintptr_t *adr,
                          umemPoolLack *lack);

/* False, with nothing changed, when no such block begins at adr. */
bool umemPool_free_large(umemPoolCore *core, uintptr_t adr);

/* The bytes of the live block that begins at adr; 0 when there is none. */
uint64_t umemPool_large_extent(umemPoolCore *core, uintptr_t adr);

/* Makes the ranges free whose blocks wait. */
void umemPool_join_waiting(umemPoolCore *core);

/* ---- umem_pool_span.c; all but umemPool_locate under the lock ---- */

void umemPool_init_classes(umemPoolCore *core);

/* A place for descriptors, size bytes of zeros at a multiple of 64, until the end. NULL without memory. */
void *umemPool_new_slab(umemPoolCore *core, size_t size);

/* Frees all descriptors. */
void umemPool_end_spans(umemPoolCore *core);

static inline uint64_t *umemPoolSpan_bits(umemPoolSpan *span) {
  return (uint64_t *)(void *)(span->live + span->room);
}

/* Takes up to count blocks of class that are free in spans, the lowest address last. Returns how many;
 * none if there are none. */
uint32_t umemPool_take(umemPoolCore *core, unsigned class, umemPoolEntry *entries, uint32_t count);

/* Adds a span of the class. False, and why in *lack, without memory. */
bool umemPool_add_span(umemPoolCore *core, unsigned class, umemPoolLack *lack);

/* Makes blocks, of any class, free in their spans. */
void umemPool_put(umemPoolCore *core, umemPoolEntry const *entries, uint32_t count);

/* A small block that is, or may be, live. */
typedef struct umemPoolPlace {
  uintptr_t const *where; /* in the map */
  uintptr_t word;         /* what stood there */
  uint64_t page;          /* the first of the span */
  unsigned char *live;
} umemPoolPlace;

/* Whether a block of a span can begin at adr, and which. No lock needed. Looks at no more memory than it
 * must: where many blocks are live, each look costs more than all else. */
static inline bool umemPool_locate(umemPoolCore *core, uintptr_t adr, umemPoolPlace *place) {
  uintptr_t const *where = umemPageMap_word(&core->map, adr);
  uintptr_t word = where ? __atomic_load_n(where, __ATOMIC_ACQUIRE) : 0;
  if (!word) return false;
  umemPoolSpan *span = umemPoolSpan_of(word);
  umemPoolShape const *shape = &core->shapes[umemPoolClass_of(word)];
  uint64_t page = (uint64_t)adr >> umemPageShift;
  if (shape->pages != 1) page = __atomic_load_n(&span->page, __ATOMIC_ACQUIRE);
  uint64_t offset = (uint64_t)adr - (page << umemPageShift);
  if (offset >= (uint64_t)shape->pages << umemPageShift) return false;
  uint64_t index = offset * shape->magic >> 40;
  if (index >= shape->count || index * shape->size != offset) return false;
  *place = (umemPoolPlace){where, word, page, &span->live[index]};
  return true;
}

/* Whether place is still what it was when it was located: else the span went back in the meantime, with
 * all its blocks free. */
static inline bool umemPool_is_still(umemPoolPlace const *place) {
  return __atomic_load_n(place->where, __ATOMIC_RELAXED) == place->word &&
         (umemPoolClass_of(place->word) < umemPoolFirstWide ||
          __atomic_load_n(&umemPoolSpan_of(place->word)->page, __ATOMIC_RELAXED) == place->page);
}

/* ---- umem_pool_stats.c ---- */

/* Fills in all of *stats but its size. Takes the lock. */
void umemPool_measure(umemPoolCore *core, umemPoolStats *stats);

/* ---- umem_pool_cache.c ---- */

/* The cache that the calling thread has used last; never NULL. */
extern _Thread_local umemPoolCache *umem_pool_last_cache __attribute__((visibility("hidden")));

/* The calling thread's cache of core, made if need be; NULL without memory. */
umemPoolCache *umemPoolCache_mine(umemPoolCore *core);

/* Makes free what the calling thread keeps, and what is in the depot. Under the lock. */
void umemPool_drain(umemPoolCore *core);

/* Moves a batch from the depot to the empty slot. False when there is none. */
bool umemPool_fetch(umemPoolCore *core, unsigned class, umemPoolSlot *slot);

/* Moves a batch from slot, which is full, to the depot, or where that has enough to the spans. */
void umemPool_hand_over(umemPoolCore *core, unsigned class, umemPoolSlot *slot);

/* Gives the slot of this class its stack. False without memory. */
bool umemPoolCache_prepare(umemPoolCore *core, umemPoolSlot *slot, unsigned class);

/* The pool ends: takes everything from all caches, and the calling thread's own away. */
void umemPool_end_caches(umemPoolCore *core);

/* Gives up a share of core, which is dead with the last. Whatever locks are held. */
void umemPoolCore_drop(umemPoolCore *core);

/* Frees dead cores. While no lock is held. */
void umemPoolCore_bury(void);

static inline void umemPoolSlot_push(umemPoolSlot *slot, umemPoolEntry entry) {
  uint32_t count = __atomic_load_n(&slot->count, __ATOMIC_RELAXED);
  slot->entries[count] = entry;
  __atomic_store_n(&slot->count, count + 1, __ATOMIC_RELAXED);
}

#endif
