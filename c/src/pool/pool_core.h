/* pool_core.h - the core of a pool, its free lists, and the functions by which its modules call
 * each other; those of spaces, spans, caches and growth are in headers of their own.
 *
 * A module calls only modules below it in this list:
 *
 *   pool.c            the contexts of a pool and of a view, which is bound to a queue: options,
 *                     trim, the beginning and the end of free lists
 *   pool_report.c     what a pool says of itself: how much it has and uses, and where
 *   pool_quick.c      allocates and frees small blocks by the calling thread's cache alone
 *   pool_block.c      the methods for blocks, which both contexts have; finds a block where the
 *                     calling thread's cache has none
 *   pool_grow.c       gets more free memory for a free list, from others or from the upstream
 *   pool_transfer.c   moves free memory from one free list to another
 *   pool_cache.c      caches: each thread's small blocks, and how they pass between threads
 *   pool_pages.c      maps pages, moves them, and gives them back
 *   pool_span.c       cuts spans into small blocks, and knows which of these are free
 *   pool_chunk.c      takes chunks from the upstream and gives them back; large blocks, and the
 *                     quick lists of those that are freed
 *   pool_space.c      ranges of addresses of the upstream, which of their pages have memory, where
 *                     a block gets pages, and how large these are
 *   pool_core.c       the core: references to it, the memory of its records, ranges of free lists,
 *                     queues that wait for others, and marks: what others may take of a list
 *   growth.c          the requests for chunks, and the threads that wait for them
 *
 * The core has the chunks and the records of live blocks. A free list has the free memory of one
 * queue: memory that was freed in the order of this queue, and can be used again in this order at
 * once. The pool has its own free list, whose queue is the upstream, and each view has one. A live
 * block belongs to no free list: it goes to the list of the view that frees it. Free memory moves
 * to another list only after the queue of that list was made to wait for the queue of the old one.
 *
 * The memory of a list comes in chunks or, if the upstream can map it, in pages (umemPages). Pages
 * are mapped into spaces, which are ranges of addresses. A page without memory is a gap; it is in
 * no list.
 *
 * A small block is in one of three states: free in its span (its bit there is set), in a thread's
 * cache or in the depot, or live. A byte for each block, beside the descriptor of its span, says
 * whether it is live. The thread that changes this byte from 1 to 0 owns the block. So if two
 * threads free one block, one of them fails. No thread but its own uses a cache, unless memory is
 * short: see pool_cache.c.
 *
 * Threads: the lock protects all members of the core below it, and the free lists. Descriptors of
 * spans and free lists stay until the end of the pool, because a wrong free may be reading them;
 * the page map shows whether they have changed. Failures that happen under the lock are recorded
 * after its release, because the failure hook may call the pool. The lock is released while a queue
 * is made to wait for another one, and while the upstream allocates a chunk (growth.h). */
#ifndef UMEM_POOL_CORE_H
#define UMEM_POOL_CORE_H

#include <umem/pool.h>

#include "base/range.h"
#include "core/adaptor.h"
#include "pool/growth.h"

#include <umem/find.h>

enum {
  umemPoolUnitShift = 12, /* large blocks and chunks are counted in units */
  umemPoolUnit = 1 << umemPoolUnitShift,
  umemPoolPage = 1 << umemPageShift, /* chunks and spans are aligned to pages */
  umemPoolGrain = 16,       /* the smallest block; sizes are rounded up to multiples of it */
  umemPoolSmall = 64 << 10, /* the largest small block */
  umemPoolClasses = 44,
  umemPoolFirstWide = 32,   /* the first class whose spans have several pages */
  umemPoolLargeClass = 63,  /* in the page map: a large block, which has no class */
  umemPoolClassMask = 63,   /* the class in a word of the page map, beside a descriptor's address */
  umemPoolSpareMost = 1000, /* percent */
  umemPoolBatchMost = 32,   /* blocks of the largest batch */
  umemPoolOrders = 7,       /* sizes of pages: the largest takes the place of 64 others */
  umemPoolQuickSizes = 257  /* freed large blocks of fewer units go to quick lists */
};

