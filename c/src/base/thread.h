/* thread.h - what the library keeps for each thread, how it puts off pthread_cancel, and threads of
 * its own. */
#ifndef UMEM_THREAD_H
#define UMEM_THREAD_H

#include "base/clock.h"

#include <pthread.h>
#include <umem/status.h>
#if defined(__has_include) && __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#endif

struct umemAttempt;
struct umemOpenStep;

/* What every call looks at. It has the default TLS model: with initial-exec all thread variables of
 * the library, its texts too, would need room in static TLS, and dlopen of it would fail. */
typedef struct umemThread {
  char const *function; /* the outermost public function that is running: stands before messages */
  void const *caller;   /* where that returns to: the program's code */
  uint64_t failures;    /* recorded or held in the life of the thread */
  umemStatusType last;  /* type of the last of them */
  struct umemAttempt *attempt; /* the innermost open one */
  unsigned
      sharers; /* threads that copy side by side, this one included, and share the workers; 0 or 1: alone */
  bool in_hook;
  bool apart;       /* see umem_wait_apart in core/order.h */
  bool in_texts;    /* holds the global lock for a text: a signal handler must not wait for it */
  bool deferred;    /* the outermost function has put off cancellation */
  int cancel_state; /* what that was before */
  uint32_t
      number; /* in the system, when a log has asked for it in the process that has forked so often; or 0 */
  unsigned number_forks;
  struct umemOpenStep
      *step; /* the innermost open one of a copy that is watched (watch/watch.h), or NULL */
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
 * thread: a thread that ended inside of umem would leave locks held, and its stack to helpers that
 * still use it. Does nothing where no function is running. */
void umem_defer_cancel(void);

/* Starts a thread that runs work(argument), with all signals blocked but those of its own faults:
 * the program's signal handlers must not run in threads that it did not start. Returns 0, or an
 * error as of pthread_create. */
int umem_thread_start(pthread_t *thread, void *(*work)(void *argument), void *argument);

#endif
