/* watch.h - what copies do with bytes, for umemRoute and the ledger.
 *
 * While a copy is watched, its outermost call opens a trace, and each move of its bytes opens a
 * step, which names two places (core/hook.h). A context that knows better how its bytes move, a
 * store or a GPU, notes that in the innermost open step of its thread, with the places of that step
 * or its own. A step in which nothing was noted notes itself when it closes. So a context that only
 * passes a copy on, an adaptor for example, adds nothing. umem_parallel hands the caller's open
 * step to the threads that help. */
#ifndef UMEM_WATCH_WATCH_H
#define UMEM_WATCH_WATCH_H

#include <stddef.h>
#include <umem/base.h>

#include "core/hook.h"

/* What was noted of one call. The global lock protects its route while the copy runs. */
typedef struct umemTrace {
  umemRoute route;
  umemRoutePlace src, dst; /* of the call */
  bool counts;             /* goes to umem_sink */
  uint64_t begin;          /* as of umem_route_clock */
  uint64_t failures;       /* of the thread, before */
} umemTrace;

/* Empties the route that the options of a call name, for a call that is refused. Returns false,
 * with a status on ctx, if it cannot be written. NULL is ignored. */
bool umem_route_clear(umemVirtual *ctx, umemRoute *route);

/* Gets each trace of a whole copy when the copy has ended: the ledger, while it is on. NULL
 * otherwise; atomic. Records nothing: a copy does not fail because of the ledger. */
typedef void umemSink(umemTrace const *trace, bool failed);
extern umemSink *umem_sink __attribute__((visibility("hidden")));

/* An open step, on the stack of the thread that moves bytes or has them moved. */
typedef struct umemOpenStep {
  struct umemOpenStep *outer; /* that was open before; NULL for the outermost */
  umemTrace *trace;           /* NULL: this copy is not watched */
  umemRoutePlace src, dst;
  umemWay way;
  unsigned workers;
  unsigned sharers; /* threads that do such a step side by side */
  size_t nbytes;
  uint64_t begin, failures;
  bool whole; /* it stands for the call */
  bool noted; /* something was noted in it; atomic */
} umemOpenStep;

/* Opens the trace of a copy of nbytes from src to dst, if the thread has no open step and the
 * ledger is on. Begin and end it in one function. Otherwise step needs no end. */
void umem_trace_open(umemTrace *trace, umemOpenStep *step, umemVirtual *src, umemVirtual *dst,
                     size_t nbytes);

/* Opens the trace of a copy for its caller alone, also if the thread has an open step. */
void umem_trace_open_for(umemTrace *trace, umemOpenStep *step, umemVirtual *src, umemVirtual *dst,
                         size_t nbytes);

/* Ends what umem_trace_open began. */
void umem_step_close(umemOpenStep *step);

/* For a copy that several threads do one after the other or together: lets go of the trace that
 * was opened last, so that any of them can make step its umem_thread.step for a while, and
 * closes it in the end. */
void umem_trace_let_go(umemOpenStep *step);
void umem_trace_close(umemOpenStep *step, bool failed);

/* For one of `sharers` threads that do pieces of a copy side by side: until umem_share_end, what is
 * noted counts as theirs. Does nothing where the copy is not watched. */
void umem_share_begin(umemOpenStep *share, unsigned sharers);
void umem_share_end(umemOpenStep *share);

/* Whether a copy goes through pinned buffers, of which there are few. */
bool umem_is_staged(umemVirtual const *src, umemVirtual const *dst);

/* Nanoseconds of a clock that never goes back, where the copy of this thread is watched; else 0. */
uint64_t umem_watched_clock(void);
static inline uint64_t umem_route_clock(void) {
  return umem_is_watched() ? umem_watched_clock() : 0;
}

/* Notes that nbytes were moved, which began at begin, as of umem_route_clock, and is done now;
 * 0: the copy is not watched. workers: threads of this piece; 0: a device. A place that is NULL is
 * that of the open step. Records nothing, and never fails. */
void umem_note_between(umemRoutePlace const *src, umemRoutePlace const *dst, umemWay way,
                       size_t nbytes, unsigned workers, uint64_t begin);
static inline void umem_note(umemWay way, size_t nbytes, unsigned workers, uint64_t begin) {
  if (__builtin_expect(begin != 0, 0)) umem_note_between(NULL, NULL, way, nbytes, workers, begin);
}

/* The place of ctx, whose memory is that of a GPU. */
umemRoutePlace umem_device_place(umemVirtual *ctx, int ordinal);

/* That of a buffer of umem in the memory of host. */
umemRoutePlace umem_buffer_place(umemVirtual const *host);

bool umem_is_same_place(umemRoutePlace const *a, umemRoutePlace const *b);

/* umemRoute_text of these entries. */
size_t umem_entries_text(umemRouteLeg const *entries, uint32_t count, char *text, size_t size);

#endif
