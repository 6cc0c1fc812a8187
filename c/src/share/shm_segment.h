/* shm_segment.h - a segment of shared memory: how it is created, opened and checked, and its lock. */
#ifndef UMEM_SHM_SEGMENT_H
#define UMEM_SHM_SEGMENT_H

#include "share/mapped.h"
#include "share/segment.h"

#include <umem/shm.h>

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
bool umemShmSegment_take_over(umemVirtual *ctx, umemShmSegment *segment, int fd,
                              umemShmOptions const *options);

void umemShmSegment_close(umemShmSegment *segment);

/* The lock of the tables, between threads and processes. After the death of its owner they are repaired. self: the mark
 * of the calling process. */
bool umemShmSegment_lock(umemVirtual *ctx, umemShmSegment *segment, uint64_t self);
void umemShmSegment_unlock(umemShmSegment *segment, uint64_t self);

#endif
