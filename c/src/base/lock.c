/* lock.c - mutexes that survive fork, and fences. All locks form a list, newest first; its own
 * mutex is `list_mutex`. */
#include "base/lock.h"
#include "base/thread.h"

#include <sys/syscall.h>
#include <unistd.h>

static pthread_mutex_t list_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t global_mutex = PTHREAD_MUTEX_INITIALIZER;
static umemLock *newest;
unsigned umem_forks; /* atomic */

static void before_fork(void) {
  pthread_mutex_lock(&list_mutex);
  for (umemLock *lock = newest; lock; lock = lock->older) pthread_mutex_lock(&lock->mutex);
  pthread_mutex_lock(&global_mutex);
}

static void after_fork(void) {
  pthread_mutex_unlock(&global_mutex);
  for (umemLock *lock = newest; lock; lock = lock->older) pthread_mutex_unlock(&lock->mutex);
  pthread_mutex_unlock(&list_mutex);
}

static void after_fork_in_child(void) {
  __atomic_fetch_add(&umem_forks, 1, __ATOMIC_RELAXED);
  after_fork();
}

/* At load time rather than on first use: registering allocates, and a library without it would only
 * fail in a forked child. Before the constructors of the program, into which this may be linked. */
__attribute__((constructor(101))) static void watch_fork(void) {
  pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

void umemLock_init(umemLock *lock) {
  pthread_mutex_init(&lock->mutex, NULL);
  pthread_mutex_lock(&list_mutex);
  lock->newer = NULL;
  lock->older = newest;
  if (newest) newest->newer = lock;
  newest = lock;
  pthread_mutex_unlock(&list_mutex);
}

void umemLock_destroy(umemLock *lock) {
  pthread_mutex_lock(&list_mutex);
  if (lock->newer)
    lock->newer->older = lock->older;
  else
    newest = lock->older;
  if (lock->older) lock->older->newer = lock->newer;
  pthread_mutex_unlock(&list_mutex);
  pthread_mutex_destroy(&lock->mutex);
}

/* These mutexes are of the default kind, initialised and never taken twice: locking cannot fail. */
void umemLock_acquire(umemLock *lock) { pthread_mutex_lock(&lock->mutex); }
void umemLock_release(umemLock *lock) { pthread_mutex_unlock(&lock->mutex); }
bool umemLock_try(umemLock *lock) { return pthread_mutex_trylock(&lock->mutex) == 0; }
void umemLock_wait(umemLock *lock, pthread_cond_t *condition) {
  umem_defer_cancel();
  pthread_cond_wait(condition, &lock->mutex);
}
void umemLock_acquire_global(void) { pthread_mutex_lock(&global_mutex); }
void umemLock_release_global(void) { pthread_mutex_unlock(&global_mutex); }
void umemLock_wait_global(pthread_cond_t *condition) {
  umem_defer_cancel();
  pthread_cond_wait(condition, &global_mutex);
}

/* ==== fences ==== */

#ifdef SYS_membarrier

/* MEMBARRIER_CMD_PRIVATE_EXPEDITED, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED */
enum { fence_command = 1 << 3, register_command = 1 << 4 };

static bool command(int which) { return syscall(SYS_membarrier, which, 0, 0) == 0; }

bool umem_fence_threads(void) {
  if (umem_is_single_threaded()) return true;
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  return command(fence_command) || (command(register_command) && command(fence_command));
}

#else

bool umem_fence_threads(void) { return umem_is_single_threaded(); }

#endif
