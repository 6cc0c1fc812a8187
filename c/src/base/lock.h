/* lock.h - a mutex that survives fork.
 *
 * A child of fork has one thread; a mutex held by another thread of the parent would stay locked in
 * it for ever. Therefore fork waits for all umemLocks, newest first, and releases them on both sides.
 * The rule that makes this safe: a thread that holds a lock takes only older ones (an adaptor
 * is constructed after its upstream), and calls umemLock_init while holding none.
 */
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

/* Acquires lock if nobody holds it. Whether it did. */
bool umemLock_try(umemLock *lock);

/* Waits for condition with lock, as pthread_cond_wait, for a thread that is not cancelled meanwhile. */
void umemLock_wait(umemLock *lock, pthread_cond_t *condition);

/* A lock for the library's few process-wide tables, older than all others: under it no context is
 * called and no lock waited for but malloc's. */
void umemLock_acquire_global(void);
void umemLock_release_global(void);
void umemLock_wait_global(pthread_cond_t *condition); /* as umemLock_wait */

/* How many forks there were from the process that loaded the library to this one. If the number differs from
 * an earlier one, a parent process got that. */
static inline unsigned umem_fork_count(void) {
  extern unsigned umem_forks __attribute__((visibility("hidden")));
  return __atomic_load_n(&umem_forks, __ATOMIC_RELAXED);
}

#endif
