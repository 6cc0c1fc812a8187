/* umem/threads.h - the threads of umem, which do parts of long copies and of the program's loops.
 *
 *     static void scale(void *data, unsigned piece) { ... }
 *     umem_parallel_for(umem_get_parallel_threads(), scale, &array);
 *
 * Several threads may share a long copy, or the pieces of umem_parallel_for. umem starts these
 * threads when it first needs them, never more than umem_set_threads allows, and keeps them;
 * between calls they sleep. While all of them are busy, transfers (see transfer.h) have up to four
 * more. All contexts and all threads of the program share them. No call waits for a thread that is
 * busy: the calling thread then does the work itself. If the system cannot start a thread, umem
 * goes on without it. On a machine with several nodes (NUMA) those that help with a copy through
 * pinned chunks to or from a GPU run on the processors of its node meanwhile, as far as they may.
 *
 * These threads block all signals. They call no code of the program except the methods of its
 * contexts, the functions given to umem_parallel_for and, for umemBlocks, the wait hook. They end
 * when the library is unloaded or the process exits. A child of fork has none of them, and begins
 * with umem_set_threads(1): the calling thread does all the work.
 *
 * All functions may be called from any thread at any time. */
#ifndef UMEM_THREADS_H
#define UMEM_THREADS_H

#include <umem/base.h>

/* The most threads that can be set. */
#define UMEM_MAX_THREADS 1024

/* Sets how many threads umem may use at the same time for one thread of the program, that thread
 * included. 1 is the calling thread alone. 0 is the default: the number of processors on which the
 * process may run, and for copies at most 16. A single copy never uses more than 16. Threads beyond
 * the number end: those that sleep before this call returns, the others after their piece. Returns
 * umemOK, or umemValueError for more than UMEM_MAX_THREADS. */
UMEM_EXTERN umemStatusType umem_set_threads(unsigned count);

/* Returns how many threads umem may use at the same time for the copies of one thread, that thread
 * included: the number that was set, or the default. At least 1. */
UMEM_EXTERN unsigned umem_get_threads(void);

/* Returns how many threads umem_parallel_for may use at the same time, the calling one included:
 * the number that was set, or the default. At least 1. If there are more pieces, the threads do
 * several of them. */
UMEM_EXTERN unsigned umem_get_parallel_threads(void);

/* One piece of the work: piece is 0 ... count - 1, data the pointer given to umem_parallel_for. */
typedef void umemParallelBody(void *data, unsigned piece);

/* Calls body(data, 0) ... body(data, count - 1), each once, and returns when all calls have
 * returned. What the calls have written can then be read. For count 0 it calls nothing.
 *
 * The calling thread does piece 0. Idle threads of umem do the other pieces, in no particular
 * order, and the calling thread does those that no other thread has begun. So a piece must not wait
 * for another piece to begin. With one thread the calling thread does all pieces in their order. To
 * wake a thread takes some microseconds: a piece should last longer.
 *
 * body may call every function of umem, this one too: nested calls share the same threads. umem
 * records a failure in body on its context and in the thread that does the piece; it is not a
 * failure of this call. To pass it to the caller, body can store it in data. pthread_cancel ends no
 * thread in body. No exception of C++, longjmp or pthread_exit may leave body. An exception that
 * leaves it in a thread of umem ends the program. An exception that leaves it in the calling thread
 * leaves this function when the pieces of other threads have returned; the remaining pieces are not
 * done (see doc/concepts/callbacks.rst).
 *
 * If body forks in the calling thread, the child does the remaining pieces, but not those that
 * other threads were doing: the call then returns umemRuntimeError in the child. If body forks in a
 * thread of umem, the child ends when the piece returns.
 *
 * Returns umemOK, umemValueError if body is NULL, or umemRuntimeError as above. Allocates nothing
 * except the threads. */
UMEM_EXTERN umemStatusType umem_parallel_for(unsigned count, umemParallelBody *body, void *data);

#endif
