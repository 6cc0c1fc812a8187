/* transfer.c - copies that go on while the program does other work.
 *
 * A start checks the copy, and does it at once if it is short or no thread may help. A copy of an
 * ordered context is queued there, and a mark in the queue says when it is done. Every other one
 * waits in a line for servers: up to four workers of core/threads.c, which take the first transfer
 * of a line, do a piece of it, and put it back to the end. Who waits for a transfer that is in a
 * line does its pieces, too; so nothing depends on a free worker.
 *
 * There are two lines. Short transfers are served first. All servers but one do long pieces of long
 * transfers, which keep the threads of a copy busy; the last one does pieces of about a
 * millisecond, so that it is soon free for others.
 *
 * One lock protects the lines, the list and all members of a transfer but those that are atomic.
 * A transfer belongs to the thread that has set its state to `moving`, which reads and writes the
 * rest without the lock. No other lock is taken under this one, but the global one. */
#include "watch/watch.h"
#include "base/number.h"
#include "base/thread.h"
#include "core/context.h"
#include "core/copy.h"
#include "core/layout.h"
#include "core/status.h"
#include "core/threads.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
  most_servers = 4,
  turns = 8, /* of these, one is for a long transfer if short ones wait, too */
  exit_seconds = 5
};
static size_t const at_once_below = 32 << 10, /* to wake a thread takes as long */
    short_below = 1 << 20, least_piece = 256 << 10, shared_piece = 64 << 20,
                    longest_piece = 256 << 20;
static uint64_t const short_time = 1000000, between_queries = 100000; /* ns */

/* What a transfer that is watched needs beside. */
typedef struct Watch {
  umemTrace trace;
  umemOpenStep step;
  umemRoute *route; /* of the program, borrowed; or NULL */
} Watch;

typedef enum State {
  inLine, /* waits for a server */
  moving, /* a thread copies */
  queued, /* the copy is in the queue of a context */
  ended
} State;

struct umemTransfer {
  char const *function; /* that has started it */
  umemVirtual *src, *dst;
  uintptr_t src_adr, dst_adr;
  size_t nbytes;
  umemLayout layout;        /* rank 0: a run. Its arrays follow the struct */
  size_t at[UMEM_MAX_RANK]; /* index of the first item that is not copied yet */
  bool whole;               /* the sides overlap: one piece */
  size_t piece;             /* bytes that take about short_time */
  Watch *watch;             /* owned; NULL: it is not watched */
  unsigned forks;           /* umem_fork_count() at the start */
  State state;              /* atomic */
  bool cancelled, seen;     /* atomic; seen: a call has returned the failure */
  uint64_t done;            /* bytes; atomic */
  bool is_long;             /* counts in line.long_pieces */
  umemMark mark;            /* of the queued copy */
  umemVirtual *marked;      /* the context that has the mark, or NULL */
  int fd;                   /* owned; -1: none */
  umemAttempt failure;      /* its contexts are NULL when one of them has ended */
  pthread_cond_t changed;   /* of the state */
  bool listed;
  struct umemTransfer *before, *after; /* in its line */
  struct umemTransfer *newer, *older;  /* in the list */
};

typedef struct Line {
  umemTransfer *first, *last;
  size_t count;
} Line;

static struct {
  umemLock lock;
  Line brief, lengthy;
  umemTransfer *newest; /* list of all that have not ended, or whose failure names a context */
  unsigned servers;     /* that run, or were asked for */
  unsigned running;     /* those that have begun */
  unsigned long_pieces; /* that servers do now */
  unsigned turn;
  pthread_cond_t fewer; /* a transfer has ended, or a server */
  bool closed;          /* the process exits; atomic */
} all;

/* ---- lines and the list: with the lock ---- */

static Line *line_of(umemTransfer const *self) {
  return self->nbytes < short_below ? &all.brief : &all.lengthy;
}

static void push(umemTransfer *self) {
  Line *line = line_of(self);
  self->after = NULL;
  self->before = line->last;
  *(line->last ? &line->last->after : &line->first) = self;
  line->last = self;
  line->count++;
  __atomic_store_n(&self->state, inLine, __ATOMIC_RELEASE);
}