typedef struct umemPoolSpan umemPoolSpan;     /* pool_span.h */
typedef struct umemPoolLarge umemPoolLarge;   /* pool_chunk.c */
typedef struct umemPoolBatch umemPoolBatch;   /* pool_cache.h */
typedef struct umemPoolCache umemPoolCache;   /* pool_cache.h */
typedef struct umemPoolChunk umemPoolChunk;   /* pool_chunk.c */
typedef struct umemPoolSpace umemPoolSpace;   /* pool_space.h */
typedef struct umemPoolPaging umemPoolPaging; /* pool_pages.c */
typedef struct umemPoolSlab umemPoolSlab;     /* pool_core.c */

/* What all spans of a class have in common. */
typedef struct umemPoolShape {
  uint32_t size;  /* bytes of a block */
  uint32_t count; /* blocks in a span */
  uint32_t pages; /* of a span */
  uint32_t batch; /* blocks that pass between threads at once */
  uint64_t magic; /* 2^40 / size, rounded up: offset * magic >> 40 is offset / size */
  uint32_t shift; /* the byte of a block is at offset >> shift of a span's: see pool_span.h */
} umemPoolShape;

/* What the core has of a class. */
typedef struct umemPoolClass {
  umemPoolSpan *mixed;  /* spans with blocks that were freed in the order of several queues */
  umemPoolSpan *unused; /* descriptors */
  uint64_t out;         /* blocks that are not free in their span */
} umemPoolClass;

/* What a free list has of a class. */
typedef struct umemPoolFreeClass {
  umemPoolSpan *spans;  /* those with free blocks, which are all of this list */
  umemPoolBatch *depot; /* full batches; owned */
  uint32_t depot_count;
} umemPoolFreeClass;

enum { umemPoolMarkRanges = 64 };

/* How much a list should mark at its next call. */
typedef enum umemPoolWanted {
  umemPoolWantNothing,
  umemPoolWantFree,   /* what is free */
  umemPoolWantKept,   /* also what the calling thread and the depot keep */
  umemPoolWantThreads /* also what all threads keep */
} umemPoolWanted;

/* Up to where the queue of a list is marked, and what became free since: see pool_core.c. */
typedef struct umemPoolMark {
  bool is_needed;        /* if not, other lists wait for the queue itself */
  bool is_set;           /* if not, nothing must be waited for */
  umemMark mark;         /* owned; of the innermost context */
  uint64_t time;         /* of the core, when it was set */
  uint64_t thread;       /* that may set it in umem_free; 0: none has allocated yet */
  uint64_t nbytes;       /* that became free since then, or a bit more */
  uint64_t enough;       /* so many are marked: 0 for other lists, UINT64_MAX if none is needed */
  bool is_old;           /* something became free since then */
  umemPoolWanted wanted; /* by other lists */
  unsigned count;
  struct {
    uint64_t start, end;
  } ranges
      [umemPoolMarkRanges]; /* in rising order, in units: hold all ranges of the list that became
                                   free since then */
} umemPoolMark;

/* What is free for one queue. Under the lock, except for members that never change. */
typedef struct umemPoolFreeList {
  struct umemPoolFreeList *next; /* of the core */
  struct umemPoolCore *core;
  uint64_t serial;        /* unique in this process, never 0; another one for each view */
  umemVirtual *queue;     /* borrowed; when the view has ended: the upstream */
  umemVirtual *innermost; /* of queue */
  unsigned number;        /* see umemPoolQueue_bit */
  bool in_use;            /* by the pool or by a view */
  bool ending;            /* other lists take nothing from it any more */
  bool unusable;  /* its queue has ended and could not be waited for: nothing of it is used again */
  unsigned users; /* calls of others that use its queue now */
  unsigned lineage; /* umem_fork_count() when users was set */
  umemPoolMark mark;
  umemVirtual const *view; /* that uses the list, borrowed; NULL: the pool, or none */
  umemRange *range; /* owned; in units: what is free. Spans and large blocks are live ranges */
  bool has_whole;   /* spans all of whose blocks are free, because no RAM was left to free them */
  umemPoolFreeClass classes[umemPoolClasses];
  umemPoolCache *caches;                    /* owned by their threads */
  umemPoolLarge *quick[umemPoolQuickSizes]; /* [units]: freed blocks of that size */
  uint8_t quick_counts[umemPoolQuickSizes];
  uint64_t quick_units;
} umemPoolFreeList;

