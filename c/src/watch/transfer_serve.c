/* transfer_serve.c - the threads that serve transfers, and those that wait for one.
 *
 * A transfer waits in a line for servers: up to four workers of core/threads.c, which take the
 * first transfer of a line, do a piece of it, and put it back to the end. Who waits for a transfer
 * that is in a line does its pieces, too; so nothing depends on a free worker. A copy that is
 * queued on a context is in no line, unless it has a descriptor: then servers look how far the
 * queue is.
 *
 * There are two lines. Short transfers are served first. All servers but one do long pieces of long
 * transfers, which keep the threads of a copy busy; the last one does pieces of about a
 * millisecond, so that it is soon free for others.
 *
 * One lock protects the lines, the list, and what watch/transfer.h says. No other lock is taken
 * under this one, but the global one. */
#include "watch/transfer.h"
#include "base/number.h"
#include "core/context.h"
#include "core/threads.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
  most_servers = 4,
  turns = 8,           /* of these, one is for a long transfer if short ones wait, too */
  starts_to_look = 32, /* at a queue */
  most_seen = 256,     /* transfers of the list at a look */
  exit_seconds = 5
};
static size_t const short_below = 1 << 20, least_piece = 256 << 10, shared_piece = 64 << 20,
                    longest_piece = 256 << 20;
static uint64_t const short_time = 1000000, between_queries = 100000; /* ns */

static struct {
  umemLock lock;
  umemTransferLine brief, lengthy;
  umemTransfer *newest; /* list of all that have not ended, or whose failure names a context */
  unsigned servers;     /* that run, or were asked for */
  unsigned running;     /* those that have begun */
  unsigned long_pieces; /* that servers do now */
  unsigned turn;
  uint64_t queued;      /* copies so far; atomic */
  pthread_cond_t fewer; /* a transfer has ended, or a server */
  bool closed;          /* the process exits; atomic */
} all;

/* ---- lines and the list: with the lock ---- */

static umemTransferLine *line_of(umemTransfer const *self) {
  umemTransferFeed *feed = umemTransfer_feed_of(self);
  if (feed) return umemTransferFeed_line(feed);
  return self->nbytes < short_below ? &all.brief : &all.lengthy;
}

static void push(umemTransfer *self) {
  umemTransferLine *line = self->line = line_of(self);
  self->after = NULL;
  self->before = line->last;
  *(line->last ? &line->last->after : &line->first) = self;
  line->last = self;
  line->count++;
  __atomic_store_n(&self->state, umemTransferInLine, __ATOMIC_RELEASE);
}

/* Takes it out of its line, for the calling thread. */
static umemTransfer *claim(umemTransfer *self) {
  umemTransferLine *line = self->line;
  *(self->before ? &self->before->after : &line->first) = self->after;
  *(self->after ? &self->after->before : &line->last) = self->before;
  line->count--;
  __atomic_store_n(&self->state, umemTransferMoving, __ATOMIC_RELEASE);
  return self;
}

static void sort_lines(void) {
  for (umemTransfer *self = all.lengthy.first, *next; self; self = next) {
    next = self->after;
    if (umemTransfer_feed_of(self)) push(claim(self));
  }
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
  umemTransfer_add_uses(self);
  __atomic_fetch_add(&umem_transfers, 1, __ATOMIC_RELAXED);
}

static void remove_from_list(umemTransfer *self) {
  if (!self->listed) return;
  *(self->newer ? &self->newer->older : &all.newest) = self->older;
  if (self->older) self->older->newer = self->newer;
  self->listed = false;
  umemTransfer_remove_uses(self);
  __atomic_fetch_sub(&umem_transfers, 1, __ATOMIC_RELAXED);
}

static bool is_over(umemTransfer const *self) {
  return umemTransfer_has_failed(self) || !umemTransfer_rest(self) ||
         umemTransfer_is_cancelled(self);
}

static void signal_descriptor(umemTransfer const *self) {
  uint64_t const one = 1;
  if (self->fd >= 0) (void)!write(self->fd, &one, sizeof one); /* no more than one is written */
}

/* With the lock, in the thread that has claimed it; that must not touch it afterwards. */
static void end(umemTransfer *self) {
  umemTransfer_close(self);
  if (!umemTransfer_has_failed(self)) remove_from_list(self);
  __atomic_store_n(&self->state, umemTransferEnded, __ATOMIC_RELEASE);
  signal_descriptor(self);
  pthread_cond_broadcast(&self->changed);
  pthread_cond_broadcast(&all.fewer);
}

/* ---- copies that are queued: with the lock ---- */

