/* shm_lock.h - the lock of a segment of shared memory, between threads and processes.
 *
 * Its words are in memory that other processes write. umem compares them, and never follows them: they hold no
 * address, no size and no index. So a process that writes nonsense there can make calls fail, and no more.
 *
 * The holder is a mark of its process (umemShmOwner_mark). A waiter finds out whether that process has ended, and then
 * takes the lock over. It gives up after a limit, in particular if the holder is stopped, or has never had the lock. */
#ifndef UMEM_SHM_LOCK_H
#define UMEM_SHM_LOCK_H

#include "share/segment.h"

typedef enum umemShmLocked {
  umemShmLockTaken,
  umemShmLockInherited, /* taken from a process that has ended: what the lock protects is half changed */
  umemShmLockRefused /* another one has held it up to the limit */
} umemShmLocked;

/* self: the mark of the calling process. fd: a descriptor of the segment. limit: milliseconds to wait. The caller is not
 * cancelled meanwhile. */
umemShmLocked umemShmLock_acquire(umemShmLock *lock, uint64_t self, int fd, uint64_t limit);

/* self: as for umemShmLock_acquire. Leaves a lock alone that the calling process does not hold any more. */
void umemShmLock_release(umemShmLock *lock, uint64_t self);

#endif