/* Lives as long as the pool, as its views, and as the last thread that has a cache of it. */
typedef struct umemPoolCore {
  uint32_t references; /* atomic: of the pool, of views and of caches */
  bool ended;          /* atomic; changes under the lock: the pool has ended */
  struct umemPoolCore *next_released;
  umemVirtual *upstream; /* borrowed */
  size_t alignment, initial, growth, maximum;
  size_t spare; /* percent; 0: the default */
  umemPageMap map;
  umemPoolShape shapes[umemPoolClassMask + 1];         /* those of no class have no block */
  uint8_t class_of[umemPoolSmall / umemPoolGrain + 1]; /* [size / 16, rounded up] */

  umemLock lock;
  pthread_cond_t no_users;    /* of some free list */
  unsigned condition_lineage; /* umem_fork_count() when the condition was made */
  umemPoolFreeList *own;      /* the pool's; owned, as all are */
  umemPoolFreeList *lists;    /* all, own last */
  umemPoolChunk *chunks;      /* owned */
  umemPages const *pages;     /* of the upstream; NULL: it has none. Never changes */
  /* [order]: those of pages that take the place of 1 << order others; [0] is pages. NULL: it has
   * none of this size. Never changes */
  umemPages const *sizes[umemPoolOrders];
  unsigned orders;       /* the largest order that there is, plus 1. Never changes */
  umemVirtual *zeroing;  /* the layer of the upstream that has the method zero_pages, so
                                     that new pages are zero; NULL: there is none. Never changes */
  bool knows_zeros;      /* the upstream has chunks of zeros without writing them. Never changes */
  umemPoolSpace *spaces; /* owned; where pages are mapped */
  unsigned growths_without_pages; /* growths that are yet to ask for no pages */
  unsigned
      growths_without_new_pages; /* growths that are yet to take no new pages in place of others */
  unsigned ranges_mixed;         /* small ranges that are yet to be placed beside others */
  umemPoolPaging *paging; /* owned; what is being mapped while the lock is open; NULL: nothing */
  umemGrowth growing;     /* running requests to the upstream, in bytes; not in reserved yet */
  size_t chunk_count, chunk_room, special_count;
  size_t zero_count;     /* chunks of which something is known to be zero */
  uint64_t chunk_serial; /* chunks that there were */
  uint64_t mark_time;    /* rises with each mark */
  umemPoolClass classes[umemPoolClasses];
  umemPoolSlab *slabs;          /* the memory of all descriptors; owned */
  umemPoolBatch *empty_batches; /* owned */
  umemPoolLarge *unused_large;
  uint64_t large_count, large_units, small_out; /* small_out: bytes that are not free in spans */
  uint64_t served;                              /* allocations that no cache counts */
  uint64_t served_units;                        /* of all large blocks that there ever were */
  uint64_t moved;                               /* bytes of pages */
  uint64_t reserved, reserved_peak, used_peak;
} umemPoolCore;

/* Why a request fails. */
typedef struct umemPoolFailure {
  enum {
    umemPoolUpstreamFailed, /* the upstream has no chunk */
    umemPoolAtMaximum,
    umemPoolNoRecords,  /* no RAM for the pool's records */
    umemPoolNotOrdered, /* the queue could not be made to wait for the upstream */
    umemPoolCaptured,   /* the queue is being captured: it can wait for nothing */
    umemPoolChanged     /* another thread's chunk has come: another try may succeed */
  } reason;
  uint64_t reserved;   /* umemPoolAtMaximum: bytes that the pool has */
  umemAttempt attempt; /* umemPoolUpstreamFailed, umemPoolNotOrdered: what was recorded */
  char hint[3 * UMEM_LABEL_SIZE]; /* what else the message says; "" at first */
} umemPoolFailure;

/* Whether the pool is out of memory, and nothing else is wrong. */
static inline bool umemPoolFailure_is_of_memory(umemPoolFailure const *failure) {
  return failure->reason == umemPoolAtMaximum ||
         (failure->reason == umemPoolUpstreamFailed && failure->attempt.type == umemMemoryError);
}

/* What impl of a pool and of a view points to. */
typedef struct umemPoolImpl {
  umemAdaptor adaptor; /* of a view: of its queue */
  umemPoolCore *core;  /* holds a reference to it */
  umemPoolFreeList *list;
  uint64_t serial; /* of list */
} umemPoolImpl;

static inline umemPoolImpl *umemPoolImpl_of(umemVirtual *ctx) { return ((umemPool *)ctx)->impl; }