/* For the calling thread. */
static void claim_queued(umemTransfer *self) {
  if (umemTransfer_state(self) == umemTransferInLine)
    claim(self);
  else
    __atomic_store_n(&self->state, umemTransferMoving, __ATOMIC_RELEASE);
}

/* What the thread has claimed goes on waiting for its queue. */
static void put_back(umemTransfer *self) {
  if (self->fd >= 0) {
    push(self);
    return;
  }
  __atomic_store_n(&self->state, umemTransferQueued, __ATOMIC_RELEASE);
  pthread_cond_broadcast(&self->changed);
}

/* A transfer of the list, from `from` on to older ones, whose copy is in the queue of ctx. NULL if
 * none is near. */
static umemTransfer *next_queued(umemTransfer *from, umemVirtual const *ctx) {
  for (unsigned seen = 0; from && seen < most_seen; seen++, from = from->older)
    if (umemTransfer_state(from) == umemTransferQueued && from->marked == ctx) return from;
  return NULL;
}

/* Ends one that its queue has done, which belongs to the calling thread, and those that the queue
 * has therefore done before. Releases the lock meanwhile. */
static void end_queued(umemTransfer *self) {
  umemTransfer *other = umemTransfer_has_failed(self) ? NULL : self, *earlier = NULL;
  while (other && (other = next_queued(other->older, self->marked)) != NULL) {
    if (other->number > self->first_number) continue; /* its mark may be the later one */
    claim_queued(other);
    other->after = earlier;
    earlier = other;
  }
  end(self);
  umemLock_release(&all.lock);
  for (other = earlier; other; other = other->after) umemTransfer_release_marks(other);
  umemLock_acquire(&all.lock);
  while ((other = earlier) != NULL) {
    earlier = other->after;
    end(other);
  }
}

/* Of what the thread has claimed, servers have nothing to copy any more; but queues may have. */
static void end_served(umemTransfer *self) {
  if (self->reached == self->queue_count) {
    end(self);
    return;
  }
  self->marked = self->queues->layer;
  put_back(self);
}

/* Looks how far the queue is, and ends what it has done. Then a program that starts many copies
 * before it waits for one needs no more marks than are under way. Releases the lock meanwhile. */
static void end_some(umemVirtual const *ctx) {
  umemTransfer *self = all.newest;
  for (unsigned i = 0; self && i < starts_to_look; i++) self = next_queued(self->older, ctx);
  if (!self) return;
  claim_queued(self);
  umemLock_release(&all.lock);
  bool over = umemTransfer_is_reached(self, false);
  umemLock_acquire(&all.lock);
  if (over)
    end_queued(self);
  else
    put_back(self);
}

/* ---- servers ---- */

static unsigned servers_allowed(void) {
  bool closed = __atomic_load_n(&all.closed, __ATOMIC_RELAXED);
  unsigned workers = closed ? 0 : umem_parallel_workers();
  return workers < most_servers ? workers : most_servers;
}

/* Whether a long transfer waits for a server. */
static bool others_wait(void) {
  umemLock_acquire(&all.lock);
  bool any = all.lengthy.count > 0;
  umemLock_release(&all.lock);
  return any;
}

/* How many bytes a server copies now, until it looks for others. With the lock. */
static size_t begin_piece(umemTransfer *self) {
  if (self->nbytes < short_below) return self->nbytes;
  if (all.long_pieces + 1 >= servers_allowed()) return self->piece;
  all.long_pieces++;
  self->is_long = true;
  self->others_wait = others_wait;
  self->sharers = all.long_pieces + (unsigned)umem_lesser(all.lengthy.count, most_servers);
  return all.lengthy.count ? shared_piece : longest_piece;
}

static void end_piece(umemTransfer *self) {
  if (self->is_long) all.long_pieces--;
  self->is_long = false;
  self->sharers = 1;
}

static void adapt_piece(umemTransfer *self, uint64_t nanoseconds) {
  if (nanoseconds > short_time && self->piece > least_piece) self->piece /= 2;
  if (nanoseconds < short_time / 4 && self->piece < shared_piece) self->piece *= 2;
}

static void feed(umemTransfer *self) {
  static umemTransferServing const serving = {&all.lock, claim, push, end, sort_lines};
  self->is_long = false;
  self->sharers = 1;
  umemTransfer_feed(self, &serving);
  all.long_pieces--;
  pthread_cond_broadcast(&all.fewer);
}

