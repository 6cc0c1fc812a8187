/* fixed_store.h - chunks of an upstream, cut into blocks of one size.
 *
 * Free blocks are a stack (R. K. Treiber: "Systems Programming: Coping with Parallelism", IBM RJ
 * 5118, 1986) of their numbers. Its head is one word: the number of the uppermost block, and a tag
 * that every change counts up, so that a thread which was overtaken notices. For each block there
 * is a link: the number of the block below it in the stack, or that it is live, and how aligned.
 * Whoever changes a link from live owns the block, so that of two threads that free one block, one
 * is refused.
 *
 * Threads: take and put need no lock. The lock guards the set of chunks, and is open while the
 * upstream is asked for one, since that may call functions of the program (umemRetry): these may
 * use the store. Other threads that lack a block wait meanwhile, and look again. Descriptors of
 * chunks and outgrown tables stay until the end, since an overtaken thread may be looking at them.
 * A chunk begins at a page of the map, and no other chunk shares one with it. */
#ifndef UMEM_FIXED_STORE_H
#define UMEM_FIXED_STORE_H

#include "core/core.h"
#include "base/lock.h"
#include "base/page_map.h"

typedef struct umemFixedChunk {
  struct umemFixedChunk *older;       /* in the order of creation; constant */
  struct umemFixedChunk *next_unused; /* under the lock */
  uintptr_t adr;                      /* atomic; changes under the lock */
  bool held;                          /* is there now; under the lock */
  uint32_t first, count;              /* numbers of blocks; constant */
  uint32_t free_count;                /* while they are counted, under the lock */
  uint32_t links[];                   /* atomic */
} umemFixedChunk;

/* From blocks' numbers to chunks: a slot for each 2^shift numbers. A chunk has one or more. */
typedef struct umemFixedTable {
  struct umemFixedTable *older; /* the one that this has outgrown; owned */
  size_t room;
  umemFixedChunk *chunks[]; /* owned by the store */
} umemFixedTable;

typedef enum umemFixedWhy {
  umemFixedUpstream,
  umemFixedMaximum,
  umemFixedNumbers,
  umemFixedBooks
} umemFixedWhy;

/* Why there is no block. */
typedef struct umemFixedLack {
  umemFixedWhy why;
  umemAttempt attempt; /* umemFixedUpstream: what it said */
} umemFixedLack;

/* The thread that asks the upstream for a chunk, with the lock open. */
typedef struct umemFixedGrowth {
  bool running;
  pthread_t thread;
  uint64_t blocks; /* asked for, also by calls of this thread around the last one */
} umemFixedGrowth;

/* Must not move: it holds a lock. */
typedef struct umemFixedStore {
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
  umemFixedGrowth growth; /* under the lock */
  pthread_cond_t grown;   /* growth has ended */
  unsigned lineage;       /* umem_fork_count() to which growth and grown belong */
  uint32_t next_count;    /* blocks to ask for next; per_chunk unless that was refused */
  umemFixedChunk *unused; /* descriptors */
  umemFixedChunk *newest; /* of all descriptors; owned */
  size_t slot_count;      /* of the table, in use */
  uint64_t held_chunks, held_blocks, held_peak;
} umemFixedStore;

/* For a store whose members above map are set and whose others are zero. False, with nothing to
 * release, without memory. */
bool umemFixedStore_init(umemFixedStore *store);

/* Gives all chunks back, whatever is in them. */
void umemFixedStore_fini(umemFixedStore *store);

/* The most bytes of a block that lie before its first multiple of alignment. */
size_t umemFixedStore_pad(umemFixedStore const *store, size_t alignment);

/* Takes a block, and returns its first address, within it, that is a multiple of 2^shift. The
 * upstream's null, and why in *lack, where there is none. */
uintptr_t umemFixedStore_take(umemFixedStore *store, unsigned shift, umemFixedLack *lack);

/* Takes back the live block that was given out as adr; false, with nothing changed, where none
 * was. */
bool umemFixedStore_put(umemFixedStore *store, uintptr_t adr);

/* How many blocks are live, about, while other threads take and put. Under the lock. A look at each
 * block: what counted them at each call would be one more thing that threads meet at. */
uint64_t umemFixedStore_count(umemFixedStore *store);

/* Whether a live block was given out as adr; then where it begins. */
bool umemFixedStore_find(umemFixedStore *store, uintptr_t adr, uintptr_t *start);

/* Takes count blocks in one chunk, of a store that nobody else knows. False, and why in *lack,
 * without memory. */
bool umemFixedStore_reserve(umemFixedStore *store, uint64_t count, umemFixedLack *lack);

/* Gives chunks in which no block is live back as long as no less than keep bytes stay. Failures go
 * to *held, an attempt that is open meanwhile. */
void umemFixedStore_trim(umemFixedStore *store, size_t keep, umemAttempt *held);

#endif