/* A block that is not live. */
typedef struct umemPoolEntry {
  uintptr_t adr;
  unsigned char *live; /* its byte */
} umemPoolEntry;

/* Whether there are other lists than this one. */
static inline bool umemPoolFreeList_has_others(umemPoolFreeList const *list) {
  return list->core->lists->next != NULL;
}

/* The class in a word of the page map. */
static inline unsigned umemPoolClass_of(uintptr_t word) {
  return (unsigned)(word & umemPoolClassMask);
}

static inline uint64_t umemPoolUnits_of(size_t size) {
  return ((uint64_t)size + umemPoolUnit - 1) >> umemPoolUnitShift;
}

/* The alignment in units. */
static inline uint64_t umemPoolStep_of(size_t alignment) {
  return alignment > umemPoolUnit ? alignment >> umemPoolUnitShift : 1;
}

/* ==== pool_core.c: the core ==== */

/* The bytes in use. Under the lock, as the two below. */
static inline uint64_t umemPoolCore_used(umemPoolCore const *core) {
  return core->small_out + (core->large_units << umemPoolUnitShift);
}

/* Notes the bytes in use now, when they have become more. */
static inline void umemPoolCore_note_peak(umemPoolCore *core) {
  uint64_t used = umemPoolCore_used(core);
  if (used > core->used_peak) core->used_peak = used;
}

/* Counts memory of the upstream that the pool has got. */
static inline void umemPoolCore_add_reserved(umemPoolCore *core, uint64_t nbytes) {
  core->reserved += nbytes;
  if (core->reserved > core->reserved_peak) core->reserved_peak = core->reserved;
}

/* The bytes that the maximum still allows; UINT64_MAX without a maximum. */
uint64_t umemPoolCore_allowance(umemPoolCore const *core);

/* Whether the maximum allows size bytes more; else why not in *failure. */
bool umemPoolCore_allows(umemPoolCore const *core, size_t size, umemPoolFailure *failure);

/* Whether a range of so many units is placed separately from others, so that it pins few pages,
 * and does not cut what is free for large blocks into pieces: one smaller than half a page, in a
 * pool that moves pages, if these have several sizes: then it takes long to move them. Not if there
 * are other lists, whose small ranges may serve as well. */
static inline bool umemPoolCore_separates(umemPoolCore const *core, uint64_t units) {
  return core->moved && core->orders > 1 && !core->lists->next &&
         units < core->pages->page_size >> (umemPoolUnitShift + 1);
}

/* Whether such a range should rather get a page than cut what is free for others. */
bool umemPoolCore_keeps_separate(umemPoolCore const *core, uint64_t units);

/* Gives up a reference to core. The last one makes it a core that umemPoolCore_free_released frees.
 * Any locks may be held. */
void umemPoolCore_release(umemPoolCore *core);

/* Frees the cores without references. No lock may be held. */
void umemPoolCore_free_released(void);

/* Memory for descriptors, size bytes of zeros at a multiple of 64, until the pool ends. NULL
 * without memory. Under the lock. */
void *umemPoolCore_new_slab(umemPoolCore *core, size_t size);

/* Frees all descriptors. */
void umemPoolCore_free_slabs(umemPoolCore *core);

/* ==== pool_core.c: ranges. Under the lock ====
 *
 * A range is counted in units from address 0 on. A live range of a list is a span or a large block;
 * or it is held, which is no block: on its way to another list, or waiting for its pages. */

/* The result of a request for a range of the list. */
typedef enum umemPoolResult {
  umemPoolFound,
  umemPoolNoneFree, /* no free range of the list suits */
  umemPoolNoRam     /* for the record of what was found */
} umemPoolResult;

/* Makes free units of the list a live range, at a multiple of alignment bytes. False when no free
 * range of the list suits. */
bool umemPoolRange_take(umemPoolFreeList *list, uint64_t units, size_t alignment, uintptr_t *adr);

/* Notes that units from start on are free in the list since its last mark: see pool_core.c. */
void umemPoolMark_note(umemPoolFreeList *list, uint64_t start, uint64_t units);

/* Frees a live range of home, and gives it to list. Returns its units. Returns 0, and changes
 * nothing, if no such range begins at adr, or if there is no RAM for the records, which cannot
 * happen if list is home. */
