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

#include <pthread.h>

enum { umemSegmentHeader = 4096, umemSegmentVersion = 1, umemSegmentMostBlocks = 1 << 30 };
#define UMEM_SEGMENT_MOST (UINT64_C(1) << 46) /* bytes of data */

/* The kinds of pages, as umemShmPages numbers them. */
typedef enum umemSegmentPages {
  umemSegmentUsual,
  umemSegmentAdvised,
  umemSegment2M,
  umemSegment1G
} umemSegmentPages;

typedef struct umemShmHeader {
  char magic[16];
  uint32_t version;
  uint32_t ready; /* 0: while the segment is made */
  uint32_t blocks;
  uint32_t pages;     /* umemSegmentPages */
  uint32_t lock_size; /* of the libc that has made it */
  uint32_t extent_size;
  uint64_t capacity, total;
  uint64_t id[2]; /* random */
  uint64_t padding[8];
  pthread_mutex_t lock;
  umemShmRoot root;
} umemShmHeader;

/* What the header begins with. */
extern char const umemSegment_magic[16] __attribute__((visibility("hidden")));

/* The bytes of which the data has a multiple. */
uint64_t umemSegment_page(uint32_t pages);

/* Where the data begins. */
uint64_t umemSegment_data(uint32_t blocks, uint32_t pages);

static inline uint64_t umemSegment_round_up(uint64_t number, uint64_t unit) {
  return (number + unit - 1) / unit * unit;
}

/* Makes a lock of processes that survives its owner. Returns 0, or an error. */
int umemSegment_make_lock(pthread_mutex_t *lock);

/* Reads the header of fd, and checks it against the length. Returns NULL, or what is wrong. */
char const *umemSegment_check(int fd, umemShmHeader *header, uint64_t length);

#endif
