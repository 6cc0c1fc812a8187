/* transfer_feed.c - long transfers to one GPU, as one sequence of pieces.
 *
 * A copy to a GPU fills its pinned buffers at the beginning, and waits for them at the end. If each
 * transfer did so by itself, the link would be idle between two. So the server that begins a
 * transfer hands out its pieces to several threads, through the method copy_pieces
 * (umem/virtual.h), and when all are taken, those of the next transfer to the same context.
 * Transfers that are started meanwhile wait in the line of the feed, not in that of the servers.
 * When nothing is left, the threads wait for more, as to wake them takes as long as 5 MiB, and then
 * leave together: the few that stayed would be alone with the next transfer.
 *
 * A thread that begins holds the transfer that it has found as if it had a piece of it, because the
 * method may look at the contexts. The lock of transfer_serve.c protects all but constants. */
#include "base/number.h"
#include "core/adaptor.h"
#include "core/context.h"
#include "core/threads.h"
#include "watch/transfer.h"

enum { most_fed = 16, most_threads = 12 /* more gain nothing (H100, 16 cores) */ };
static size_t const fed_from = 2 << 20, least_piece = 1 << 20, most_piece = 4 << 20;
static uint64_t const patience = 300000; /* ns */

/* A transfer whose pieces are handed out. */
typedef struct Fed {
  umemTransfer *transfer; /* NULL: none */
  uintptr_t number;       /* of all that were fed; most_fed times that, and the index, names it */
  umemMeter meter;        /* of its bytes from `before` on */
  size_t before, taken;
  unsigned running; /* pieces, and threads that begin with it */
} Fed;

struct umemTransferFeed {
  umemTransferServing const *serving;
  umemTransferLine line;
  umemVirtual *to;
  struct umemVtbl const *vptr; /* of all sources; as are */
  unsigned capabilities;
  unsigned threads, running; /* running: of all */
  uintptr_t number;
  Fed fed[most_fed], *current; /* current: has pieces that no thread has taken; or NULL */
  uint64_t idle_until;         /* if nothing runs: of CLOCK_MONOTONIC */
  bool over;                   /* a thread has left: the feed takes no more transfers */
  pthread_cond_t changed;      /* there may be a piece, or nothing runs any more */
  umemTransferFeed *next;
};

static umemTransferFeed *feeds; /* those that run */

/* One thread. */
typedef struct Feeder {
  umemFeed feed;
  umemTransferFeed *all;
  Fed *first; /* held until the method calls next */
  size_t open;
  umemAttempt attempt;
} Feeder;

/* ---- which transfers ---- */

/* RAM and files. What a device reaches, and what waits for a server, has ways of its own. */
static bool is_read_in_pieces(umemVirtual *from) {
  unsigned never = umemOrdered | umemDeviceShared | umemDeviceAccessible;
  return umem_can(from, umemConcurrent) && !(from->capabilities & never) &&
         (umem_cpu_reads(from) || UMEM_SLOT(from, window));
}

void umemTransfer_find_feed(umemTransfer *self) {
  if (self->whole || self->list || self->layout.rank || self->nbytes < fed_from) return;
  umemAttempt forgotten;
  umemAttempt_begin(&forgotten);
  umemVirtual *from = umemAdaptor_mover(self->src), *to = umemAdaptor_mover(self->dst);
  umemAttempt_end(&forgotten);
  bool can = from && to && UMEM_SLOT(to, copy_pieces) && umem_can(to, umemConcurrent) &&
             is_read_in_pieces(from);
  self->from = can ? from : NULL;
  self->to = can ? to : NULL;
}

umemTransferFeed *umemTransfer_feed_of(umemTransfer const *self) {
  if (!self->to) return NULL;
  umemTransferFeed *feed = feeds;
  while (feed && (feed->over || feed->to != self->to || feed->vptr != self->from->vptr ||
                  feed->capabilities != self->from->capabilities))
    feed = feed->next;
  return feed;
}

umemTransferLine *umemTransferFeed_line(umemTransferFeed *self) {
  pthread_cond_broadcast(&self->changed);
  return &self->line;
}

bool umemTransfer_is_fed_to(umemVirtual const *ctx) {
  umemTransferFeed *feed = feeds;
  while (feed && feed->to != ctx) feed = feed->next;
  return feed;
}

/* ---- the sequence: with the lock ---- */

static bool has_pieces(Fed const *fed) {
  umemTransfer const *transfer = fed->transfer;
  return fed->taken < transfer->nbytes && !umemTransfer_has_failed(transfer) &&
         !umemTransfer_is_cancelled(transfer);
}

/* Ends its transfer, if nothing of that runs or will. Pieces that arrived far ahead may not have
 * been noted. */
