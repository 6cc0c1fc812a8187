/* segment_table.h - which bytes of a shared segment are whose: tables that survive a process killed at any instruction.
 *
 * Extents cut the data of the segment into pieces, live or free. What is true is in the records of live extents alone:
 * their offset, size and owner. A block begins and ends by one store, to the state of its extent; its size changes by
 * one store. All else (the order, the free extents, their bins, the index) is derived. A process that takes the lock
 * after an owner that died makes the derived part again (umemShmTable_rebuild).
 *
 * All processes that have the segment can write the tables. So every number read from them is checked before it is
 * used, and every walk has an end: damaged tables give umemShmDamaged, never a bad access.
 *
 * Threads: the caller holds the lock of the segment. Nothing here allocates or waits. */
#ifndef UMEM_SEGMENT_TABLE_H
#define UMEM_SEGMENT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  umemShmGranule = 64, /* bytes: the natural alignment, a line of the processor's cache */
  umemShmBins = 64
};

/* Who has allocated a block; see shm_owner.h. */
typedef struct umemShmOwner {
  uint64_t process; /* its number and when it started; 0 for none */
  uint32_t space;   /* in which its number holds; 0 for unknown */
} umemShmOwner;

/* A number of an extent is its index plus 1; 0 is none. */
typedef struct umemShmExtent {
  uint64_t offset; /* from the beginning of the data */
  uint64_t
      size; /* of a live one the bytes that were asked for; of a free one a multiple of the granule */
  uint64_t process;
  uint32_t space;
  uint32_t state;
  uint32_t before, after; /* in the order of offsets; after also links unused ones */
  uint32_t left, right;   /* free: in the bin; live: right links those of one hash */
  uint32_t spare[4];
} umemShmExtent;

typedef struct umemShmRoot {
  uint64_t live, bytes; /* blocks and their bytes, rounded up to granules */
  uint64_t damaged;
  uint64_t full; /* a bit for each bin that has extents */
  uint32_t first, unused;
  uint32_t bins[umemShmBins];
} umemShmRoot;

typedef struct umemShmTable {
  umemShmRoot *root;
  umemShmExtent *extents;
  uint32_t *heads; /* of the index: a power of two of them */
  uint32_t count, blocks, head_mask;
  uint64_t capacity; /* bytes of data: a multiple of the granule */
  uint64_t origin; /* where the data begins in memory, up to a multiple of the largest alignment */
} umemShmTable;

typedef enum umemShmResult {
  umemShmOK = 0,
  umemShmNoRoom,  /* for so many bytes */
  umemShmNoEntry, /* the table is full */
  umemShmNoBlock, /* there is none at this offset */
  umemShmDamaged
} umemShmResult;

/* For at most so many blocks: how many extents and heads the table has. */
static inline uint32_t umemShmTable_count(uint32_t blocks) { return 2 * blocks + 2; }
uint32_t umemShmTable_heads(uint32_t blocks);

/* Makes everything that is derived from the live extents. An area of zeros is an empty table. False if the live
 * extents overlap, or lie outside of the data: then the table is damaged for good. */
bool umemShmTable_rebuild(umemShmTable *table);

/* complete: whether others may take the bytes for whole. */
umemShmResult umemShmTable_alloc(umemShmTable *table, uint64_t size, uint64_t alignment,
                                 umemShmOwner owner, bool complete, uint64_t *offset);
umemShmResult umemShmTable_free(umemShmTable *table, uint64_t offset);

/* Changes the size of a block in place; umemShmNoRoom if what follows is not free. */
umemShmResult umemShmTable_resize(umemShmTable *table, uint64_t offset, uint64_t size);

/* The block that begins at offset. */
umemShmResult umemShmTable_find(umemShmTable *table, uint64_t offset, uint64_t *size,
                                umemShmOwner *owner);

/* Makes owner that of the block. */
umemShmResult umemShmTable_own(umemShmTable *table, uint64_t offset, umemShmOwner owner);

/* Says that the bytes of a block are all written. */
umemShmResult umemShmTable_complete(umemShmTable *table, uint64_t offset);

/* A live block. */
typedef struct umemShmEntry {
  uint64_t offset, size;
  umemShmOwner owner;
  bool complete;
} umemShmEntry;

/* Walks over the blocks by their numbers: *at is 0 at first. False at the end. */
bool umemShmTable_next(umemShmTable *table, uint32_t *at, umemShmEntry *entry);

#endif
