/* umem/threads.h - the threads that umem itself uses for long copies.
 *
 * Several threads may share a long copy. umem starts them when it first needs them, never more than these
 * functions allow, and keeps them: between copies they sleep. All contexts and all threads of the program share
 * them. A copy never waits for a thread that is busy elsewhere: the calling thread does what no other takes. If
 * the system refuses a thread, umem works with those that it has.
 *
 * They block all signals, call no code of the program but the methods of its contexts, and leave when
 * the library is unloaded or the process exits. A child of fork has none of them and begins with the
 * setting 1: everything in the calling thread.
 *
 * Both functions may be called from any thread at any time. */
#ifndef UMEM_THREADS_H
#define UMEM_THREADS_H

#include <umem/base.h>

/* The most threads that one copy can use. */
#define UMEM_MAX_THREADS 16

/* Sets how many threads umem may use at the same time for the copies of one thread, that thread
 * included: 1 is the calling thread alone, and 0 the default, which is the number of processors that
 * the process may run on, at most 8. Threads beyond that number end: those that sleep before this
 * returns, the others after the piece that they work on.
 * Returns umemOK, or umemValueError for more than UMEM_MAX_THREADS. */
UMEM_EXTERN umemStatusType umem_set_threads(unsigned count);

/* How many threads umem may use at the same time for the copies of one thread, that thread included:
 * what was set, or the default. At least 1. */
UMEM_EXTERN unsigned umem_get_threads(void);

#endif