/* Takes it out of its line, for the calling thread. */
static umemTransfer *claim(umemTransfer *self) {
  Line *line = line_of(self);
  *(self->before ? &self->before->after : &line->first) = self->after;
  *(self->after ? &self->after->before : &line->last) = self->before;
  line->count--;
  __atomic_store_n(&self->state, moving, __ATOMIC_RELEASE);
  return self;
}

static umemTransfer *claim_next(void) {
  umemTransfer *brief = all.brief.first, *lengthy = all.lengthy.first;
  bool turn = all.turn++ % turns == 0;
  umemTransfer *next = brief && !(turn && lengthy) ? brief : lengthy;
  return next ? claim(next) : NULL;
}

static void add(umemTransfer *self) {
  self->newer = NULL;
  self->older = all.newest;
  if (all.newest) all.newest->newer = self;
  all.newest = self;
  self->listed = true;
  __atomic_fetch_add(&umem_transfers, 1, __ATOMIC_RELAXED);
}

static void remove_from_list(umemTransfer *self) {
  if (!self->listed) return;
  *(self->newer ? &self->newer->older : &all.newest) = self->older;
  if (self->older) self->older->newer = self->newer;
  self->listed = false;
  __atomic_fetch_sub(&umem_transfers, 1, __ATOMIC_RELAXED);
}

static bool is_here(umemTransfer const *self) { return self->forks == umem_fork_count(); }

static State state_of(umemTransfer const *self) {
  return __atomic_load_n(&self->state, __ATOMIC_ACQUIRE);
}

static bool has_ended(umemTransfer const *self) {
  return state_of(self) == ended || !is_here(self);
}

static bool is_cancelled(umemTransfer const *self) {
  return __atomic_load_n(&self->cancelled, __ATOMIC_RELAXED);
}

static bool has_failed(umemTransfer const *self) { return umemAttempt_failed(&self->failure); }

/* ---- pieces ---- */

/* The dimension whose steps are copied next, at most `most` bytes of them: of those that begin at
 * the first item that is left, the outermost one with a step that fits. step: its bytes. */
static int dimension_of_piece(umemTransfer const *self, size_t most, size_t *step) {
  umemLayout const *layout = &self->layout;
  int k = layout->rank - 1;
  *step = layout->item_size;
  while (k > 0 && self->at[k] == 0 && *step * layout->extents[k] <= most)
    *step *= layout->extents[k--];
  return k;
}

static void count_steps(umemTransfer *self, int k, size_t steps) {
  size_t *at = self->at;
  at[k] += steps;
  for (; k > 0 && at[k] == self->layout.extents[k]; k--) {
    at[k] = 0;
    at[k - 1]++;
  }
}

/* Copies items that follow in C order, and returns their bytes. */
static size_t move_items(umemTransfer *self, size_t most) {
  size_t step, extents[UMEM_MAX_RANK];
  umemLayout piece = self->layout;
  int k = dimension_of_piece(self, most, &step);
  size_t rest = piece.extents[k] - self->at[k], steps = umem_greater(1, most / step);
  if (steps > rest) steps = rest;
  uintptr_t src_adr = self->src_adr, dst_adr = self->dst_adr;
  for (int d = 0; d <= k; d++) {
    src_adr += (uintptr_t)piece.src_strides[d] * self->at[d];
    dst_adr += (uintptr_t)piece.dst_strides[d] * self->at[d];
  }
  memcpy(extents, piece.extents + k, (size_t)(piece.rank - k) * sizeof *extents);
  extents[0] = steps;
  piece.extents = extents;
  piece.src_strides += k;
  piece.dst_strides += k;
  piece.rank -= k;
  umemRanges ranges;
  if (umem_check_strided(self->src, src_adr, self->dst, dst_adr, &piece, &ranges))
    umem_copy_layout(self->src, src_adr, self->dst, dst_adr, &piece, &ranges);
  count_steps(self, k, steps);
  return steps * step;
}

/* Copies about `most` bytes, the whole rest if it is little more. */
static size_t move(umemTransfer *self, size_t most) {
  size_t rest = self->nbytes - self->done;
  if (self->whole || rest / 2 < most) most = rest;
  if (self->layout.rank) return move_items(self, self->whole ? SIZE_MAX : most);
  umem_copy_any_run(self->src, self->src_adr + self->done, self->dst, self->dst_adr + self->done,
                    most);
  return most;
}

