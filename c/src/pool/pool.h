/* pool.h - what the files of the pool share.
 *
 *   pool.c         the context: options, trim, its end
 *   pool_on.c      the context of a view, which is bound to a queue
 *   pool_block.c   the methods that both have: blocks
 *   pool_find.c    finds a block where the calling thread keeps none
 *   pool_lack.h    why there is no memory, and what is on its way
 *   pool_chunk.c   takes chunks from the upstream, and ranges of them for spans and large blocks
 *   pool_large.c   large blocks, and those that are freed and wait for the next of their size
 *   pool_span.c    cuts spans into small blocks, and knows which of these are free
 *   pool_cache.c   each thread's small blocks, and how they pass between threads
 *   pool_lane.c    what lies free in the order of one queue, and how queues wait for each other
 *   pool_pass.c    how what is free passes from lane to lane
 *   base/page_map.c     finds the span of an address
 *   pool_stats.c   counts
 *
 * A small block is in one of three states: free in its span (a bit there is set), kept by a thread or
 * waiting in the depot for one, or live. A byte for each block, beside its span's descriptor, says
 * whether it is live; whoever changes it from 1 to 0 owns the block, so that of two threads that free one
 * block, one is refused.
 *
 * The pool is a core: the chunks and the books of what is live. What is free belongs to a lane, which
 * stands for a queue: it was freed in the order of that queue and may be used again in this order without
 * more. The pool has a lane of its own, whose queue is the upstream, and one for each view. A block that
 * is live belongs to no lane: it goes to that of the view that frees it. What a lane has free becomes
 * another's only when the other's queue has been told to wait for its own.
 *
 * Threads: the lock guards all members of the core below it, and the lanes. Spans' descriptors and lanes
 * are never given back before the end, as a wrong free may be looking at one; the map tells whether they
 * are what they were. Failures under the lock are held until it is released, because the failure hook may
 * call back. While queues are told to wait it is open, and while the upstream is asked for a chunk. Other
 * threads may wait for that, on the condition `landed`. Of pools that stand on each other, or whose upstreams'
 * callbacks use each other, a thread waits only for one that is older than all whose upstream it is in: so
 * that none waits in a circle. */
#ifndef UMEM_POOL_PRIVATE_H
#define UMEM_POOL_PRIVATE_H

#include "core/adaptor.h"
#include "base/lock.h"
#include "base/page_map.h"
#include "pool/pool_lack.h"
#include "base/range.h"

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
  struct umemPoolLane *lane; /* that all its free blocks belong to; NULL: they are mixed */
  struct umemPoolLane *home; /* of whose range it is a part */
  uint64_t orders;           /* of a mixed one: whom to wait for, bits of umemPoolLane_bit */
  uint32_t room;             /* how many blocks there are bytes and bits for */
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
  uint64_t serial;                      /* of the lane; never used again */
  bool ended;                           /* atomic: the lane has left it, empty, to its thread */
  unsigned lineage;                     /* umem_fork_count() when it was made */
  struct umemPoolCore *core;            /* holds a share of it */
  struct umemPoolLane *lane;            /* until it has ended */
  struct umemPoolCache *next;           /* of the same thread */
  struct umemPoolCache *after, *before; /* of the same lane; under the lock */
  umemPoolSlot slots[umemPoolClasses];
} umemPoolCache;

/* The class's part of the core that changes. */
typedef struct umemPoolClass {
  umemPoolSpan *mixed;  /* spans with blocks that were freed in several lanes */
  umemPoolSpan *unused; /* descriptors */
  uint64_t out;         /* blocks that are not free in their span */
} umemPoolClass;

/* ... and of a lane. */
typedef struct umemPoolShelf {
  umemPoolSpan *spans;  /* those with free blocks, all of this lane */
  umemPoolBatch *depot; /* full batches; owned */
  uint32_t depot_count;
} umemPoolShelf;

/* ---- lanes ---- */