static void end_if_over(umemTransferFeed *self, Fed *fed) {
  umemTransfer *transfer = fed->transfer;
  if (fed->running || fed == self->current) return;
  if (!umemTransfer_has_failed(transfer) && fed->taken == transfer->nbytes)
    __atomic_store_n(&transfer->done, transfer->nbytes, __ATOMIC_RELAXED);
  self->serving->end(transfer);
  fed->transfer = NULL;
  pthread_cond_broadcast(&self->changed);
}

static Fed *unused(umemTransferFeed *self) {
  for (Fed *fed = self->fed; fed < self->fed + most_fed; fed++)
    if (!fed->transfer) return fed;
  return NULL;
}

static void begin_fed(umemTransferFeed *self, Fed *fed, umemTransfer *transfer) {
  *fed = (Fed){.transfer = transfer,
               .number = self->number++ * most_fed + (uintptr_t)(fed - self->fed),
               .before = transfer->done,
               .taken = transfer->done};
  self->current = fed;
}

/* The transfer whose piece is to be taken next. NULL: there is none now. */
static Fed *find_current(umemTransferFeed *self) {
  for (;;) {
    Fed *fed = self->current;
    if (fed && has_pieces(fed)) return fed;
    self->current = NULL;
    if (fed) end_if_over(self, fed);
    Fed *next = self->line.first ? unused(self) : NULL;
    if (!next) return NULL;
    begin_fed(self, next, self->serving->claim(self->line.first));
  }
}

static void hold(Feeder *self, Fed *fed) {
  fed->running++;
  self->all->running++;
}

static void let_go(Feeder *self, Fed *fed) {
  fed->running--;
  self->all->running--;
  end_if_over(self->all, fed);
  if (self->all->running) return;
  self->all->idle_until = umemClock_read(CLOCK_MONOTONIC) + patience;
  pthread_cond_broadcast(&self->all->changed);
}

static void end_feed(umemTransferFeed *self) {
  self->over = true;
  pthread_cond_broadcast(&self->changed);
}

/* There is no piece. */
static void wait_for_more(umemTransferFeed *self) {
  uint64_t until = self->running ? umemTransfer_for_ever : self->idle_until;
  if (umemClock_read(CLOCK_MONOTONIC) >= until)
    end_feed(self);
  else
    umemLock_wait_until(self->serving->lock, &self->changed, until);
}

static void let_first_go(Feeder *self) {
  if (!self->first) return;
  umem_thread.step = NULL; /* it may end with the transfer */
  let_go(self, self->first);
  self->first = NULL;
}

/* ---- what the method gets ---- */

static void take(Feeder *self, Fed *fed, size_t most, umemCopyPiece *piece) {
  umemTransfer *transfer = fed->transfer;
  size_t wanted = umem_greater(least_piece, transfer->nbytes / 16 / least_piece * least_piece);
  size_t nbytes = umem_lesser(umem_lesser(most, most_piece), wanted);
  nbytes = umem_lesser(nbytes, transfer->nbytes - fed->taken);
  *piece = (umemCopyPiece){.src_adr = transfer->src_adr + fed->taken,
                           .dst_adr = transfer->dst_adr + fed->taken,
                           .nbytes = nbytes,
                           .dst = transfer->to,
                           .copy = fed->number};
  self->feed.src = transfer->from;
  fed->taken += nbytes;
  self->open++;
  hold(self, fed);
}

static bool next_piece(umemFeed *feed, size_t most, umemCopyPiece *piece) {
  Feeder *self = (Feeder *)feed;
  umemTransferFeed *all = self->all;
  umemLock *lock = all->serving->lock;
  Fed *fed;
  umemLock_acquire(lock);
  let_first_go(self);
  while (!(fed = find_current(all)) && !self->open && !all->over) wait_for_more(all);
  if (fed) take(self, fed, most, piece);
  umemLock_release(lock);
  return fed;
}

static Fed *fed_of(Feeder *self, umemCopyPiece const *piece) {
  return &self->all->fed[piece->copy % most_fed];
}

/* Names the transfer in messages, and in the ledger. */
static void name(umemTransfer *transfer) {
  umem_thread.function = transfer->function;
  umem_thread.step = transfer->watch ? &transfer->watch->step : NULL;
}

static void about_piece(umemFeed *feed, umemCopyPiece const *piece) {
  name(fed_of((Feeder *)feed, piece)->transfer);
}

/* With the lock. */
static void note_piece(Feeder *self, Fed *fed, umemCopyPiece const *piece, bool done) {
  umemTransfer *transfer = fed->transfer;
  if (done) {
    size_t at = piece->src_adr - transfer->src_adr - fed->before;
    size_t arrived = fed->before + umemMeter_note(&fed->meter, at, piece->nbytes);
    __atomic_store_n(&transfer->done, arrived, __ATOMIC_RELAXED);
  } else if (!umemTransfer_has_failed(transfer)) {
    transfer->failure = self->attempt;
  }
}

