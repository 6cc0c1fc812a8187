/* segment.h - what a segment of shared memory is made of:
 *
 *   a page          the header: what the segment is, the lock, the root of the tables
 *   the extents     64 bytes each
 *   the index
 *   the data        from a multiple of 64 KiB, or of a huge page, to the end
 */
#ifndef UMEM_SEGMENT_H
#define UMEM_SEGMENT_H

#include "share/segment_table.h"

#include <sys/stat.h>
#include <umem/handle.h>

enum { umemSegmentHeader = 4096, umemSegmentVersion = 2, umemSegmentMostBlocks = 1 << 30 };
#define UMEM_SEGMENT_MOST (UINT64_C(1) << 46) /* bytes of data */

/* The kinds of pages, as umemShmPages numbers them. */
typedef enum umemSegmentPages {
  umemSegmentUsual,
  umemSegmentAdvised,
  umemSegment2M,
  umemSegment1G
} umemSegmentPages;

/* Only shm_lock.c reads and writes it. */
typedef struct umemShmLock {
  uint64_t holder;  /* the mark of the process that has the lock; 0: nobody has it */
  uint32_t waiters; /* 1: somebody may wait */
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

/* Whether a process that trusts these users may use the segment in this file: its words are the work of all who may
 * write it. st: of the open descriptor, since a path can lead elsewhere by then. Returns NULL, or what speaks against
 * it. */
char const *umemSegment_distrust(struct stat const *st, umemTrust trust);

/* Reads the header of fd, and checks it against the length. Returns NULL, or what is wrong. */
char const *umemSegment_check(int fd, umemShmHeader *header, uint64_t length);

/* Whether the bytes of a handle are in the data of a segment with this number, and not in its lock and tables. data:
 * where the data begins. total: bytes of the segment. Every consumer of a handle asks this. Returns NULL, or what is
 * wrong. */
char const *umemSegment_check_handle(umemHandle const *handle, uint64_t const id[2], uint64_t data,
                                     uint64_t total);

#endif