static inline uint64_t umemPoolRange_free(umemPoolFreeList *list, umemPoolFreeList *home,
                                          uintptr_t adr) {
  uint64_t start = adr >> umemPoolUnitShift;
  uint64_t units = umemRange_hand(home->range, start, list->range);
  if (units && list->mark.is_needed) umemPoolMark_note(list, start, units);
  return units;
}

/* The list whose live range that is not held begins at adr, and its units; NULL when there is
 * none. */
umemPoolFreeList *umemPoolRange_home(umemPoolCore *core, uintptr_t adr, uint64_t *units);

static inline uint64_t umemPoolRange_largest(umemPoolFreeList const *list) {
  return umemRange_totals(list->range).largest_free;
}

/* ==== pool_core.c: the order of free lists. Under the lock ==== */

/* Whether the queue of list and other queues cannot wait for each other: the queue is being
 * captured, or it has ended before another queue could wait for it. Makes a call on the queue: only
 * for the list of the view that is called, and the pool's own. */
bool umemPoolQueue_is_blocked(umemPoolFreeList const *list);

/* Whether other lists can take nothing from this one at the moment. Makes a call on its queue only
 * if the list needs no marks. */
bool umemPoolQueue_is_closed(umemPoolFreeList const *list);

/* The bits of the lists from which nothing can be taken. */
uint64_t umemPoolQueue_closed(umemPoolCore const *core);

/* 64 bits distinguish the lists. If there are more lists, some share a bit, and a list that waits
 * for one of these waits for all. */
static inline uint64_t umemPoolQueue_bit(umemPoolFreeList const *list) {
  return UINT64_C(1) << list->number;
}

/* Makes the queue of list wait for the last mark of other, or, if other needs no marks, for the
 * work that its queue has now. Releases the lock for some time; neither list ends in this time.
 * Returns false, and records a failure, if that fails. */
bool umemPoolQueue_follow(umemPoolFreeList *list, umemPoolFreeList *other);

/* Makes it wait for the queues of all lists of these bits. */
bool umemPoolQueue_follow_all(umemPoolFreeList *list, uint64_t bits);

/* Waits until the work is done that may use what list may take of home. Releases the lock for this
 * time; the lists do not end in it. Returns false, and records a failure, if that fails or home is
 * closed. */
bool umemPoolQueue_finish(umemPoolFreeList *list, umemPoolFreeList *home);

/* Whether the queue of list must wait for an ordered upstream before it uses new memory. */
bool umemPoolQueue_must_follow_upstream(umemPoolFreeList const *list);

/* Whether it should and can wait for an upstream that is not ordered: the upstream may allocate
 * memory that a GPU is still using for an earlier block. */
bool umemPoolQueue_should_follow_upstream(umemPoolFreeList const *list);

/* Waits until no other list uses the queue of list. Releases the lock for this time. */
void umemPoolQueue_await_users(umemPoolFreeList *list);

/* Whether another list uses the queue of list. */
bool umemPoolQueue_has_users(umemPoolFreeList const *list);

static inline bool umemPoolQueue_is_ordered(umemPoolFreeList const *list) {
  return umem_can(list->queue, umemOrdered);
}

/* ==== marks: what other lists may take. Under the lock ==== */

/* For a list that begins to serve a queue, and one whose queue is no longer used. */
void umemPoolMark_begin(umemPoolFreeList *list);
void umemPoolMark_end(umemPoolFreeList *list);

/* Sets the mark to the end of what is queued: only in calls of the view of the list. Returns false,
 * and records a failure, if that fails; true if the list needs no marks. */
bool umemPoolMark_set(umemPoolFreeList *list);

/* Later work of the context `later`, or if that is NULL the calling thread, waits for the mark of
 * the other list, which is set. Without the lock; the list does not end meanwhile. Returns false,
 * and records a failure, if that fails. */
bool umemPoolMark_wait(umemPoolFreeList *other, umemVirtual *later);

/* Whether the calling thread may set the mark of the list, although it only frees. Otherwise
 * another thread may be using the queue. */
bool umemPoolMark_is_mine(umemPoolFreeList *list);

/* The number of the calling thread, or 0: it never had any. No other thread ever has it. */
extern _Thread_local uint64_t umem_pool_thread __attribute__((visibility("hidden")));

/* The calling thread allocates through the view of the list, or waits for its queue. */
void umemPoolMark_claim(umemPoolFreeList *list);

