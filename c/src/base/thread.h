/* thread.h - what the library keeps for each thread, a clock among it, how it puts off
 * pthread_cancel, threads of its own, and locks that survive fork. */
#ifndef UMEM_THREAD_H
#define UMEM_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include <umem/status.h>

/* ==== the clock of a thread: CLOCK_MONOTONIC in less time than clock_gettime takes ====
 *
 * A thread reads the processor's counter, and clock_gettime only every 250 us: between two such
 * readings the time follows from the counter and from its rate, which the thread has measured
 * twice, over 10 ms or more. The rate is a bit too low on purpose, so that the time lags behind by
 * at most some 0.1 us and never has to go back.
 *
 * Only where Linux itself takes the time from that counter (the clock source "tsc" of x86-64):
 * there it has a constant rate and is the same on all processors. Elsewhere, and in a thread that
 * is younger than 20 ms, each call is one of clock_gettime. */

/* Of one thread. All zero is a clock that has not been read. */
typedef struct umemClock {
  uint64_t ticks, ns;             /* the last reading of clock_gettime */
  uint64_t window;                /* ticks for which that serves; 0: the rate is unknown */
  uint64_t rate;                  /* ns for each tick, times 2^32 */
  uint64_t first_ticks, first_ns; /* the reading that the rate is measured from; 0: none yet */
} umemClock;

static inline uint64_t umemClock_read(clockid_t clock) {
  struct timespec t = {0, 0};
  clock_gettime(clock, &t); /* CLOCK_MONOTONIC and CLOCK_REALTIME do not fail */
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Looks once whether the counter can be used. Before that it is not. */
void umemClock_start(void);

#if defined(__x86_64__)

extern bool umem_clock_counts __attribute__((visibility("hidden"))); /* atomic */

/* Reads clock_gettime. since: ticks since the last time. */
uint64_t umemClock_renew(umemClock *clock, uint64_t since);

/* Nanoseconds of CLOCK_MONOTONIC. For one clock they never become less. */
static inline uint64_t umemClock_now(umemClock *clock) {
  if (!__atomic_load_n(&umem_clock_counts, __ATOMIC_RELAXED))
    return umemClock_read(CLOCK_MONOTONIC);
  uint64_t since = __builtin_ia32_rdtsc() - clock->ticks;
  if (__builtin_expect(since < clock->window, 1)) return clock->ns + (since * clock->rate >> 32);
  return umemClock_renew(clock, since);
}

#else

static inline uint64_t umemClock_now(umemClock *clock) {
  (void)clock;
  return umemClock_read(CLOCK_MONOTONIC);
}

#endif

/* ==== what the library keeps for each thread ==== */

#if defined(__has_include) && __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#endif

struct umemAttempt;
struct umemMeter;
struct umemWaiter;
struct umemOpenStep;

/* What every call looks at. It has the default TLS model: with initial-exec all thread variables of
 * the library, its texts too, would need room in static TLS, and dlopen of it would fail. */
typedef struct umemThread {
  char const *function; /* the outermost public function that is running: stands before messages */
  void const *caller;   /* where that returns to: the program's code */
  uint64_t failures;    /* recorded or held in the life of the thread */
  umemStatusType last;  /* type of the last of them */
  struct umemAttempt *attempt; /* the innermost open one */
  /* Threads that copy side by side, this one included, and share the workers; 0 or 1: alone. */
  unsigned sharers;
  /* Of a list that reports how far it is (core/many.c): when whoever copies its runs stops, by
   * CLOCK_MONOTONIC, and whether it has; 0: never. */
  uint64_t until;
  bool stopped;
  bool in_hook;
  bool uncaptured;  /* see umem_wait_uncaptured in core/context.h */
  bool in_texts;    /* holds the global lock for a text: a signal handler must not wait for it */
  bool deferred;    /* the outermost function has put off cancellation */
  int cancel_state; /* what that was before */
  /* In the system, when a log has asked for it in the process that has forked so often; or 0. */
  uint32_t number;
  unsigned number_forks;
  /* the innermost open one of a copy that is watched (watch/watch.h), or NULL */
  struct umemOpenStep *step;
  struct umemMeter *meter;   /* of the copy that reports how far it is (core/threads.h), or NULL */
  struct umemWaiter *waiter; /* of what can be cancelled while it waits (core/threads.h), or NULL */
  umemClock clock;
} umemThread;
extern _Thread_local umemThread umem_thread __attribute__((visibility("hidden")));

/* Whether the process has no other thread, so that no atomic operation is needed. The C library
 * counts them from 2.32 on; without it the answer is no. */
static inline bool umem_is_single_threaded(void) {
#if defined(__has_include) && __has_include(<sys/single_threaded.h>)
  return __libc_single_threaded;
#else
  return false;
#endif
}

/* Until the outermost public function that is running returns, pthread_cancel does not end this
 * thread. Does nothing where no function is running.
 *
 * Functions of umem that reach the system (a file, a driver, another thread) hold locks and memory
 * there, and helpers may use the thread's stack; every such call is a point where POSIX may end the
 * thread. Unwinding all of that would have to be right in each context, a user's too. Instead the
 * thread is not cancelled there at all; the request remains pending and acts after umem. Contexts
 * in RAM do not pay for it (umemPrompt): what they call puts it off itself before it reaches such a
 * point. test/fault/core/cancel_points.c finds what forgets that.
 *
 * The member deferred changes last here, and first in umem_leave: a signal handler that comes
 * between finds a thread that has put off nothing, and leaves it as it is. */
static inline void umem_defer_cancel(void) {
  umemThread *thread = &umem_thread;
  if (thread->deferred || !thread->function) return;
  int before;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before); /* fails for wrong arguments only */
  thread->cancel_state = before;
  thread->deferred = true;
}