/* What lies free in the order of one queue. Under the lock, but for what never changes. */
typedef struct umemPoolLane {
  struct umemPoolLane *next; /* of the core */
  struct umemPoolCore *core;
  uint64_t serial;    /* names it in this process; never 0; another one for each view */
  umemVirtual *queue; /* borrowed; of one that has ended: the upstream */
  umemVirtual *place; /* the innermost of queue */
  unsigned number;    /* see umemPoolLane_bit */
  bool alive;         /* the pool's own, or a view has it */
  bool ending;        /* nobody may take from it any more */
  bool lost;          /* its queue has ended and could not be waited for: nothing of it is used */
  unsigned guests;    /* how many are using its queue */
  unsigned lineage;   /* umem_fork_count() at that time */
  umemRange *range; /* owned; of units: what it has free; spans and large blocks are live ranges */
  bool has_whole;   /* spans all of which is free, as memory for the books was lacking */
  umemPoolShelf shelves[umemPoolClasses];
  umemPoolCache *caches;
  umemPoolLarge *waiting[umemPoolWaitingSizes]; /* [units]: freed blocks of that size */
  uint8_t waiting_counts[umemPoolWaitingSizes];
  uint64_t waiting_units;
} umemPoolLane;

/* Live ranges of a lane that are no blocks: on their way to another one. */
typedef struct umemPoolHeld {
  struct umemPoolHeld *next;
  umemPoolLane *home;
  size_t count;
  uint64_t starts[];
} umemPoolHeld;

/* ---- the core ---- */

typedef struct umemPoolChunk {
  uintptr_t adr;
  size_t size;
  bool special; /* of an alignment that made it costly: given back as soon as it is empty */
} umemPoolChunk;

/* Lives as long as the pool, as its views, and as the last thread that has a cache of it. */
typedef struct umemPoolCore {
  uint32_t shares; /* atomic: of the pool, of views and of caches */
  bool ended;      /* atomic; changes under the lock: the pool is gone */
  struct umemPoolCore *next_grave;
  umemVirtual *upstream; /* borrowed */
  size_t alignment, growth, maximum;
  umemPageMap map;
  umemPoolShape shapes[umemPoolClassMask + 1];         /* those that are no class have no block */
  uint8_t class_of[umemPoolSmall / umemPoolGrain + 1]; /* [size / 16, rounded up] */

  umemLock lock;
  pthread_cond_t no_guests; /* of some lane */
  pthread_cond_t landed;    /* a chunk, or the upstream has refused it */
  unsigned waits_lineage;   /* umem_fork_count() when the conditions were made */
  umemPoolLane *own;        /* the pool's; owned, as all are */
  umemPoolLane *lanes;      /* all, own last */
  umemPoolHeld *held;       /* owned */
  umemPoolChunk *chunks;    /* owned */
  umemPoolComing coming;
  size_t chunk_count, chunk_room, special_count;
  umemPoolClass classes[umemPoolClasses];
  umemPoolSlab *slabs;          /* all descriptors; owned */
  umemPoolBatch *empty_batches; /* owned */
  umemPoolLarge *unused_large;
  uint64_t large_count, large_units, small_out; /* small_out: bytes that are not free in spans */
  uint64_t served;                              /* allocations that no living cache counts */
  uint64_t reserved, reserved_peak, used_peak;
} umemPoolCore;

/* A block that is looked for. */
typedef struct umemPoolRequest {
  umemPoolLane *lane;
  unsigned class;      /* umemPoolClasses: of none, but a range */
  umemPoolSlot *slot;  /* the calling thread's, empty; gets more blocks. NULL: cannot be had */
  size_t size;         /* at most PTRDIFF_MAX / 2. Of a block of class: where it is a range */
  size_t alignment;    /* likewise */
  umemPoolEntry entry; /* what was found; live is NULL when it is a range */
  umemPoolLack lack;   /* why nothing was */
} umemPoolRequest;

/* What impl of a pool and of a view points to. */
typedef struct umemPoolImpl {
  umemAdaptor adaptor; /* of a view: of its queue */
  umemPoolCore *core;  /* a share of it */
  umemPoolLane *lane;
  uint64_t serial; /* of the lane */
} umemPoolImpl;

static inline umemPoolImpl *umemPoolImpl_of(umemVirtual *ctx) { return ((umemPool *)ctx)->impl; }

/* Notes the bytes in use now, when they have become more. */
static inline void umemPool_note_peak(umemPoolCore *core) {
  uint64_t used = core->small_out + (core->large_units << umemPoolUnitShift);
  if (used > core->used_peak) core->used_peak = used;
}

/* ---- pool.c ---- */

