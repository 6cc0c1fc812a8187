/* shm_segment.h - a segment of shared memory: how it is created, opened and checked, and its lock.
 *
 *   a page          the header: what the segment is, the lock, the root of the tables
 *   the extents     64 bytes each
 *   the index
 *   the data        from a multiple of 64 KiB, or of a huge page, to the end
 */
#ifndef UMEM_SHM_SEGMENT_H
#define UMEM_SHM_SEGMENT_H

#include "share/mapped.h"
#include "share/shm_table.h"

#include <pthread.h>
#include <umem/shm.h>

typedef struct umemShmHeader {
  char magic[16];
  uint32_t version;
  uint32_t ready; /* 0: while the segment is made */
  uint32_t blocks;
  uint32_t pages;     /* umemShmPages */
  uint32_t lock_size; /* of the libc that has made it */
  uint32_t extent_size;
  uint64_t capacity, total;
  uint64_t id[2]; /* random */
  uint64_t padding[8];
  pthread_mutex_t lock;
  umemShmRoot root;
} umemShmHeader;

typedef struct umemShmSegment {
  umemMapped *mapped; /* holds one use */
  umemShmHeader *header;
  umemShmTable table;
  uint64_t id[2];
  uint64_t data;      /* where the data begins */
  uint64_t total;     /* bytes */
  char name[256];     /* with "/" before it; "" for none */
  bool created;       /* by this call */
  umemShmPages pages; /* of its memory */
} umemShmSegment;

/* Writes the name for shm_open to text, or records umemValueError. */
bool umemShmSegment_name(umemVirtual *ctx, char const *name, char text[256]);

/* Each records a failure on ctx. */
bool umemShmSegment_open(umemVirtual *ctx, umemShmSegment *segment, char const *name,
                         umemShmOptions const *options);
bool umemShmSegment_create(umemVirtual *ctx, umemShmSegment *segment,
                           umemShmOptions const *options);
bool umemShmSegment_take_over(umemVirtual *ctx, umemShmSegment *segment, int fd);

void umemShmSegment_close(umemShmSegment *segment);

/* The lock of the tables, between threads and processes. After the death of its owner they are repaired. */
bool umemShmSegment_lock(umemVirtual *ctx, umemShmSegment *segment);
void umemShmSegment_unlock(umemShmSegment *segment);

/* Reads the header of fd, and checks it against the length. Returns NULL, or what is wrong. */
char const *umemShmSegment_check(int fd, umemShmHeader *header, uint64_t length);

#endif