static void end_piece(umemFeed *feed, umemCopyPiece const *piece, bool done) {
  Feeder *self = (Feeder *)feed;
  Fed *fed = fed_of(self, piece);
  if (!done && !umemAttempt_failed(&self->attempt))
    umemVirtual_fail(piece->dst, umemRuntimeError, "%s gave no reason for a failure",
                     umem_get_device_name(piece->dst));
  umem_thread.step = NULL; /* it may end with the transfer */
  if (!done) {
    umem_record_on_layers(fed->transfer->to, fed->transfer->dst, self->attempt.failures);
    umem_record_on_layers(fed->transfer->from, fed->transfer->src, self->attempt.failures);
    umemAttempt_end(&self->attempt);
  }
  umemLock_acquire(self->all->serving->lock);
  note_piece(self, fed, piece, done);
  self->open--;
  let_go(self, fed);
  umemLock_release(self->all->serving->lock);
  if (!done) umemAttempt_begin(&self->attempt);
}

/* ---- the threads ---- */

static void call_method(Feeder *self) {
  umemTransfer *transfer = self->first->transfer;
  name(transfer);
  umemAttempt_begin(&self->attempt);
  transfer->to->vptr->copy_pieces(transfer->to, transfer->from, &self->feed);
  umemAttempt_end(&self->attempt);
}

static void feed_thread(void *data, unsigned number) {
  (void)number;
  umemTransferFeed *all = data;
  Feeder self = {.feed = {all->threads, next_piece, about_piece, end_piece, NULL, all}, .all = all};
  char const *function = umem_thread.function;
  struct umemOpenStep *step = umem_thread.step;
  umemLock_acquire(all->serving->lock);
  while (!(self.first = find_current(all)) && !all->over) wait_for_more(all);
  if (self.first) hold(&self, self.first);
  umemLock_release(all->serving->lock);
  if (!self.first) return;
  call_method(&self);
  umemLock_acquire(all->serving->lock);
  let_first_go(&self);
  end_feed(all);
  umemLock_release(all->serving->lock);
  umem_thread.function = function;
  umem_thread.step = step;
  if (umemAttempt_failed(&self.attempt)) umemAttempt_record(&self.attempt); /* of no piece */
}

/* ---- the feed ---- */

/* Servers of other transfers get workers beside these (umem_parallel_background). */
static unsigned free_threads(void) {
  unsigned workers = umem_parallel_workers(), taken = 0;
  for (umemTransferFeed const *feed = feeds; feed; feed = feed->next)
    taken += feed->over ? 0 : feed->threads;
  return workers > taken ? (unsigned)umem_lesser(workers - taken, most_threads) : 1;
}

static void open_feed(umemTransferFeed *self) {
  self->threads = free_threads();
  umemLock_init_timed(&self->changed);
  self->next = feeds;
  feeds = self;
  __atomic_fetch_add(&umem_transfers, 1, __ATOMIC_RELAXED); /* contexts that end look for it */
}

/* To the line of servers, or to who waits for it. */
static void put_back(umemTransferFeed *self, umemTransfer *transfer) {
  self->serving->push(transfer);
  pthread_cond_broadcast(&transfer->changed);
}

/* What the method has not taken is served like any other transfer. */
static void give_back(umemTransferFeed *self) {
  Fed *fed = self->current;
  self->current = NULL;
  if (fed && has_pieces(fed)) {
    fed->transfer->from = fed->transfer->to = NULL;
    put_back(self, fed->transfer);
  } else if (fed) {
    end_if_over(self, fed);
  }
  while (self->line.first) put_back(self, self->serving->claim(self->line.first));
}

static void close_feed(umemTransferFeed *self) {
  umemTransferFeed **link = &feeds;
  while (*link != self) link = &(*link)->next;
  *link = self->next;
  give_back(self);
  pthread_cond_destroy(&self->changed);
  __atomic_fetch_sub(&umem_transfers, 1, __ATOMIC_RELAXED);
}

void umemTransfer_feed(umemTransfer *self, umemTransferServing const *serving) {
  umemTransferFeed feed = {.serving = serving,
                           .to = self->to,
                           .vptr = self->from->vptr,
                           .capabilities = self->from->capabilities};
  open_feed(&feed);
  begin_fed(&feed, feed.fed, self);
  serving->sort_lines();
  umemLock_release(serving->lock);
  umem_parallel(feed.threads, feed_thread, &feed);
  umemLock_acquire(serving->lock);
  close_feed(&feed);
}

void umemTransfer_forget_feeds(void) { feeds = NULL; }