/* The core of ctx, which is constructed; NULL when it is no pool. */
umemPoolCore *umemPool_core(umemVirtual *ctx);

/* ---- pool_block.c ---- */

uintptr_t umemPoolBlock_alloc(umemVirtual *ctx, size_t nbytes);
uintptr_t umemPoolBlock_aligned_alloc(umemVirtual *ctx, size_t alignment, size_t size);
uintptr_t umemPoolBlock_aligned_origin(umemVirtual *ctx, uintptr_t adr);
uintptr_t umemPoolBlock_realloc(umemVirtual *ctx, uintptr_t adr, size_t old_size, size_t new_size);
void umemPoolBlock_free(umemVirtual *ctx, uintptr_t adr);
void umemPoolBlock_info(umemVirtual *ctx, umemInfo *info);

#define UMEM_POOL_BLOCKS                                                                           \
  .alloc = umemPoolBlock_alloc, .free = umemPoolBlock_free,                                        \
  .aligned_alloc = umemPoolBlock_aligned_alloc, .aligned_origin = umemPoolBlock_aligned_origin,    \
  .aligned_free = umemPoolBlock_free, .realloc = umemPoolBlock_realloc, .info = umemPoolBlock_info

/* Records why there are no nbytes; without the lock. */
void umemPool_tell_lack(umemVirtual *ctx, umemPoolLack const *lack, size_t nbytes);

/* Records what was held while the lock was. */
void umemPool_tell_held(umemVirtual *ctx, umemAttempt const *held);

/* Whether the pool of ctx has not ended; else a status. */
bool umemPool_still_is(umemVirtual *ctx);

/* ---- pool_find.c ---- */

/* Looks for the block, under the lock, which may be open meanwhile. False, and why in request->lack, without
 * memory. */
bool umemPool_find(umemPoolRequest *request);

/* ---- pool_chunk.c; all under the lock ---- */

/* A new live range in the lane's, of size bytes, at most PTRDIFF_MAX, rounded up to units, at a multiple
 * of alignment. Where the lane has none, first what waits to be used again is made free, then others' is
 * taken (see umemPool_borrow), then a new chunk (see umemPool_add_chunk), as growth allows. False, and why in
 * *lack, without memory; with umemPoolGrowNot and umemPoolGrowByOthers *lack is left as it was. */
bool umemPool_reserve(umemPoolLane *lane, size_t size, size_t alignment, umemPoolGrowth growth,
                      uintptr_t *adr, umemPoolLack *lack);

/* Takes a chunk of this size, a multiple of units, for the lane; ample: of which others will have a part.
 * While the upstream is asked for it the lock is open, so that others need not wait, and what the upstream
 * calls (umemRetry, a function of the program) may use the pool. Nothing that was known of the pool before
 * holds afterwards; but the chunk is all free. */
bool umemPool_add_chunk(umemPoolLane *lane, size_t size, size_t alignment, bool ample,
                        umemPoolLack *lack);

/* Waits until the upstream has answered some other thread that is asking it, or has woken up by chance. False
 * at once, when there is none that this thread may wait for. Nothing that was known of the pool before holds
 * afterwards. */
bool umemPool_await_chunk(umemPoolCore *core);

/* Before the conditions of core are used, or end: in a child of fork nobody waits for them, whatever they
 * say. */
void umemPool_renew_waits(umemPoolCore *core);

/* Makes a live range of home's free, for the lane. Returns its units; 0, with nothing changed, when none
 * begins at adr or there is no memory for the books: never when lane is home. */
uint64_t umemPool_unreserve(umemPoolLane *lane, umemPoolLane *home, uintptr_t adr);

/* The lane whose live range begins at adr, and its units; NULL when there is none. */
umemPoolLane *umemPool_home_of(umemPoolCore *core, uintptr_t adr, uint64_t *units);

/* Gives chunks back that the pool's own lane has free, as long as no less than keep bytes stay. An
 * attempt must be open. */
void umemPool_release_chunks(umemPoolCore *core, size_t keep);

/* The same for special chunks. */
void umemPool_release_special_chunks(umemPoolCore *core);

/* Gives all chunks back, whatever is in them. */
void umemPool_end_chunks(umemPoolCore *core);

/* ---- pool_large.c; all under the lock ---- */

