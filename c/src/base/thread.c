/* thread.c - starts threads, and puts pthread_cancel off while umem runs. The reason:
 *
 * Functions of umem that reach the system (a file, a driver, another thread) hold locks and memory
 * there, and every such call is a point where POSIX may end the thread. Unwinding all of that would
 * have to be right in each context, a user's too. Instead the thread is not cancelled there at all;
 * the request remains pending and acts after umem. Contexts in RAM do not pay for it (umemPrompt):
 * what they call puts it off itself before it reaches such a point. test/fault/core/cancel_points.c
 * finds what forgets that. */
#include "base/thread.h"

#include <signal.h>
#include <stddef.h>

_Thread_local umemThread umem_thread;

/* The member deferred changes last here, and first in umem_end_deferral: a signal handler that
 * comes between finds a thread that has put off nothing, and leaves it as it is. */
void umem_defer_cancel(void) {
  if (umem_thread.deferred || !umem_thread.function) return;
  int before;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE,
                         &before); /* fails for no argument but a wrong one */
  umem_thread.cancel_state = before;
  umem_thread.deferred = true;
}

int umem_thread_start(pthread_t *thread, void *(*work)(void *argument), void *argument) {
  static int const own_faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
  sigset_t all, before;
  sigfillset(&all);
  for (size_t i = 0; i < sizeof own_faults / sizeof *own_faults; i++)
    sigdelset(&all, own_faults[i]);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = pthread_create(thread, NULL, work, argument);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return error;
}
