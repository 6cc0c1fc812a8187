/* watch.h - notes of the legs that a copy takes, for umemRoute and the ledger.
 *
 * umem_watched is 0 while nobody wants to know: then a copy costs one branch on it, and no clock is read. Otherwise
 * the outermost call of a copy opens a trace, and what moves bytes opens a leg: it names the two places. What knows
 * better how the bytes move (a store, a GPU) notes that in the innermost open leg of its thread, with the places of
 * that leg or its own. A leg in which nothing was noted notes itself when it closes. So what only passes a copy on,
 * an adaptor for example, adds nothing. umem_parallel hands the caller's open leg to the threads that help. */
#ifndef UMEM_CORE_WATCH_H
#define UMEM_CORE_WATCH_H

#include <stddef.h>
#include <umem/base.h>

typedef enum umemWay {
  umemWayMethod,    /* a method of the context that says no more */
  umemWayMemcpy,    /* the CPU, from pointer to pointer */
  umemWayItems,     /* the same for the items of a layout */
  umemWayWindow,    /* the same through a mapping of the file */
  umemWayPageCache, /* read or write */
  umemWayDirect,    /* O_DIRECT */
  umemWayDma,       /* a copy engine, or what the driver takes for one */
  umemWayBoxes,     /* the same for rows and planes */
  umemWayPacked,    /* the same, with the rows packed on the GPU */
  umemWayPeer,      /* from GPU to GPU */
  umemWayGds        /* cuFile */
} umemWay;

/* How many ledgers that are on and open traces there are in the process; atomic. */
extern unsigned umem_watched __attribute__((visibility("hidden")));

static inline bool umem_is_watched(void) {
  return __builtin_expect(__atomic_load_n(&umem_watched, __ATOMIC_RELAXED) != 0, 0);
}

/* The legs of one call. The global lock guards legs while the copy runs. */
typedef struct umemTrace {
  umemRoute route;
  umemRoutePlace src, dst; /* of the call */
  bool counts;             /* goes to umem_sink */
  uint64_t begin;          /* as of umem_route_clock */
  uint64_t failures;       /* of the thread, before */
} umemTrace;

/* Gets each trace of a whole copy when the copy has ended: the ledger, while it is on. NULL otherwise; atomic. Records
 * nothing: a copy does not fail because of the ledger. */
typedef void umemSink(umemTrace const *trace, bool failed);
extern umemSink *umem_sink __attribute__((visibility("hidden")));

/* An open leg, on the stack of the thread that moves bytes or has them moved. */
typedef struct umemOpenLeg {
  struct umemOpenLeg *outer; /* that was open before; NULL for the outermost */
  umemTrace *trace;          /* NULL: nobody watches this copy */
  umemRoutePlace src, dst;
  umemWay way;
  size_t nbytes;
  uint64_t begin, failures;
  bool whole; /* it stands for the call */
  bool noted; /* something was noted in it; atomic */
} umemOpenLeg;

/* What stands in host memory of umem between two legs. */
umemRoutePlace umem_buffer_place(umemVirtual const *host);

/* Opens the trace of a copy of nbytes from src to dst as the thread's leg, where none is open. Begins and ends in one
 * function; umem_leg_close closes the leg. */
void umem_trace_open(umemTrace *trace, umemOpenLeg *leg, umemVirtual *src, umemVirtual *dst,
                     size_t nbytes);

/* The same for a call of which route wants to know, also where one is open: the legs are route's then alone. */
void umem_trace_open_for(umemTrace *trace, umemOpenLeg *leg, umemVirtual *src, umemVirtual *dst,
                         size_t nbytes);

/* For a copy that several threads do one after the other or together: lets go of the trace that was opened last, so
 * that any of them can make leg its umem_thread.leg for a while, and closes it in the end. */
void umem_trace_let_go(umemOpenLeg *leg);
void umem_trace_close(umemOpenLeg *leg, bool failed);

/* Opens a leg inside of the open one. Without an open one it is closed for nothing. src and dst: contexts, or NULL
 * for the place of the open leg; then the caller sets it afterwards. */
void umem_leg_open(umemOpenLeg *leg, umemVirtual *src, umemVirtual *dst, umemWay way,
                   size_t nbytes);
void umem_leg_close(umemOpenLeg *leg);

/* Nanoseconds of a clock that never goes back, where the copy of this thread is watched; else 0. */
uint64_t umem_watched_clock(void);
static inline uint64_t umem_route_clock(void) {
  return umem_is_watched() ? umem_watched_clock() : 0;
}

/* Notes that nbytes were moved, which began at begin, as of umem_route_clock, and is done now; 0: nobody
 * watches. A place that is NULL is that of the open leg. Records nothing, and never fails. */
void umem_note_between(umemRoutePlace const *src, umemRoutePlace const *dst, umemWay way,
                       size_t nbytes, unsigned workers, uint64_t begin);
static inline void umem_note(umemWay way, size_t nbytes, unsigned workers, uint64_t begin) {
  if (__builtin_expect(begin != 0, 0)) umem_note_between(NULL, NULL, way, nbytes, workers, begin);
}

/* The place of ctx, whose memory is that of a GPU. */
umemRoutePlace umem_device_place(umemVirtual *ctx, int ordinal);

/* umemRoute_text of these legs. */
size_t umem_legs_text(umemRouteLeg const *legs, uint32_t count, char *text, size_t size);

#endif
