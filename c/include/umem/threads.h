/* umem/threads.h - the threads of umem: they share long copies, and loops of the program.
 *
 *     static void scale(void *data, unsigned piece) { ... }
 *     umem_parallel_for(umem_get_parallel_threads(), scale, &array);
 *
 * Several threads may share a long copy, or the pieces of umem_parallel_for. umem starts these threads
 * when it first needs them, never more than umem_set_threads allows, and keeps them: between jobs they
 * sleep. All contexts and all threads of the program share them. No call waits for a thread that is busy
 * elsewhere: the calling thread does what no other thread takes. If the system refuses to start a
 * thread, umem goes on without it.
 *
 * These threads block all signals. They call no code of the program but the methods of its contexts and
 * the functions given to umem_parallel_for. They leave when the library is unloaded or the process
 * exits. A child of fork has none of them and begins with the setting 1: the calling thread does
 * everything.
 *
 * All functions may be called from any thread at any time. */
#ifndef UMEM_THREADS_H
#define UMEM_THREADS_H

#include <umem/base.h>

/* The most threads that can be set. */
#define UMEM_MAX_THREADS 1024

/* Sets how many threads umem may use at the same time for one thread of the program, that thread
 * included. 1 is the calling thread alone. 0 is the default: the number of processors that the process
 * may run on, and for copies at most 16, which a single copy never exceeds. Threads beyond the number
 * leave: those that sleep before this returns, the others after the piece that they are doing.
 * Returns umemOK, or umemValueError for more than UMEM_MAX_THREADS. */
UMEM_EXTERN umemStatusType umem_set_threads(unsigned count);

/* How many threads umem may use at the same time for the copies of one thread, that thread included:
 * what was set, or the default. At least 1. */
UMEM_EXTERN unsigned umem_get_threads(void);

/* How many threads umem_parallel_for may use at the same time, the calling one included: what was set, or
 * the default. At least 1. More pieces than this number run one after the other. */
UMEM_EXTERN unsigned umem_get_parallel_threads(void);

/* One piece of the work: piece is 0 ... count - 1, data the pointer given to umem_parallel_for. */
typedef void umemParallelBody(void *data, unsigned piece);

/* Calls body(data, 0) ... body(data, count - 1), each once, and returns when all calls have returned.
 * What the calls have written can then be read. For count 0 it calls nothing.
 *
 * The calling thread does piece 0. Each other piece is done by a thread of umem that is free, or else by
 * the calling thread, in no particular order; so no piece may wait for another one to begin. With one
 * thread the calling thread does all pieces in their order. An idle process needs some microseconds to
 * wake a thread: a piece should last longer.
 *
 * body may call every function of umem, this one too: nested calls share the same threads. A failure in
 * body is recorded on its context and in the thread that does the piece, and is not a failure of this
 * call: body keeps in data what the caller must learn. pthread_cancel ends no thread in body. No exception
 * of C++, longjmp or pthread_exit may leave body. An exception that leaves it in a thread of umem ends the
 * program; in the calling thread it leaves this function when the pieces of other threads have returned,
 * and the remaining pieces are not done (see doc/concepts/callbacks.rst).
 *
 * If body forks, the child of the calling thread does the remaining pieces, but not those that other
 * threads were doing: that is umemRuntimeError in the child. The child of a thread of umem ends when its
 * piece returns.
 *
 * Returns umemOK, umemValueError if body is NULL, or umemRuntimeError as above. Allocates nothing but the
 * threads. */
UMEM_EXTERN umemStatusType umem_parallel_for(unsigned count, umemParallelBody *body, void *data);

#endif