/* What the ledger notes belongs to the transfer. */
static void do_piece(umemTransfer *self, size_t most) {
  UMEM_ENTER_AS(self->function, NULL);
  struct umemOpenStep *outer = umem_thread.step;
  umemAttempt attempt;
  if (self->watch) umem_thread.step = &self->watch->step;
  umemAttempt_begin(&attempt);
  size_t nbytes = move(self, most);
  umemAttempt_end(&attempt);
  umem_thread.step = outer;
  if (umemAttempt_failed(&attempt))
    self->failure = attempt;
  else
    __atomic_store_n(&self->done, self->done + nbytes, __ATOMIC_RELAXED);
}

static bool is_over(umemTransfer const *self) {
  return has_failed(self) || self->done == self->nbytes || is_cancelled(self);
}

/* ---- the end ---- */

static void note_cancelled(umemTransfer *self) {
  UMEM_ENTER_AS(self->function, NULL);
  umemAttempt_begin(&self->failure);
  umemVirtual_fail(self->dst, umemCancelledError, "cancelled after %ju of %zu bytes",
                   (uintmax_t)self->done, self->nbytes);
  umemAttempt_end(&self->failure);
}

/* Writes the route, once. */
static void end_watch(umemTransfer *self, bool failed) {
  Watch *watch = self->watch;
  if (!watch || !watch->step.trace) return;
  umem_trace_close(&watch->step, failed);
  if (watch->route) umem_write_sized(watch->route, &watch->trace.route, sizeof watch->trace.route);
}

static void signal_descriptor(umemTransfer const *self) {
  uint64_t const one = 1;
  if (self->fd >= 0) (void)!write(self->fd, &one, sizeof one); /* no more than one is written */
}

/* With the lock, in the thread that has claimed it; that must not touch it afterwards. */
static void end(umemTransfer *self) {
  if (!has_failed(self) && self->done < self->nbytes) note_cancelled(self);
  end_watch(self, has_failed(self));
  if (!has_failed(self)) remove_from_list(self);
  __atomic_store_n(&self->state, ended, __ATOMIC_RELEASE);
  signal_descriptor(self);
  pthread_cond_broadcast(&self->changed);
  pthread_cond_broadcast(&all.fewer);
}

/* ---- copies that are queued ---- */

static bool query_mark(umemTransfer *self, bool waits) {
  UMEM_ENTER_AS(self->function, NULL);
  umemAttempt attempt;
  umemAttempt_begin(&attempt);
  bool reached = self->mark.reached(self->marked, &self->mark, waits);
  umemAttempt_end(&attempt);
  if (umemAttempt_failed(&attempt)) self->failure = attempt;
  return reached || waits || has_failed(self);
}

/* Without the lock, in the thread that has claimed it. Returns whether the queue has done it. */
static bool is_reached(umemTransfer *self, bool waits) {
  if (!query_mark(self, waits)) return false;
  UMEM_ENTER_AS(self->function, NULL);
  umemAttempt forgotten;
  umemAttempt_begin(&forgotten);
  self->mark.release(self->marked, &self->mark);
  umemAttempt_end(&forgotten);
  if (!has_failed(self)) __atomic_store_n(&self->done, self->nbytes, __ATOMIC_RELAXED);
  return true;
}

/* ---- servers ---- */

static unsigned servers_allowed(void) {
  bool closed = __atomic_load_n(&all.closed, __ATOMIC_RELAXED);
  unsigned workers = closed ? 0 : umem_parallel_workers();
  return workers < most_servers ? workers : most_servers;
}

/* How many bytes a server copies now, until it looks for others. With the lock. */
static size_t begin_piece(umemTransfer *self) {
  if (self->nbytes < short_below) return self->nbytes;
  if (all.long_pieces + 1 >= servers_allowed()) return self->piece;
  all.long_pieces++;
  self->is_long = true;
  return all.lengthy.count ? shared_piece : longest_piece;
}

static void end_piece(umemTransfer *self) {
  if (self->is_long) all.long_pieces--;
  self->is_long = false;
}

static void adapt_piece(umemTransfer *self, uint64_t nanoseconds) {
  if (nanoseconds > short_time && self->piece > least_piece) self->piece /= 2;
  if (nanoseconds < short_time / 4 && self->piece < shared_piece) self->piece *= 2;
}