/* A live block that is no part of a span. False, and why in *lack, without memory: see umemPool_reserve. */
bool umemPool_alloc_large(umemPoolLane *lane, size_t size, size_t alignment, umemPoolGrowth growth,
                          uintptr_t *adr, umemPoolLack *lack);

/* umemValueError, with nothing changed, when no such block begins at adr; umemMemoryError likewise when
 * there is no memory for the books, as there may be when the block comes from another lane. Records
 * nothing. */
umemStatusType umemPool_free_large(umemPoolLane *lane, uintptr_t adr);

/* The bytes of the live block that begins at adr; 0 when there is none. */
uint64_t umemPool_large_extent(umemPoolCore *core, uintptr_t adr);

/* Makes the ranges free whose blocks wait. */
void umemPool_join_waiting(umemPoolLane *lane);

/* ---- pool_span.c; all but umemPool_locate under the lock ---- */

void umemPool_init_classes(umemPoolCore *core);

/* A place for descriptors, size bytes of zeros at a multiple of 64, until the end. NULL without
 * memory. */
void *umemPool_new_slab(umemPoolCore *core, size_t size);

/* Frees all descriptors. */
void umemPool_end_spans(umemPoolCore *core);

static inline uint64_t *umemPoolSpan_bits(umemPoolSpan *span) {
  return (uint64_t *)(void *)(span->live + span->room);
}

/* Takes up to count blocks of class that are free in the lane's spans, the lowest address last. Returns
 * how many; none if there are none. */
uint32_t umemPool_take(umemPoolLane *lane, unsigned class, umemPoolEntry *entries, uint32_t count);

/* Adds a span of the class to the lane's, as umemPool_reserve has one. False, and why in *lack, without
 * memory. */
bool umemPool_add_span(umemPoolLane *lane, unsigned class, umemPoolGrowth growth,
                       umemPoolLack *lack);

/* Makes blocks, of any class, free in their spans, in the order of the lane. */
void umemPool_put(umemPoolLane *lane, umemPoolEntry const *entries, uint32_t count);

/* Gives spans back that stayed for want of memory. */
void umemPool_remove_whole(umemPoolLane *lane);

/* Takes a span with free blocks out of its list: then it is mixed, of no orders, and nobody takes of
 * it. */
void umemPool_lift_span(umemPoolCore *core, umemPoolSpan *span);

/* Puts it into a list: the lane's, to which all its free blocks belong but those that were freed since it
 * was lifted, or the one of mixed spans. */
void umemPool_lay_span(umemPoolLane *lane, umemPoolSpan *span);

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

/* ---- pool_stats.c ---- */

/* Fills in all of *stats but its size, largest_free and fragmentation. Takes the lock. */
void umemPool_measure(umemPoolCore *core, umemPoolStats *stats);

/* Fills in these two as well, for which all that waits is joined. Takes the lock. */
void umemPool_measure_free(umemPoolCore *core, umemPoolStats *stats);

/* ---- pool_cache.c ---- */

/* The cache that the calling thread has used last; never NULL. */
extern _Thread_local umemPoolCache *umem_pool_last_cache __attribute__((visibility("hidden")));

/* The calling thread's cache of the lane, made if need be; NULL without memory. */
umemPoolCache *umemPoolCache_mine(umemPoolLane *lane);

/* Makes free what the calling thread keeps of the lane, and what is in the depot. Under the lock. */
void umemPool_drain(umemPoolLane *lane);

/* Moves a batch from the depot to the empty slot. False when there is none. Under the lock. */
bool umemPool_fetch(umemPoolLane *lane, unsigned class, umemPoolSlot *slot);

/* Moves a batch from slot, which is full, to the depot, or where that has enough to the spans. Under the
 * lock. */
void umemPool_hand_over(umemPoolLane *lane, unsigned class, umemPoolSlot *slot);

/* Gives the slot of this class its stack. False without memory. */
bool umemPoolCache_prepare(umemPoolCore *core, umemPoolSlot *slot, unsigned class);

/* The lane ends: makes free what all threads keep of it, and leaves the caches to them. */
void umemPool_end_caches(umemPoolLane *lane);

/* Gives up a share of core, which is dead with the last. Whatever locks are held. */
void umemPoolCore_drop(umemPoolCore *core);

/* Frees dead cores. While no lock is held. */
void umemPoolCore_bury(void);

#include "pool/pool_lane.h"

#endif
