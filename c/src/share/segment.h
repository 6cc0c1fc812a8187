/* segment.h - a segment of shared memory: its tables, its layout, and whether a file is one.
 *
 *   a page          the header: what the segment is, the lock, the root of the tables
 *   the extents     64 bytes each
 *   the index
 *   the data        from a multiple of 64 KiB, or of a huge page, to the end
 *
 * The tables survive a process killed at any instruction. Extents cut the data of the segment into
 * pieces, live or free. What is true is in the records of live extents alone: their offset, size
 * and owner. A block begins and ends by one store, to the state of its extent; its size changes by
 * one store. All else (the order, the free extents, their bins, the index) is derived. A process
 * that takes the lock after an owner that died makes the derived part again (umemShmTable_rebuild).
 *
 * All processes that have the segment can write the tables. So every number read from them is
 * checked before it is used, and every walk has an end: damaged tables give umemShmDamaged, never a
 * bad access.
 *
 * Threads: the caller holds the lock of the segment. The tables neither allocate nor wait. */
#ifndef UMEM_SEGMENT_H
#define UMEM_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <umem/handle.h>

/* ==== the tables ==== */

enum {
  umemShmGranule = 64, /* bytes: the natural alignment, a line of the processor's cache */
  umemShmBins = 64
};

/* Who has allocated a block; see shm_segment.h. */
typedef struct umemShmOwner {
  uint64_t process; /* its number and when it started; 0 for none */
  uint32_t space;   /* in which its number holds; 0 for unknown */
} umemShmOwner;

/* A number of an extent is its index plus 1; 0 is none. */
typedef struct umemShmExtent {
  uint64_t offset; /* from the beginning of the data */
  uint64_t size;   /* live: the bytes that were asked for; free: a multiple of the granule */
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

/* Makes everything that is derived from the live extents. An area of zeros is an empty table. False
 * if the live extents overlap, or lie outside of the data: then the table is damaged for good. */
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

/* The block that holds the byte at offset. */
umemShmResult umemShmTable_holder(umemShmTable *table, uint64_t offset, umemShmEntry *entry);

/* ==== the layout, and who may use it ==== */

enum { umemSegmentHeader = 4096, umemSegmentVersion = 2, umemSegmentMostBlocks = 1 << 30 };
#define UMEM_SEGMENT_MOST (UINT64_C(1) << 46) /* bytes of data */

/* The kinds of pages, as umemShmPages numbers them. */
typedef enum umemSegmentPages {
  umemSegmentUsual,
  umemSegmentAdvised,
  umemSegment2M,
  umemSegment1G
} umemSegmentPages;

/* Only shm_segment.c reads and writes it. */
typedef struct umemShmLock {
  uint64_t holder;  /* the mark of the process that has the lock; 0: it is free */
  uint32_t waiters; /* 1: a process may wait */
  uint32_t spare[13];
} umemShmLock;

typedef struct umemShmHeader {
  char magic[16];
  uint32_t version;
  uint32_t ready; /* 0: while the segment is made */
  uint32_t blocks;
  uint32_t pages; /* umemSegmentPages */
  uint32_t lock_size;
  uint32_t extent_size;
  uint64_t capacity, total;
  uint64_t id[2]; /* random */
  uint64_t padding[7];
  umemShmLock lock;
  umemShmRoot root;
} umemShmHeader;

/* What the header begins with. */
extern char const umemSegment_magic[16] __attribute__((visibility("hidden")));

/* The bytes of which the data has a multiple. */
uint64_t umemSegment_page(uint32_t pages);

/* Where the tables end. */
uint64_t umemSegment_tables(uint32_t blocks);

/* Where the data begins. */
uint64_t umemSegment_data(uint32_t blocks, uint32_t pages);

static inline uint64_t umemSegment_round_up(uint64_t number, uint64_t unit) {
  return (number + unit - 1) / unit * unit;
}

/* Whether a process that trusts these users may use the segment in this file: its words are the
 * work of all who may write it. st: of the open descriptor, since a path can lead elsewhere by
 * then. Returns NULL, or what speaks against it. */
char const *umemSegment_distrust(struct stat const *st, umemTrust trust);

/* Reads the header of fd, and checks it against the length. Returns NULL, or what is wrong. */
char const *umemSegment_check(int fd, umemShmHeader *header, uint64_t length);

/* Whether the bytes of a handle are in the data of a segment with this number, and not in its lock
 * and tables. data: where the data begins. total: bytes of the segment. Every consumer of a handle
 * calls this. Returns NULL, or what is wrong. */
char const *umemSegment_check_handle(umemHandle const *handle, uint64_t const id[2], uint64_t data,
                                     uint64_t total);

#endif