/* Does a short or a long piece of what the thread has claimed. Releases the lock meanwhile. */
static void serve_once(umemTransfer *self, size_t most) {
  bool over = false;
  umemLock_release(&all.lock);
  if (self->marked) {
    over = is_reached(self, false);
    if (!over) nanosleep(&(struct timespec){0, (long)between_queries}, NULL);
  } else if (!is_cancelled(self)) {
    uint64_t begin = umemClock_read(CLOCK_MONOTONIC);
    do_piece(self, most);
    if (most == self->piece) adapt_piece(self, umemClock_read(CLOCK_MONOTONIC) - begin);
  }
  umemLock_acquire(&all.lock);
  end_piece(self);
  if (self->marked ? over : is_over(self))
    end(self);
  else
    push(self);
}

/* Whether there are more servers than umem_set_threads allows by now. One goes on, for those who
 * only poll. */
static bool is_superfluous(void) { return all.running > umem_greater(1, servers_allowed()); }

static void serve(void) {
  umemLock_acquire(&all.lock);
  all.running++;
  for (umemTransfer *next; !is_superfluous() && (next = claim_next()) != NULL;)
    serve_once(next, begin_piece(next));
  all.running--;
  all.servers--;
  pthread_cond_broadcast(&all.fewer);
  umemLock_release(&all.lock);
}

/* Instead of serve, in a worker that may use no thread variable. */
static void lose_server(void) {
  umemLock_acquire(&all.lock);
  all.servers--;
  for (umemTransfer *self; !all.servers && (self = claim_next()) != NULL;) {
    self->failure.type = umemMemoryError;
    self->failure.ctx = self->dst;
    strcpy(self->failure.text, "umem_start: no memory for a thread");
    __atomic_store_n(&self->state, ended, __ATOMIC_RELEASE);
    signal_descriptor(self);
    pthread_cond_broadcast(&self->changed);
  }
  pthread_cond_broadcast(&all.fewer);
  umemLock_release(&all.lock);
}

/* Whether one more server would begin earlier than those that there are. With the lock. */
static bool needs_server(void) {
  size_t waiting = all.brief.count + all.lengthy.count;
  return waiting && all.servers < servers_allowed() &&
         (all.servers == all.long_pieces || waiting > all.servers);
}

/* Returns whether there is a server, if one is needed. Without the lock. */
static bool call_server(void) {
  umemLock_acquire(&all.lock);
  bool needed = needs_server();
  all.servers += needed;
  umemLock_release(&all.lock);
  if (needed && !umem_parallel_background(serve, lose_server)) {
    umemLock_acquire(&all.lock);
    all.servers--;
    umemLock_release(&all.lock);
  }
  umemLock_acquire(&all.lock);
  bool served = all.servers || !(all.brief.count + all.lengthy.count);
  umemLock_release(&all.lock);
  return served;
}

/* ---- waiting ---- */

static uint64_t const for_ever = UINT64_MAX;

static uint64_t now(void) { return umemClock_read(CLOCK_MONOTONIC); }

/* With the lock. */
static void wait_for_change(pthread_cond_t *changed, uint64_t deadline) {
  uint64_t const second = 1000000000;
  umem_defer_cancel();
  if (deadline == for_ever) {
    pthread_cond_wait(changed, &all.lock.mutex);
    return;
  }
  struct timespec const until = {(time_t)(deadline / second), (long)(deadline % second)};
  pthread_cond_timedwait(changed, &all.lock.mutex, &until);
}

/* The calling thread looks how far the queue is. With the lock, which it releases meanwhile. */
static void advance_queue(umemTransfer *self, bool waits) {
  if (state_of(self) == inLine)
    claim(self);
  else
    __atomic_store_n(&self->state, moving, __ATOMIC_RELEASE);
  umemLock_release(&all.lock);
  bool over = is_reached(self, waits);
  if (!over) nanosleep(&(struct timespec){0, (long)between_queries}, NULL);
  umemLock_acquire(&all.lock);
  if (over) {
    end(self);
  } else if (self->fd >= 0) {
    push(self);
  } else {
    __atomic_store_n(&self->state, queued, __ATOMIC_RELEASE);
    pthread_cond_broadcast(&self->changed);
  }
}

