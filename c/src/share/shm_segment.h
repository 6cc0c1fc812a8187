/* shm_segment.h - a segment of shared memory in this process: how it is created, opened and
 * checked, and its lock. */
#ifndef UMEM_SHM_SEGMENT_H
#define UMEM_SHM_SEGMENT_H

#include "share/process.h"

#include <umem/shm.h>

/* ==== the lock of a segment, between threads and processes ====
 *
 * Its words are in memory that other processes write. umem compares them, and never follows them:
 * they hold no address, no size and no index. So a process that writes nonsense there can make
 * calls fail, and no more.
 *
 * The holder is a mark of its process (umemShmOwner_mark). A waiter finds out whether that process
 * has ended, and then takes the lock over. It gives up after a limit, in particular if the holder
 * is stopped, or has never had the lock. */

typedef enum umemShmLocked {
  umemShmLockTaken,
  umemShmLockInherited, /* from a process that has ended: what it protects is half changed */
  umemShmLockRefused    /* another one has held it up to the limit */
} umemShmLocked;

/* self: the mark of the calling process. fd: a descriptor of the segment. limit: milliseconds to
 * wait. The caller is not cancelled meanwhile. */
umemShmLocked umemShmLock_acquire(umemShmLock *lock, uint64_t self, int fd, uint64_t limit);

/* self: as for umemShmLock_acquire. Leaves a lock alone that the calling process does not hold any
 * more. */
void umemShmLock_release(umemShmLock *lock, uint64_t self);

/* ==== segments ==== */

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

/* The lock of the tables, between threads and processes. After the death of its owner they are
 * repaired. self: the mark of the calling process. */
bool umemShmSegment_lock(umemVirtual *ctx, umemShmSegment *segment, uint64_t self);

/* Fills in what others can know of blocks, of which address, start and pid are an offset from first
 * and the owner. Queries the system, so the lock of a segment is not held. */
void umemShmSegment_describe(umemShmBlock *blocks, size_t count, uintptr_t first);

#endif
