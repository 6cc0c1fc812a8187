/* shm_lock.c - a lock of two words in shared memory, on the kernel's futex.
 *
 * The mark of the holder is written and removed by one instruction. So at any time the word says who has the lock, also
 * if that process is killed. */
#include "share/shm_lock.h"
#include "share/shm_owner.h"
#include "base/number.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

_Static_assert(sizeof(umemShmLock) == 64, "the lock has a line of the cache");

/* Milliseconds between two looks at whether the holder lives; a release wakes a waiter earlier. */
enum { first_nap = 1, longest_nap = 50 };

static bool try(umemShmLock *lock, uint64_t old, uint64_t new) {
  return __atomic_compare_exchange_n(&lock->holder, &old, new, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_RELAXED);
}

static uint64_t milliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* The half of the mark that the kernel compares: the one with the number of the process. */
static uint32_t *half_of(umemShmLock *lock) {
  return (uint32_t *)(void *)&lock->holder + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
}

/* Waits for a release. Whether so many milliseconds have passed without one. */
static bool nap(umemShmLock *lock, uint64_t holder, uint64_t time) {
  struct timespec most = {(time_t)(time / 1000), (long)(time % 1000) * 1000000};
  __atomic_store_n(&lock->waiters, 1, __ATOMIC_SEQ_CST);
  return syscall(SYS_futex, half_of(lock), FUTEX_WAIT, (uint32_t)holder, &most, NULL, 0) != 0 &&
         errno == ETIMEDOUT;
}

/* A release wakes one waiter, and forgets that there are others. So a waiter that gets the lock says again that there
 * may be some. */
static umemShmLocked wait_for(umemShmLock *lock, uint64_t self, int fd, uint64_t limit) {
  uint64_t const begin = milliseconds();
  bool in_vain = false;
  for (uint64_t time = first_nap;; time = umem_lesser(2 * time, longest_nap)) {
    uint64_t holder = __atomic_load_n(&lock->holder, __ATOMIC_RELAXED);
    bool inherits = holder && in_vain && umemShmOwner_is_mark_of_dead(holder, fd);
    if ((!holder || inherits) && try(lock, holder, self)) {
      __atomic_store_n(&lock->waiters, 1, __ATOMIC_RELAXED);
      return inherits ? umemShmLockInherited : umemShmLockTaken;
    }
    uint64_t waited = milliseconds() - begin;
    if (waited >= limit) return umemShmLockRefused;
    in_vain = holder && nap(lock, holder, umem_lesser(time, limit - waited));
  }
}

umemShmLocked umemShmLock_acquire(umemShmLock *lock, uint64_t self, int fd, uint64_t limit) {
  return try(lock, 0, self) ? umemShmLockTaken : wait_for(lock, self, fd, limit);
}

void umemShmLock_release(umemShmLock *lock, uint64_t self) {
  if (!try(lock, self, 0) || !__atomic_load_n(&lock->waiters, __ATOMIC_SEQ_CST)) return;
  __atomic_store_n(&lock->waiters, 0, __ATOMIC_SEQ_CST);
  syscall(SYS_futex, half_of(lock), FUTEX_WAKE, 1, NULL, NULL, 0);
}