/* Brings a transfer forward that has not ended: the calling thread copies, or waits for the one
 * that does. A copy may take longer than until the deadline. So only a server does it before. With
 * the lock, which it releases meanwhile. */
static void advance(umemTransfer *self, uint64_t deadline) {
  bool copies = deadline == for_ever || (!all.running && now() >= deadline);
  if (state_of(self) == queued || (self->marked && state_of(self) == inLine))
    advance_queue(self, deadline == for_ever);
  else if (state_of(self) == inLine && copies)
    serve_once(claim(self), deadline == for_ever ? longest_piece : self->piece);
  else
    wait_for_change(&self->changed, deadline);
}

static bool wait_until(umemTransfer *self, uint64_t deadline) {
  bool late = false;
  umem_defer_cancel();
  umemLock_acquire(&all.lock);
  while (!has_ended(self) && !late) {
    late = now() >= deadline;
    advance(self, deadline);
  }
  bool over = has_ended(self);
  umemLock_release(&all.lock);
  if (!over) call_server(); /* what the calling thread has put back */
  return over;
}

/* ---- the end of a context, of the process, and of its parent ---- */

static umemTransfer *transfer_of(umemVirtual const *ctx) {
  umemTransfer *self = all.newest;
  while (self && self->src != ctx && self->dst != ctx) self = self->older;
  return self;
}

/* A transfer may be released by another thread as soon as it has ended: so nothing is known of it
 * after the wait. */
static void leave_context(umemVirtual *ctx) {
  umemLock_acquire(&all.lock);
  for (umemTransfer *self; (self = transfer_of(ctx)) != NULL;) {
    if (state_of(self) == ended) {
      self->failure.ctx = self->failure.adopter = NULL;
      remove_from_list(self);
    } else if (state_of(self) == moving) {
      wait_for_change(&all.fewer, for_ever);
    } else {
      advance(self, for_ever);
    }
  }
  umemLock_release(&all.lock);
}

static void begin_child(void) {
  all.brief = all.lengthy = (Line){NULL, NULL, 0};
  all.newest = NULL;
  all.servers = all.long_pieces = 0;
  pthread_cond_init(&all.fewer, NULL);
  __atomic_store_n(&umem_transfers, 0, __ATOMIC_RELAXED);
}

static void init_condition(pthread_cond_t *condition) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(condition, &attributes);
  pthread_condattr_destroy(&attributes);
}

__attribute__((constructor(101))) static void open_all(void) {
  umemLock_init(&all.lock);
  init_condition(&all.fewer);
  umem_leave_hook = leave_context;
  pthread_atfork(NULL, NULL, begin_child);
}

/* A piece that a broken file system holds up does not hold up the end of the process. */
__attribute__((destructor)) static void close_all(void) {
  umemLock_acquire(&all.lock);
  __atomic_store_n(&all.closed, true, __ATOMIC_RELAXED);
  for (umemTransfer *self = all.newest; self; self = self->older)
    __atomic_store_n(&self->cancelled, true, __ATOMIC_RELAXED);
  for (umemTransfer *self; (self = claim_next()) != NULL;) end(self);
  uint64_t deadline = now() + exit_seconds * UINT64_C(1000000000);
  while (all.servers && now() < deadline) wait_for_change(&all.fewer, deadline);
  umemLock_release(&all.lock);
}

/* ---- starting ---- */

/* What a start is given. */
typedef struct Start {
  char const *function;
  umemVirtual *src, *dst;
  uintptr_t src_adr, dst_adr;
  umemLayout const *layout;
  umemCopyOptions options;
} Start;

static bool read_options(Start *given, umemCopyOptions const *options) {
  umemRoute const none = UMEM_ROUTE_INIT;
  umemCopyOptions *full = &given->options;
  if (!umem_read_sized(given->src, full, sizeof *full, options, "umemCopyOptions")) return false;
  if (full->progress)
    return UMEM_FAIL(given->src, umemValueError,
                     "options.progress is set: umemTransfer_progress says how far a transfer is");
  if (!full->route) return true;
  if (!umem_can_write_sized(given->src, full->route, offsetof(umemRoute, legs), "route",
                            "umemRoute"))
    return false;
  umem_write_sized(full->route, &none, sizeof none);
  return true;
}