/* Does a short or a long piece of what the thread has claimed. Releases the lock meanwhile. */
static void serve_once(umemTransfer *self, size_t most) {
  bool over = false;
  if (self->is_long && self->to && !umemTransfer_is_cancelled(self)) {
    feed(self);
    return;
  }
  umemLock_release(&all.lock);
  if (self->marked) {
    over = umemTransfer_is_reached(self, false);
    if (!over) nanosleep(&(struct timespec){0, (long)between_queries}, NULL);
  } else if (!umemTransfer_is_cancelled(self)) {
    uint64_t begin = umemClock_read(CLOCK_MONOTONIC);
    umemTransfer_copy_piece(self, most);
    if (most == self->piece) adapt_piece(self, umemClock_read(CLOCK_MONOTONIC) - begin);
  }
  umemLock_acquire(&all.lock);
  end_piece(self);
  if (self->marked ? over : is_over(self))
    end_served(self);
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
    self->failure.ctx = self->list ? self->list->items[0].dst : self->dst;
    snprintf(self->failure.text, sizeof self->failure.text, "%s: no memory for a thread",
             self->list ? "umem_start_many" : "umem_start");
    __atomic_store_n(&self->state, umemTransferEnded, __ATOMIC_RELEASE);
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

static uint64_t now(void) { return umemClock_read(CLOCK_MONOTONIC); }

/* With the lock. */
static void wait_for_change(pthread_cond_t *changed, uint64_t deadline) {
  if (deadline == umemTransfer_for_ever)
    umemLock_wait(&all.lock, changed);
  else
    umemLock_wait_until(&all.lock, changed, deadline);
}

/* The calling thread looks how far the queue is. With the lock, which it releases meanwhile. */
static void advance_queue(umemTransfer *self, bool waits) {
  claim_queued(self);
  umemLock_release(&all.lock);
  bool over = umemTransfer_is_reached(self, waits);
  if (!over) nanosleep(&(struct timespec){0, (long)between_queries}, NULL);
  umemLock_acquire(&all.lock);
  if (over)
    end_queued(self);
  else
    put_back(self);
}

/* Waits where a feed has a transfer of a line, or a server may soon begin one with it. A plain copy
 * beside the feed would take the link and the processors from it. Otherwise returns false. With the
 * lock, which it releases meanwhile. */
static bool leave_to_feed(umemTransfer *self, uint64_t deadline) {
  bool is_fed = umemTransfer_feed_of(self);
  if (!is_fed && (!self->to || self->was_left || servers_allowed() < 2)) return false;
  self->was_left = true;
  wait_for_change(&self->changed, is_fed ? deadline : umem_lesser(deadline, now() + short_time));
  return true;
}

/* Brings a transfer forward that has not ended: the calling thread copies, or waits for the one
 * that does. A copy may take longer than until the deadline. So only a server does it before. With
 * the lock, which it releases meanwhile. */
static void advance(umemTransfer *self, uint64_t deadline) {
  bool waits = deadline == umemTransfer_for_ever,
       copies = waits || (!all.running && now() >= deadline);
  umemTransferState state = umemTransfer_state(self);
  if (state == umemTransferQueued || (state == umemTransferInLine && self->marked))
    advance_queue(self, waits);
  else if (state != umemTransferInLine || !copies)
    wait_for_change(&self->changed, deadline);
  else if (!leave_to_feed(self, deadline))
    serve_once(claim(self), waits ? longest_piece : self->piece);
}

bool umemTransfer_wait_until(umemTransfer *self, uint64_t deadline) {
  bool late = false;
  umem_defer_cancel();
  umemLock_acquire(&all.lock);
  while (!umemTransfer_has_ended(self) && !late) {
    late = now() >= deadline;
    advance(self, deadline);
  }
  bool over = umemTransfer_has_ended(self);
  umemLock_release(&all.lock);
  if (!over) call_server(); /* what the calling thread has put back */
  return over;
}

/* ---- the end of a context, of a block, of the process, and of its parent ---- */

static umemTransfer *transfer_of(umemVirtual const *ctx) {
  umemTransfer *self = all.newest;
  while (self && !umemTransfer_names(self, ctx)) self = self->older;
  return self;
}

/* Brings a transfer forward. Another thread may release it as soon as it has ended: so nothing is
 * known of it afterwards. */
static void advance_unknown(umemTransfer *self) {
  if (umemTransfer_state(self) == umemTransferMoving)
    wait_for_change(&all.fewer, umemTransfer_for_ever);
  else
    advance(self, umemTransfer_for_ever);
}

static void leave_context(umemVirtual *ctx) {
  umemLock_acquire(&all.lock);
  for (umemTransfer *self; (self = transfer_of(ctx)) != NULL;) {
    if (umemTransfer_state(self) == umemTransferEnded) {
      self->failure.ctx = self->failure.adopter = NULL;
      remove_from_list(self);
    } else {
      advance_unknown(self);
    }
  }
  while (umemTransfer_is_fed_to(ctx)) wait_for_change(&all.fewer, umemTransfer_for_ever);
  umemLock_release(&all.lock);
}

static void leave_block(umemVirtual *ctx, uintptr_t adr) {
  umem_defer_cancel();
  umemTransferBlock block = umemTransfer_block_at(ctx, adr);
  umemLock_acquire(&all.lock);
  for (umemTransfer *self; (self = umemTransfer_user_of(&block)) != NULL;) advance_unknown(self);
  umemLock_release(&all.lock);
}

static void begin_child(void) {
  umemTransfer_forget_feeds();
  umemTransfer_forget_uses();
  all.brief = all.lengthy = (umemTransferLine){NULL, NULL, 0};
  all.newest = NULL;
  all.servers = all.running = all.long_pieces = 0;
  pthread_cond_init(&all.fewer, NULL);
  __atomic_store_n(&umem_transfers, 0, __ATOMIC_RELAXED);
}

static void close_all(void);

/* exit runs functions of atexit before all destructors, the newest first: transfers end while the
 * memory is still there of libraries that were used before, as CUDA's runtime. */
static void close_at_exit(void) { (void)atexit(close_all); /* else the destructor does */ }

__attribute__((constructor(101))) static void open_all(void) {
  umemLock_init(&all.lock);
  umemLock_init_timed(&all.fewer);
  umem_leave_hook = leave_context;
  umem_block_hook = leave_block;
  umem_exit_hook = close_at_exit;
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

/* ---- what transfer.c needs ---- */

bool umemTransfer_is_served(void) { return servers_allowed() > 0; }

void umemTransfer_serve(umemTransfer *self) {
  static pthread_once_t at_first = PTHREAD_ONCE_INIT;
  pthread_once(&at_first, close_at_exit);
  self->piece = short_below;
  self->whole = self->nbytes < short_below || umemTransfer_overlaps(self);
  umemTransfer_find_feed(self);
  umemLock_acquire(&all.lock);
  add(self);
  push(self);
  bool served = all.servers && !needs_server();
  umemLock_release(&all.lock);
  if (!served && !call_server()) umemTransfer_wait_until(self, umemTransfer_for_ever);
}

void umemTransfer_list_queued(umemTransfer *self) {
  umemLock_acquire(&all.lock);
  add(self);
  self->marked = self->queues->layer;
  __atomic_store_n(&self->state, umemTransferQueued, __ATOMIC_RELEASE);
  uint64_t number = __atomic_add_fetch(&all.queued, 1, __ATOMIC_RELEASE);
  bool looks = number % starts_to_look == 0;
  if (!self->number) self->number = number;
  if (looks) end_some(self->marked);
  umemLock_release(&all.lock);
  if (looks) call_server(); /* what was put back may have a descriptor */
}

uint64_t umemTransfer_count_queued(void) { return __atomic_load_n(&all.queued, __ATOMIC_ACQUIRE); }

/* With the lock. */
static int open_descriptor(umemTransfer *self) {
  self->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (self->fd < 0) return errno;
  if (umemTransfer_state(self) == umemTransferEnded) signal_descriptor(self);
  if (umemTransfer_state(self) == umemTransferQueued) push(self);
  return 0;
}

int umemTransfer_open_descriptor(umemTransfer *self) {
  umemLock_acquire(&all.lock);
  int error = self->fd < 0 ? open_descriptor(self) : 0;
  umemLock_release(&all.lock);
  if (!error && !call_server()) umemTransfer_wait_until(self, umemTransfer_for_ever);
  return error;
}

/* No other thread may know that the queue has done the copy. */
void umemTransfer_look(umemTransfer *self) {
  umem_defer_cancel();
  umemLock_acquire(&all.lock);
  if (umemTransfer_state(self) == umemTransferQueued) advance_queue(self, false);
  bool waits = self->fd >= 0 && !umemTransfer_has_ended(self);
  umemLock_release(&all.lock);
  if (waits) call_server();
}

void umemTransfer_stop(umemTransfer *self) {
  umemLock_acquire(&all.lock);
  if (!self->marked) __atomic_store_n(&self->cancelled, true, __ATOMIC_RELAXED);
  if (!self->marked && umemTransfer_state(self) == umemTransferInLine) end_served(claim(self));
  umemLock_release(&all.lock);
}

/* The thread that has ended it holds the lock as long as it uses it. */
void umemTransfer_leave(umemTransfer *self) {
  umemLock_acquire(&all.lock);
  remove_from_list(self);
  umemLock_release(&all.lock);
}

umemAttempt umemTransfer_failure(umemTransfer *self) {
  umemLock_acquire(&all.lock);
  umemAttempt failure = self->failure;
  umemLock_release(&all.lock);
  return failure;
}