/* The time of what becomes free now. */
static inline uint64_t umemPoolMark_now(umemPoolFreeList const *list) {
  return list->core->mark_time;
}

/* Notes bytes that become free in the list, other than as a range. */
static inline void umemPoolMark_note_bytes(umemPoolFreeList *list, uint64_t nbytes) {
  list->mark.is_old = true;
  list->mark.nbytes += nbytes;
}

/* Forgets bytes that became free at this time, because they are in use again. */
static inline void umemPoolMark_forget_bytes(umemPoolFreeList *list, uint64_t nbytes,
                                             uint64_t time) {
  if (list->mark.time <= time && list->mark.nbytes >= nbytes) list->mark.nbytes -= nbytes;
}

/* Whether the mark of the list is behind what became free at this time. */
static inline bool umemPoolMark_covers(umemPoolFreeList const *list, uint64_t time) {
  umemPoolMark const *mark = &list->mark;
  return !mark->is_needed || mark->time > time;
}

/* Whether list may take all that is free in from: marks are of no account between them. */
static inline bool umemPoolMark_is_needless(umemPoolFreeList const *list,
                                            umemPoolFreeList const *from) {
  return !from->mark.is_needed || list->innermost == from->innermost;
}

/* A walk through what list may take of the free ranges of from. Begins with the two, and zeros. */
typedef struct umemPoolMarked {
  umemPoolFreeList const *list, *from;
  uint32_t cursor;
  uint64_t at, end; /* what is left of the free range that was found last */
} umemPoolMarked;

/* Fills in start and extent of another one of at least so many units. False at the end. Nothing may
 * change until then. */
bool umemPoolMarked_next(umemPoolMarked *walk, uint64_t least, umemRangeItem *item);

/* The largest range that list may take of from; extent is 0 when there is none of so many units. */
umemRangeItem umemPoolMarked_largest(umemPoolFreeList const *list, umemPoolFreeList const *from,
                                     uint64_t least);

/* Lists that the list cannot take from, because something of theirs is not marked, should mark that
 * much in their next calls. */
void umemPoolMark_want(umemPoolFreeList *list, umemPoolWanted wanted);

/* ==== pool_chunk.c: chunks of the upstream. Under the lock ==== */

/* Finds out whether the upstream of a new core knows which of its memory is zero. */
void umemPoolChunk_init(umemPoolCore *core);

/* What a chunk is for. */
typedef struct umemPoolChunkUse {
  bool ample; /* the request leaves some of it to others */
  bool zeros; /* umem_calloc, and the upstream knows its zeros */
} umemPoolChunkUse;

/* Takes a chunk of this size, a multiple of units, for the list. The lock is open while the
 * upstream is asked: nothing that was read from the pool before holds afterwards, but all of the
 * chunk is free. False, and why in *failure, otherwise. */
bool umemPoolChunk_add(umemPoolFreeList *list, size_t size, size_t alignment, umemPoolChunkUse use,
                       umemPoolFailure *failure);

/* Notes that these units, of a range that becomes free, may have any contents: in a chunk or in
 * pages. */
void umemPoolChunk_note_freed(umemPoolCore *core, uintptr_t adr, uint64_t units);

/* From where on the block at adr, which is new, is zero, if it is in a chunk; UINTPTR_MAX if that
 * is not known of any byte of it. */
uintptr_t umemPoolChunk_zero_from(umemPoolCore const *core, uintptr_t adr);

/* Gives chunks back that are all free in the pool's own list, as long as at least keep bytes stay.
 * An attempt must be open. */
void umemPoolChunk_release(umemPoolCore *core, size_t keep);

/* Gives chunks back that are all free in the pool's own list, until nbytes are released, the
 * initial bytes are left, or no chunk is free. As few as possible. An attempt must be open. */
void umemPoolChunk_release_bytes(umemPoolCore *core, uint64_t nbytes);

/* Gives all special chunks back that are free. An attempt must be open. */
void umemPoolChunk_release_special(umemPoolCore *core);

/* Describes the chunk with the lowest address from `from` on in adr, nbytes and age; if there is
 * none, does nothing. */
void umemPoolChunk_next(umemPoolCore const *core, uintptr_t from, umemPoolRegion *region);

/* Gives all chunks back, with whatever is in them. */
void umemPoolChunk_end_all(umemPoolCore *core);