static bool is_captured(Start const *given) {
  umemVirtual *captured = umem_is_captured(given->src)   ? given->src
                          : umem_is_captured(given->dst) ? given->dst
                                                         : NULL;
  return captured && !UMEM_FAIL(captured, umemNotSupportedError,
                                "the stream is being captured into a graph: no call could say "
                                "when the transfer has ended");
}

/* Copies the arrays of the layout behind the struct. */
static void keep_layout(umemTransfer *self, umemLayout const *layout) {
  size_t rank = (size_t)layout->rank;
  size_t *extents = (size_t *)(self + 1);
  ptrdiff_t *src = (ptrdiff_t *)(extents + rank), *dst = src + rank;
  self->layout = (umemLayout){.size = sizeof self->layout,
                              .item_size = layout->item_size,
                              .rank = layout->rank,
                              .extents = extents,
                              .src_strides = src,
                              .dst_strides = dst};
  if (!rank) return;
  memcpy(extents, layout->extents, rank * sizeof *extents);
  umem_c_strides(layout->item_size, layout->rank, extents, src);
  memcpy(dst, src, rank * sizeof *dst);
  if (layout->src_strides) memcpy(src, layout->src_strides, rank * sizeof *src);
  if (layout->dst_strides) memcpy(dst, layout->dst_strides, rank * sizeof *dst);
}

/* Whether a piece could overwrite what a later one reads. */
static bool overlaps(umemTransfer const *self) {
  umemLayout run = self->layout;
  if (!run.rank) run.item_size = self->nbytes;
  return umem_copy_overlaps(self->src, self->src_adr, self->dst, self->dst_adr, &run);
}

static bool watch(umemTransfer *self, umemRoute *route) {
  if (!route && !__atomic_load_n(&umem_sink, __ATOMIC_RELAXED)) return true;
  Watch *watch = self->watch = malloc(sizeof *watch);
  if (!watch) return false;
  watch->route = route;
  if (route)
    umem_trace_open_for(&watch->trace, &watch->step, self->src, self->dst, self->nbytes);
  else
    umem_trace_open(&watch->trace, &watch->step, self->src, self->dst, self->nbytes);
  umem_trace_let_go(&watch->step);
  return true;
}

static void discard(umemTransfer *self) {
  end_watch(self, true);
  if (self->fd >= 0) close(self->fd);
  if (is_here(self)) pthread_cond_destroy(&self->changed);
  free(self->watch);
  free(self);
}

static umemTransfer *make(Start const *given, size_t nbytes) {
  umemLayout const *layout = given->layout;
  size_t arrays = (size_t)layout->rank * (sizeof(size_t) + 2 * sizeof(ptrdiff_t));
  umemTransfer *self = calloc(1, sizeof *self + arrays);
  if (self) {
    self->function = given->function;
    self->src = given->src;
    self->dst = given->dst;
    self->src_adr = given->src_adr;
    self->dst_adr = given->dst_adr;
    self->nbytes = nbytes;
    self->piece = short_below;
    self->forks = umem_fork_count();
    self->state = moving;
    self->fd = -1;
    init_condition(&self->changed);
    keep_layout(self, layout);
    if (watch(self, given->options.route)) return self;
    discard(self);
  }
  return UMEM_FAIL_NULL(given->dst, umemMemoryError, "no memory for a transfer");
}

/* Copies, or queues the copy, in the calling thread, whose failures these are. */
static bool copy_here(umemTransfer *self) {
  uint64_t before = umem_thread.failures;
  struct umemOpenStep *outer = umem_thread.step;
  if (self->watch) umem_thread.step = &self->watch->step;
  self->whole = true;
  if (self->nbytes) move(self, self->nbytes);
  umem_thread.step = outer;
  return umem_thread.failures == before;
}

/* Whether the queue can say when it has done the copy; otherwise waits for that. False after a
 * failure. */
static bool mark_queue(umemTransfer *self) {
  umemVirtual *queue = umem_can(self->dst, umemOrdered) ? self->dst : self->src;
  umemVirtual *layer = UMEM_LAYER_WITH(queue, mark);
  umemAttempt attempt;
  umemAttempt_begin(&attempt);
  self->mark = (umemMark){.reached = NULL};
  bool marked = layer && layer->vptr->mark(layer, &self->mark);
  umemAttempt_end(&attempt);
  if (marked) self->marked = layer;
  return marked || umem_finish(queue) == umemOK;
}

