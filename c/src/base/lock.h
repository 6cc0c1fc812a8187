/* lock.h - mutexes that survive fork, and fences in all threads.
 *
 * A child of fork has one thread; a mutex held by another thread of the parent would stay locked in
 * it for ever. Therefore fork waits for all umemLocks, newest first, and releases them on both
 * sides. The rule that makes this safe: a thread that holds a lock takes only older ones (an
 * adaptor is constructed after its upstream), and calls umemLock_init while holding none. */
#ifndef UMEM_LOCK_H
#define UMEM_LOCK_H

#include <pthread.h>
#include <stdbool.h>

typedef struct umemLock {
  pthread_mutex_t mutex;
  struct umemLock *older, *newer;
} umemLock;

void umemLock_init(umemLock *lock);    /* the lock must not move afterwards */
void umemLock_destroy(umemLock *lock); /* unlocked */

void umemLock_acquire(umemLock *lock);
void umemLock_release(umemLock *lock);

/* Acquires lock if it is free. Whether it did. */
bool umemLock_try(umemLock *lock);

/* Waits for condition with lock, as pthread_cond_wait, for a thread that is not cancelled
 * meanwhile. */
void umemLock_wait(umemLock *lock, pthread_cond_t *condition);

/* A lock for the library's few process-wide tables, older than all others: under it no context is
 * called and no lock waited for but malloc's. */
void umemLock_acquire_global(void);
void umemLock_release_global(void);
void umemLock_wait_global(pthread_cond_t *condition); /* as umemLock_wait */

/* How many forks there were from the process that loaded the library to this one. If the number
 * differs from an earlier one, a parent process got that. */
static inline unsigned umem_fork_count(void) {
  extern unsigned umem_forks __attribute__((visibility("hidden")));
  return __atomic_load_n(&umem_forks, __ATOMIC_RELAXED);
}

/* ==== fences in all threads at once, for pairs of threads of which one goes by far more often ====
 *
 * Where each of two threads writes one variable and then reads that of the other, both need a fence
 * between, or each may miss what the other has written. With this function the one that goes rarely
 * fences both: the other needs only to keep the compiler from changing the order (D. Dice, H.
 * Huang, M. Yang: "Asymmetric Dekker Synchronization", 2001; Linux: membarrier(2)). */

/* Returns true when all threads of the process have passed a full memory fence since the call.
 * It takes some microseconds, and the first one of a process up to some milliseconds. Returns
 * false where the system cannot do this: before Linux 4.14, or where a filter of system calls
 * forbids it. */
bool umem_fence_threads(void);

#endif
