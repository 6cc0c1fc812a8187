/* fixed_free_list.h - the free blocks of one size, and the chunks of an upstream that they are cut
 * from.
 *
 * The numbers of free blocks are in a stack (R. K. Treiber: "Systems Programming: Coping with
 * Parallelism", IBM RJ 5118, 1986). Its head is one word: the number of the uppermost block, and a
 * tag that every change increments, so that a thread notices if another one was faster. Each block
 * has a link: the number of the block below it in the stack, or a mark that the block is live, with
 * its alignment. The thread that changes a link from live to free owns the block. So if two threads
 * free one block, one of them fails.
 *
 * Threads: take and put need no lock. The lock protects the set of chunks. It is released while the
 * upstream allocates a chunk; other threads that find no block wait for this chunk if they may
 * (growth.h). Descriptors of chunks, and old tables, stay until the end, because a slower thread
 * may be reading them. A chunk begins at a page of the page map, and shares no page with another
 * chunk. */
#ifndef UMEM_FIXED_FREE_LIST_H
#define UMEM_FIXED_FREE_LIST_H

#include <umem/base.h>

#include "base/table.h"
#include "pool/growth.h"

typedef struct umemFixedChunk {
  struct umemFixedChunk *older;       /* in the order of creation; constant */
  struct umemFixedChunk *next_unused; /* under the lock */
  uintptr_t adr;                      /* atomic; changes under the lock */
  bool held;                          /* not given back; under the lock */
  unsigned generation;                /* of the process that has taken it; constant */
  uint32_t first, count;              /* numbers of blocks; constant */
  uint32_t free_count;                /* while they are counted, under the lock */
  uint32_t links[];                   /* atomic */
} umemFixedChunk;

/* From blocks' numbers to chunks: a slot for each 2^shift numbers. A chunk has one or more. */
typedef struct umemFixedTable {
  struct umemFixedTable *older; /* the smaller table that this one has replaced; owned */
  size_t room;
  umemFixedChunk *chunks[]; /* owned by the list */
} umemFixedTable;

typedef enum umemFixedReason {
  umemFixedUpstreamFailed,
  umemFixedAtMaximum,
  umemFixedNoNumbers,
  umemFixedNoRecords
} umemFixedReason;

/* Why there is no block. */
typedef struct umemFixedFailure {
  umemFixedReason reason;
  umemAttempt attempt; /* umemFixedUpstreamFailed: what was recorded */
} umemFixedFailure;

/* Must not move: it holds a lock. */
typedef struct umemFixedFreeList {
  umemVirtual *upstream; /* borrowed */
  size_t block_size;     /* a multiple of alignment */
  size_t alignment;
  size_t maximum;     /* bytes; SIZE_MAX for no bound */
  uint32_t per_chunk; /* blocks of a chunk */
  unsigned shift; /* a chunk takes up multiples of 2^shift numbers, which are per_chunk at least */
  umemPageMap map;
  umemFixedTable *table; /* atomic; owned */
  uint64_t head;         /* atomic */
  umemLock lock;
  umemGrowth growth; /* requests to the upstream, in blocks */
  uint32_t
      next_count; /* blocks of the next request; per_chunk, or less after the upstream has failed */
  umemFixedChunk *unused; /* descriptors */
  umemFixedChunk *newest; /* of all descriptors; owned */
  size_t slot_count;      /* of the table, in use */
  uint64_t held_chunks, held_blocks, held_peak;
} umemFixedFreeList;

/* For a list whose members above map are set and whose other members are zero. Returns false, with
 * nothing to release, if it is out of memory. */
bool umemFixedFreeList_init(umemFixedFreeList *list);

/* Gives all chunks back, with whatever is in them. */
void umemFixedFreeList_fini(umemFixedFreeList *list);

/* The most bytes that a block can have before its first multiple of alignment. */
size_t umemFixedFreeList_pad(umemFixedFreeList const *list, size_t alignment);

/* Takes a block, and returns the first address in it that is a multiple of 2^shift. If there is no
 * block, returns the upstream's null and describes the failure in *failure. */
uintptr_t umemFixedFreeList_take(umemFixedFreeList *list, unsigned shift,
                                 umemFixedFailure *failure);

/* Frees the live block for which take returned adr. Returns false, and changes nothing, if there is
 * none. */
bool umemFixedFreeList_put(umemFixedFreeList *list, uintptr_t adr);

/* Returns how many blocks are live; approximately, while other threads take and put. Under the
 * lock. It reads the link of each block, because a counter would be one more word that all threads
 * change. */
uint64_t umemFixedFreeList_count(umemFixedFreeList *list);

/* Whether take returned adr for a live block. If so, writes to *start where the block begins. */
bool umemFixedFreeList_find(umemFixedFreeList *list, uintptr_t adr, uintptr_t *start);

/* Describes the live block that contains adr: what take returned, and the bytes from there on.
 * Returns false if there is none. */
bool umemFixedFreeList_find_containing(umemFixedFreeList *list, uintptr_t adr, uintptr_t *start,
                                       size_t *nbytes);

/* Allocates a chunk of count blocks, before other threads use the list. If it cannot, returns false
 * and describes the failure in *failure. */
bool umemFixedFreeList_reserve(umemFixedFreeList *list, uint64_t count, umemFixedFailure *failure);

/* Gives back chunks without live blocks, as long as at least keep bytes stay. *held is an open
 * attempt, which holds back the failures. */
void umemFixedFreeList_trim(umemFixedFreeList *list, size_t keep, umemAttempt *held);

#endif