/* ==== pool_chunk.c: large blocks. Under the lock ==== */

/* Allocates a block that is not part of a span, from the free memory of the list. */
umemPoolResult umemPoolLarge_alloc(umemPoolFreeList *list, size_t size, size_t alignment,
                                   uintptr_t *adr);

/* Frees the block. Returns umemValueError if no such block begins at adr, and umemMemoryError if
 * there is no RAM for the record, which can happen if the block comes from another list. It then
 * changes nothing, and records no failure. */
umemStatusType umemPoolLarge_free(umemPoolFreeList *list, uintptr_t adr);

/* The bytes of the live block that begins at adr; 0 when there is none. */
uint64_t umemPoolLarge_extent(umemPoolCore *core, uintptr_t adr);

/* The live block that contains adr: where it begins, and its bytes; 0 when there is none. */
uint64_t umemPoolLarge_containing(umemPoolCore *core, uintptr_t adr, uintptr_t *start);

/* Frees the ranges of all blocks on the quick lists, so that they join their neighbours. */
void umemPoolLarge_coalesce(umemPoolFreeList *list);

/* ==== pool_block.c: methods for blocks, which pools and views share. Without the lock ==== */

uintptr_t umemPoolBlock_alloc(umemVirtual *ctx, size_t nbytes);
uintptr_t umemPoolBlock_calloc(umemVirtual *ctx, size_t nmemb, size_t size);
uintptr_t umemPoolBlock_aligned_alloc(umemVirtual *ctx, size_t alignment, size_t size);
uintptr_t umemPoolBlock_aligned_origin(umemVirtual *ctx, uintptr_t adr);
uintptr_t umemPoolBlock_realloc(umemVirtual *ctx, uintptr_t adr, size_t old_size, size_t new_size);
void umemPoolBlock_free(umemVirtual *ctx, uintptr_t adr);
umemSearch umemPoolBlock_find(umemVirtual *ctx, uintptr_t adr, umemFound *found);

#define UMEM_POOL_METHODS                                                                          \
  .alloc = umemPoolBlock_alloc, .calloc = umemPoolBlock_calloc, .free = umemPoolBlock_free,        \
  .aligned_alloc = umemPoolBlock_aligned_alloc, .aligned_origin = umemPoolBlock_aligned_origin,    \
  .aligned_free = umemPoolBlock_free, .realloc = umemPoolBlock_realloc,                            \
  .find = umemPoolBlock_find, .upstream = umemAdaptor_upstream_method, .leave = umemAdaptor_leave, \
  UMEM_ADAPTOR_BYTES, UMEM_ADAPTOR_ORDER

/* Frees a block of a small class, which is not live any more, where the calling thread's cache had
 * no room for it at once. Takes the lock. */
void umemPoolBlock_make_room(umemPoolFreeList *list, unsigned class, umemPoolEntry entry);

/* Records why nbytes cannot be allocated. Call this and the functions below without the lock. */
void umemPoolBlock_record_failure(umemVirtual *ctx, umemPoolFailure const *failure, size_t nbytes);

/* Acquires the lock of the pool of ctx, and holds failures back. */
void umemPoolBlock_lock(umemVirtual *ctx, umemAttempt *held);

/* Releases it, and records what was held back. */
void umemPoolBlock_unlock(umemVirtual *ctx, umemAttempt *held);

/* Records failures that were held back under the lock. */
void umemPoolBlock_record_held(umemVirtual *ctx, umemAttempt const *held);

/* Whether the pool of ctx still exists; otherwise records a status. */
bool umemPoolBlock_has_pool(umemVirtual *ctx);

/* ==== pool_report.c: how much a pool has and uses. Under the lock ==== */

/* Fills in all but the label, and what depends on the free ranges. */
void umemPoolReport_measure(umemPoolCore *core, umemPoolStats *stats);

/* The bytes of the largest free range, with all quick lists coalesced. */
uint64_t umemPoolReport_largest_free(umemPoolCore *core);

/* See umemPool_next_region. *region is zero. */
void umemPoolReport_next_region(umemPoolCore *core, uintptr_t from, umemPoolRegion *region);

/* ==== pool_quick.c: small blocks by the calling thread's cache alone ==== */

/* Gives a constructed pool or view its quick functions, unless its addresses are offsets. */
void umemPoolQuick_set(umemVirtual *ctx);

#endif
