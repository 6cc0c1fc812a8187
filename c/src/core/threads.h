/* threads.h - one job done in several pieces at the same time, and how far it is.
 *
 * All jobs of the process share the threads that help: see umem/threads.h. */
#ifndef UMEM_CORE_THREADS_H
#define UMEM_CORE_THREADS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <umem/base.h>

#include "base/thread.h"

enum {
  umemParallelMost = 16,         /* pieces of a copy */
  umemParallelThreadsMost = 1024 /* threads, the calling one included */
};

typedef void umemPiece(void *job, unsigned piece);

/* How many pieces of at least least bytes a job of size bytes should be done in: 1 to most, and
 * not more than umem_parallel_threads(), or than this thread's part of them (see sharers in
 * base/thread.h). */
unsigned umem_parallel_pieces(size_t size, size_t least, unsigned most);

/* Calls work(data, 0) ... work(data, pieces - 1) and returns when all calls have returned. The
 * calling thread does piece 0. Each other piece is done by a helper that is free, or else by the
 * calling thread. So no piece may wait for another one to begin. pieces > 0; work may call
 * umem_parallel. A failure that a piece records becomes the caller's failure; of several, that of
 * the lowest piece.
 *
 * If work forks, the child goes on with the unclaimed pieces; the pieces that other threads were
 * doing have failed in the child. The child of a helper ends with its piece.
 *
 * An exception of C++ may leave a piece in the calling thread: it leaves umem_parallel when the
 * helpers have returned, and unclaimed pieces are not done. */
void umem_parallel(unsigned pieces, umemPiece *work, void *data);

/* umem_parallel by up to umem_parallel_loop_threads() threads. */
void umem_parallel_loop(unsigned pieces, umemPiece *work, void *data);

/* What umem_set_threads and umem_get_threads do; count is 0 ... umemParallelThreadsMost. */
void umem_parallel_set(unsigned count);
unsigned umem_parallel_threads(void);

/* How many threads a loop of the program may use: what was set, or all processors. */
unsigned umem_parallel_loop_threads(void);

/* How many workers there may be for umem_parallel_background, which no calling thread helps. */
unsigned umem_parallel_workers(void);

/* Lets a worker call work() once, which goes on without a caller, and may use umem_parallel. If the
 * worker gets no thread variables, it calls lost() instead, which must use none. Returns false if
 * there is no worker and none can be started: neither is called then. No other lock may be held. */
bool umem_parallel_background(void (*work)(void), void (*lost)(void));

/* Whether the calling thread, which umem has started, has its thread variables. Call it before
 * the thread uses the first one, and end the thread if they cannot be had: glibc would end the
 * process. No other lock may be held. */
bool umem_worker_has_data(void);

/* ==== runs that report how far they are while they are copied ====
 *
 * watch/progress.c puts a meter into umem_thread.meter, and copies the first piece of a run. A
 * method that is asked for this very piece, and that copies long runs in pieces of its own, takes
 * the meter: it copies all of the run, notes what has arrived, and begins no piece when the meter
 * is over. So nothing is cut that threads share. What no method takes is copied piece by piece. */

enum { umemMeterRanges = 2 * umemParallelMost };

typedef struct umemMeter {
  umemVirtual *src, *dst;
  uintptr_t src_adr, dst_adr; /* of the piece */
  size_t nbytes;              /* of the piece */
  size_t rest;                /* from its beginning to the end of the run */
  bool taken;
  pthread_t caller; /* the thread of the copy, in which alone report is called */
  /* The first bytes from the piece on have arrived. Returns whether to go on. An exception of C++
   * may leave it. */
  bool (*report)(struct umemMeter *self, size_t arrived);
  bool over; /* cancelled, or something has failed; atomic */
  /* Protects the others. No umemLock: in a child of fork the stack that it is on is that of others,
   * or of no thread. */
  pthread_mutex_t lock;
  size_t arrived; /* all bytes up to here */
  struct {
    size_t begin, end;
  } ahead[umemMeterRanges]; /* and these */
  unsigned count;
} umemMeter;

/* The meter of this thread, which has one, if self, a context of its copy, is asked for its piece;
 * else NULL. */
umemMeter *umemMeter_find(umemVirtual *self, uintptr_t src_adr, uintptr_t dst_adr, size_t nbytes);

/* Returns how many bytes to copy: all of the run. */
size_t umemMeter_take(umemMeter *self);

/* Notes that nbytes at `at`, as counted from the beginning of the piece, have arrived, without the
 * lock. Returns how many have from there on. What is far ahead may not be noted. */
size_t umemMeter_note(umemMeter *self, size_t at, size_t nbytes);

/* umemMeter_note with the lock, by any thread. Calls report if it is the caller's, which must be in
 * no scope of a GPU and hold no lock. */
void umemMeter_add(umemMeter *self, size_t at, size_t nbytes);

/* No report follows. */
void umemMeter_stop(umemMeter *self);

static inline bool umemMeter_is_over(umemMeter const *self) {
  return __atomic_load_n(&self->over, __ATOMIC_RELAXED);
}

/* ==== calls that wait for others longer than a user would ==== */

/* Who knows whether this thread's call is cancelled: of a copy that reports or of a transfer. */
typedef struct umemWaiter {
  bool (*goes_on)(struct umemWaiter *self);
} umemWaiter;

/* Whether a call that waits goes on: what the waiter of this thread says, or else the wait hook of
 * the process. Call it some ten times a second, in the thread of the call, with no lock held. An
 * exception of C++ may leave it if the waiter reports to the progress of a copy; one that leaves
 * the hook ends the process. */
bool umem_goes_on(void);

#endif