/* Starts a thread that runs work(argument), with all signals blocked but those of its own faults:
 * the program's signal handlers must not run in threads that it did not start. Returns 0, or an
 * error as of pthread_create. */
int umem_thread_start(pthread_t *thread, void *(*work)(void *argument), void *argument);

/* ==== lists, newest first, by the members newer and older of what is in them ==== */

#define UMEM_LIST_ADD(newest, entry)                                                               \
  do {                                                                                             \
    (entry)->newer = NULL;                                                                         \
    (entry)->older = (newest);                                                                     \
    if (newest) (newest)->newer = (entry);                                                         \
    (newest) = (entry);                                                                            \
  } while (0)

#define UMEM_LIST_REMOVE(newest, entry)                                                            \
  do {                                                                                             \
    *((entry)->newer ? &(entry)->newer->older : &(newest)) = (entry)->older;                       \
    if ((entry)->older) (entry)->older->newer = (entry)->newer;                                    \
  } while (0)

/* ==== locks that survive fork ====
 *
 * A child of fork has one thread; a mutex held by another thread of the parent would stay locked in
 * it for ever. Therefore fork waits for all umemLocks, newest first, and releases them on both
 * sides. The rule that makes this safe: a thread that holds a lock takes only older ones (an
 * adaptor is constructed after its upstream), and calls umemLock_init while holding none. */

typedef struct umemLock {
  pthread_mutex_t mutex;
  struct umemLock *older, *newer;
} umemLock;

void umemLock_init(umemLock *lock);    /* the lock must not move afterwards */
void umemLock_destroy(umemLock *lock); /* unlocked */

/* These mutexes are of the default kind, initialised and never taken twice: locking cannot fail. */
static inline void umemLock_acquire(umemLock *lock) { pthread_mutex_lock(&lock->mutex); }
static inline void umemLock_release(umemLock *lock) { pthread_mutex_unlock(&lock->mutex); }

/* Acquires lock if it is free. Whether it did. */
static inline bool umemLock_try(umemLock *lock) { return pthread_mutex_trylock(&lock->mutex) == 0; }

/* Holds lock from here to the end of the block of code: also where that returns. */
#define UMEM_LOCKED(lock)                                                                          \
  __attribute__((cleanup(umemLock_end), unused)) umemLock *const umem_locked_ = umemLock_begin(lock)
static inline umemLock *umemLock_begin(umemLock *lock) {
  pthread_mutex_lock(&lock->mutex);
  return lock;
}
static inline void umemLock_end(umemLock *const *lock) { pthread_mutex_unlock(&(*lock)->mutex); }

/* Waits for condition with lock, as pthread_cond_wait, for a thread that is not cancelled
 * meanwhile. */
void umemLock_wait(umemLock *lock, pthread_cond_t *condition);

/* As umemLock_wait, at most until this time of CLOCK_MONOTONIC, in ns. */
void umemLock_wait_until(umemLock *lock, pthread_cond_t *condition, uint64_t deadline);
void umemLock_init_timed(pthread_cond_t *condition); /* one for umemLock_wait_until */

/* A lock for the library's few process-wide tables, older than all others: under it no context is
 * called and no lock waited for but malloc's. */
extern umemLock umem_global_lock __attribute__((visibility("hidden")));

/* Defines a mutex that fork does not wait for, since what is called under it may fork itself, as
 * drivers do that load modules. In a child it is open. */
#define UMEM_FORKING_LOCK(lock)                                                                    \
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;                                         \
  static void renew_##lock(void) { pthread_mutex_init(&lock, NULL); }                              \
  __attribute__((constructor(101))) static void watch_fork_for_##lock(void) {                      \
    pthread_atfork(NULL, NULL, renew_##lock);                                                      \
  }

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