/* Queues the copy, or does it. */
static bool queue_copy(umemTransfer *self) {
  if (!copy_here(self) || !mark_queue(self)) return false;
  if (!self->marked) {
    self->done = self->nbytes;
    end_watch(self, false);
    self->state = ended;
    return true;
  }
  umemLock_acquire(&all.lock);
  add(self);
  __atomic_store_n(&self->state, queued, __ATOMIC_RELEASE);
  umemLock_release(&all.lock);
  return true;
}

/* Returns whether a server will come. */
static bool put_in_line(umemTransfer *self) {
  self->whole = self->nbytes < short_below || overlaps(self);
  umemLock_acquire(&all.lock);
  add(self);
  push(self);
  bool served = all.servers && !needs_server();
  umemLock_release(&all.lock);
  return served || call_server();
}

static bool is_at_once(umemTransfer const *self) {
  umemVirtual const *src = self->src, *dst = self->dst;
  bool brief = self->nbytes < at_once_below && umem_cpu_reads(src) && umem_cpu_writes(dst) &&
               !((src->capabilities | dst->capabilities) & umemDeviceShared);
  return brief || !umem_can(src, umemConcurrent) || !umem_can(dst, umemConcurrent) ||
         !servers_allowed();
}

/* Returns whether there is a transfer, whose failures, if it has ended by now, are in it. */
static bool begin(umemTransfer *self) {
  bool ordered = umem_can(self->src, umemOrdered) || umem_can(self->dst, umemOrdered);
  if (ordered && self->nbytes) return queue_copy(self);
  if (self->nbytes && !is_at_once(self)) {
    if (!put_in_line(self)) wait_until(self, for_ever);
    return true;
  }
  if (!copy_here(self)) return false;
  self->done = self->nbytes;
  end_watch(self, false);
  self->state = ended;
  return true;
}

/* Sets *transfer after all checks of the copy. */
static void start(Start *given, size_t nbytes, umemTransfer **transfer) {
  if (is_captured(given)) return;
  umemTransfer *self = make(given, nbytes);
  if (!self) return;
  if (begin(self))
    *transfer = self;
  else
    discard(self);
}

static bool is_given(umemTransfer **transfer) {
  if (!transfer) return UMEM_FAIL(NULL, umemValueError, "transfer is NULL");
  *transfer = NULL;
  return true;
}

umemStatusType umem_start(void *src, uintptr_t src_adr, void *dst, uintptr_t dst_adr, size_t nbytes,
                          umemCopyOptions const *options, umemTransfer **transfer) {
  UMEM_ENTER();
  if (!is_given(transfer)) return UMEM_RESULT();
  umemLayout const run = {.size = sizeof run, .item_size = nbytes};
  Start given = {__func__, umem_check(src),       umem_check(dst), src_adr, dst_adr,
                 &run,     UMEM_COPY_OPTIONS_INIT};
  if (!given.src || !given.dst || !read_options(&given, options)) return UMEM_RESULT();
  if (!nbytes || (umem_validate(given.src, src_adr, nbytes, umemReadable) &&
                  umem_validate(given.dst, dst_adr, nbytes, umemWritable)))
    start(&given, nbytes, transfer);
  return UMEM_RESULT();
}

umemStatusType umem_start_strided(void *src, uintptr_t src_adr, void *dst, uintptr_t dst_adr,
                                  umemLayout const *layout, umemCopyOptions const *options,
                                  umemTransfer **transfer) {
  UMEM_ENTER();
  if (!is_given(transfer)) return UMEM_RESULT();
  umemRanges ranges;
  Start given = {__func__, umem_check(src), umem_check(dst),       src_adr,
                 dst_adr,  layout,          UMEM_COPY_OPTIONS_INIT};
  if (given.src && given.dst && read_options(&given, options) &&
      umem_check_strided(given.src, src_adr, given.dst, dst_adr, layout, &ranges))
    start(&given, ranges.src_bytes ? umem_count_items(layout) * layout->item_size : 0, transfer);
  return UMEM_RESULT();
}

/* ---- the handle ---- */

static bool check(umemTransfer const *self) {
  return self || UMEM_FAIL(NULL, umemValueError, "the transfer is NULL");
}

static bool is_of_parent(umemTransfer const *self) {
  return !is_here(self) && state_of(self) != ended;
}

/* Records the failure of a transfer that has ended. */
static void record(umemTransfer *self) {
  if (is_of_parent(self)) {
    umemVirtual_fail(NULL, umemRuntimeError,
                     "the parent process has started this transfer: it does not go on in a child");
    return;
  }
  if (!has_failed(self)) return;
  __atomic_store_n(&self->seen, true, __ATOMIC_RELAXED);
  umemLock_acquire(&all.lock);
  umemAttempt failure = self->failure;
  umemLock_release(&all.lock);
  umemAttempt_record(&failure);
}

umemStatusType umemTransfer_wait(umemTransfer *transfer) {
  UMEM_ENTER();
  if (!check(transfer)) return UMEM_RESULT();
  if (!has_ended(transfer)) wait_until(transfer, for_ever);
  record(transfer);
  return UMEM_RESULT();
}

bool umemTransfer_wait_for(umemTransfer *transfer, uint64_t nanoseconds) {
  UMEM_ENTER();
  if (!transfer || has_ended(transfer)) return true;
  uint64_t begin = now();
  return wait_until(transfer, nanoseconds < for_ever - begin ? begin + nanoseconds : for_ever);
}

/* Of a copy in the queue of a context no other thread may know that it is done. */
bool umemTransfer_poll(umemTransfer *transfer) {
  UMEM_ENTER();
  if (!transfer || has_ended(transfer)) return true;
  if (state_of(transfer) != queued) return false;
  umem_defer_cancel();
  umemLock_acquire(&all.lock);
  if (state_of(transfer) == queued) advance_queue(transfer, false);
  umemLock_release(&all.lock);
  return has_ended(transfer);
}

void umemTransfer_cancel(umemTransfer *transfer) {
  UMEM_ENTER();
  if (!transfer || has_ended(transfer)) return;
  umem_defer_cancel();
  umemLock_acquire(&all.lock);
  if (!transfer->marked) __atomic_store_n(&transfer->cancelled, true, __ATOMIC_RELAXED);
  if (!transfer->marked && state_of(transfer) == inLine) end(claim(transfer));
  umemLock_release(&all.lock);
}

umemStatusType umemTransfer_progress(umemTransfer *transfer, uint64_t *done, uint64_t *total) {
  UMEM_ENTER();
  if (!check(transfer)) return UMEM_RESULT();
  if (done) *done = __atomic_load_n(&transfer->done, __ATOMIC_RELAXED);
  if (total) *total = transfer->nbytes;
  return umemOK;
}

/* Makes the descriptor. Servers then look how far a queue is. With the lock. */
static int open_descriptor(umemTransfer *self) {
  self->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (self->fd < 0) return errno;
  if (state_of(self) == ended) signal_descriptor(self);
  if (state_of(self) == queued) push(self);
  return 0;
}

int umemTransfer_descriptor(umemTransfer *transfer) {
  UMEM_ENTER();
  umem_defer_cancel();
  char words[100];
  if (!check(transfer)) return -1;
  if (!is_here(transfer)) {
    umemVirtual_fail(NULL, umemRuntimeError,
                     "the parent process has started this transfer: a child cannot wait for it");
    return -1;
  }
  umemLock_acquire(&all.lock);
  int error = transfer->fd < 0 ? open_descriptor(transfer) : 0;
  umemLock_release(&all.lock);
  if (error)
    umemVirtual_fail(NULL, umemRuntimeError, "cannot make a descriptor: %s",
                     umem_system_words(error, words, sizeof words));
  else if (!call_server())
    wait_until(transfer, for_ever);
  return transfer->fd;
}

umemStatusType umemTransfer_release(umemTransfer *transfer) {
  UMEM_ENTER();
  if (!transfer) return umemOK;
  umem_defer_cancel();
  if (!has_ended(transfer)) wait_until(transfer, for_ever);
  if (is_here(transfer)) {
    umemLock_acquire(
        &all.lock); /* the thread that has ended it holds the lock as long as it uses it */
    remove_from_list(transfer);
    umemLock_release(&all.lock);
    if (!transfer->seen && transfer->failure.type != umemCancelledError) record(transfer);
  }
  discard(transfer);
  return UMEM_RESULT();
}
