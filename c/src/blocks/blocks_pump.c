/* blocks_pump.c - moves blocks between an array and a place, by several threads if there are some.
 *
 * Reading and writing are two tasks. A block may be read when its slot is free, and written when it
 * was given back (and, where it replaces ghost rows of later blocks, when these have been read). A
 * task has a thread of its own, or the calling thread does its blocks while it waits for the next
 * block. So the same conditions hold with any number of threads.
 *
 * The thread that reads shares the blocks with the workers of all copies. Only one thread writes,
 * because after a failure no later block may be written.
 *
 * The blocks are one sequence of pieces. Each thread takes the next piece, and reads it. So all
 * threads are busy until the last block, however many pieces a block has. A thread that finds no
 * piece waits while others read: the program may give a block back meanwhile. When no thread reads
 * any more, the threads return to the workers that all copies share.
 *
 * A block is one piece if every copy has to wait for a device, or if its route is only for long
 * copies. Several such blocks are read at the same time. */
#include "blocks/blocks.h"
#include "base/number.h"
#include "core/context.h"
#include "core/threads.h"

#include <stdlib.h>

/* ==== reads ==== */

/* Ends what a thread does for the blocks while that waits for a server. */
typedef struct Patience {
  umemWaiter waiter, *outer; /* of the thread */
  umemPump *pump;
  bool writes;
} Patience;

/* One thread that reads. */
typedef struct Reader {
  umemFeed feed;
  umemPump *pump;
  size_t open; /* pieces that have not ended */
  umemAttempt attempt;
  size_t number; /* of the block that it is about */
  char name[umemBlockNameSize];
} Reader;

/* ---- which pieces there are: under the lock ---- */

static bool is_stopped(umemPump const *pump) {
  return pump->stopping || pump->cancelled || pump->reads.failed || pump->writes.failed;
}

/* Whether a block has begun that has more pieces. */
static bool is_within(umemReads const *reads) { return reads->at < reads->nbytes; }

static bool can_read(umemPump const *pump) {
  umemReads const *reads = &pump->reads;
  if (is_stopped(pump)) return false;
  return is_within(reads) ||
         (reads->begun < reads->limit && reads->begun - pump->writes.done < pump->slots.plan.depth);
}

static bool reads_are_over(umemPump const *pump) {
  umemReads const *reads = &pump->reads;
  bool last = reads->begun == pump->slots.plan.blocks && !is_within(reads);
  return !reads->running && (last || is_stopped(pump));
}

/* The state of the block that is in a slot. */
static umemSlotState *state_of(umemPump *pump, size_t number) {
  return &pump->state[number % pump->slots.plan.depth];
}

/* Begins the next block. */
static void begin_block(umemPump *pump) {
  umemReads *reads = &pump->reads;
  size_t number = reads->begun++;
  umemSlotState *state = state_of(pump, number);
  reads->at = 0;
  reads->nbytes = umemSlots_nbytes(&pump->slots, number);
  state->left = reads->nbytes;
  state->step = (umemOpenStep){0};
  if (!umem_is_watched()) return;
  umem_thread.step = NULL; /* of another block */
  umem_trace_open(&state->trace, &state->step, pump->slots.plan.given.source.ctx,
                  umemSlots_queue(&pump->slots, number), reads->nbytes);
  umem_trace_let_go(&state->step);
}

/* Takes the next piece of about `most` bytes. There is one. */
static umemSlotPart take_part(umemPump *pump, size_t most) {
  umemReads *reads = &pump->reads;
  if (!is_within(reads)) begin_block(pump);
  umemSlotPart part = umemSlots_part(&pump->slots, reads->begun - 1, reads->at, most);
  reads->at += part.nbytes;
  reads->running++;
  return part;
}

/* Counts the blocks that are done: those before the first that is not, or that has failed. */
static void count_done(umemPump *pump) {
  umemReads *reads = &pump->reads;
  size_t end = reads->failed ? umem_lesser(reads->begun, reads->failed_at) : reads->begun;
  while (reads->done < end && !state_of(pump, reads->done)->left) reads->done++;
}

/* Of several failures that of the first block counts: all blocks before it are done. */
static void hold_failure(umemReads *reads, size_t number, umemAttempt const *attempt) {
  if (reads->failed && reads->failed_at <= number) return;
  reads->failed = true;
  reads->failed_at = number;
  reads->held = *attempt;
}

/* ---- waiting ---- */

/* Lets the program cancel, without the lock. */
static bool goes_on(umemPump *pump) {
  if (umem_goes_on()) return true;
  umemLock_acquire(&pump->lock);
  if (!is_stopped(pump)) pump->cancelled = true;
  pump->interrupted = true;
  pthread_cond_broadcast(&pump->changed);
  umemLock_release(&pump->lock);
  return false;
}

/* With the lock. A thread of umem may wait for a server: then the program's one cancels. */
static void wait_for_change(umemPump *pump) {
  uint64_t const patience = 100000000, deadline = umemClock_read(CLOCK_MONOTONIC) + patience;
  umemLock_wait_until(&pump->lock, &pump->changed, deadline);
  if (umemClock_read(CLOCK_MONOTONIC) < deadline) return;
  umemLock_release(&pump->lock);
  goes_on(pump);
  umemLock_acquire(&pump->lock);
}

/* Blocks that were given back are written though the program cancels, but not while a server is
 * silent and the user interrupts. */
static bool is_wanted(umemWaiter *waiter) {
  Patience *self = (Patience *)waiter;
  umemLock_acquire(&self->pump->lock);
  bool stopped = self->writes ? self->pump->interrupted : is_stopped(self->pump);
  umemLock_release(&self->pump->lock);
  if (stopped) return false;
  umem_thread.waiter = self->outer;
  bool wanted = goes_on(self->pump);
  umem_thread.waiter = waiter;
  return wanted;
}

/* ---- one thread ---- */

/* Names the block in messages, and in the ledger. */
static void enter_block(Reader *self, size_t number) {
  umemPump *pump = self->pump;
  umemOpenStep *step = &state_of(pump, number)->step;
  umem_thread.step = step->trace ? step : NULL;
  if (self->number == number) return;
  self->number = number;
  umem_thread.function = self->name;
  umemBlocksPlan_name(&pump->slots.plan, pump->function, "reading", number, self->name);
}

/* Takes the next piece; first waits for one, if the thread has none under way and others read. */
static bool take(Reader *self, size_t most, umemSlotPart *part) {
  umemPump *pump = self->pump;
  UMEM_LOCKED(&pump->lock);
  while (!can_read(pump) && !is_stopped(pump) && !self->open && pump->reads.running)
    wait_for_change(pump);
  bool taken = can_read(pump);
  if (taken) *part = take_part(pump, most);
  self->open += taken;
  return taken;
}

static void end_part(Reader *self, size_t number, size_t nbytes, bool done) {
  umemPump *pump = self->pump;
  umemReads *reads = &pump->reads;
  umem_thread.step = NULL; /* it may end with the block */
  if (!done) umemAttempt_end(&self->attempt);
  umemLock_acquire(&pump->lock);
  umemSlotState *state = state_of(pump, number);
  if (done)
    state->left -= nbytes;
  else
    hold_failure(reads, number, &self->attempt);
  bool whole = done && !state->left;
  if (whole) {
    umem_trace_close(&state->step, false);
    count_done(pump);
  }
  self->open--;
  reads->running--;
  if (whole || !done || !reads->running) pthread_cond_broadcast(&pump->changed);
  umemLock_release(&pump->lock);
  if (!done) umemAttempt_begin(&self->attempt);
}

static void read_part(Reader *self, umemSlotPart const *part) {
  enter_block(self, part->number);
  bool done = umemSlots_read(&self->pump->slots, part);
  end_part(self, part->number, part->nbytes, done);
}

/* ---- what a method copy_pieces gets ---- */

/* The method gets runs only: repeated rows and rows with gaps are read here. */
static bool next_piece(umemFeed *feed, size_t most, umemCopyPiece *piece) {
  Reader *self = (Reader *)feed;
  umemSlotPart part;
  while (take(self, umem_lesser(most, self->pump->reads.piece), &part)) {
    if (umemSlots_piece(&self->pump->slots, &part, piece)) return true;
    read_part(self, &part);
  }
  return false;
}

static void about_piece(umemFeed *feed, umemCopyPiece const *piece) {
  enter_block((Reader *)feed, piece->copy);
}

/* A piece that failed for no reason must not end the blocks without a failure. */
static void end_piece(umemFeed *feed, umemCopyPiece const *piece, bool done) {
  Reader *self = (Reader *)feed;
  if (!done && !umemAttempt_failed(&self->attempt)) {
    enter_block(self, piece->copy);
    umemVirtual_fail(piece->dst, umemRuntimeError, "%s gave no reason for a failure",
                     umem_get_device_name(piece->dst));
  }
  end_part(self, piece->copy, piece->nbytes, done);
}

/* ---- several threads ---- */

typedef struct Job {
  umemPump *pump;
  unsigned threads;
  unsigned whole; /* of them: read whole blocks, where these are not cut */
} Job;

static bool read_by_method(Reader *self) {
  umemPump *pump = self->pump;
  umemVirtual *queue = pump->slots.queues[0];
  return pump->reads.by_method &&
         queue->vptr->copy_pieces(queue, pump->slots.plan.given.source.ctx, &self->feed);
}

/* A failure that belongs to no piece, such as one of leaving a GPU, is one of the next block. */
static void end_reader(Reader *self) {
  umemAttempt_end(&self->attempt);
  if (!umemAttempt_failed(&self->attempt)) return;
  UMEM_LOCKED(&self->pump->lock);
  hold_failure(&self->pump->reads, self->pump->reads.done, &self->attempt);
  pthread_cond_broadcast(&self->pump->changed);
}

/* Copies piece by piece where that is as good, or else whole blocks. */
static void read_by_copies(Reader *self, unsigned threads) {
  umemReads const *reads = &self->pump->reads;
  umemSlotPart part;
  umem_thread.sharers = threads;
  while (take(self, reads->cuts ? reads->piece : SIZE_MAX, &part)) read_part(self, &part);
}

static void read_pieces(void *data, unsigned number) {
  Job const *job = data;
  umemVirtual *src = job->pump->slots.plan.given.source.ctx;
  Reader self = {.feed = {job->threads, next_piece, about_piece, end_piece, src, job->pump},
                 .pump = job->pump,
                 .number = SIZE_MAX};
  Patience patience = {{is_wanted}, umem_thread.waiter, job->pump, false};
  char const *function = umem_thread.function;
  struct umemOpenStep *step = umem_thread.step;
  unsigned sharers = umem_thread.sharers;
  unsigned copiers = job->pump->reads.cuts ? job->threads : job->whole;
  umem_thread.function = job->pump->function; /* until it has a piece */
  umem_thread.sharers = job->threads;
  umem_thread.waiter = &patience.waiter;
  umemAttempt_begin(&self.attempt);
  if (!read_by_method(&self) && number < copiers) read_by_copies(&self, copiers);
  end_reader(&self);
  umem_thread.waiter = patience.outer;
  umem_thread.function = function;
  umem_thread.sharers = sharers;
  umem_thread.step = step;
}

/* Sets how many threads read the next blocks: as many as there is room for if the program has no
 * block. */
static void choose_threads(Job *job, bool one) {
  umemReads const *reads = &job->pump->reads;
  umemBlocksPlan const *plan = &job->pump->slots.plan;
  size_t blocks = umem_lesser(one ? 1 : plan->depth, plan->blocks - reads->begun);
  job->whole = (unsigned)umem_lesser(blocks, reads->whole);
  job->threads = job->whole;
  if (reads->cuts || reads->by_method)
    job->threads = umem_parallel_pieces(blocks * plan->in_bytes, umemLeastPiece, reads->threads);
}

/* Blocks that were begun, and will not be ended. */
static void close_traces(umemPump *pump) {
  for (size_t i = 0; i < pump->slots.plan.depth; i++) umem_trace_close(&pump->state[i].step, true);
}

static bool is_served(umemPumpTask const *task) { return task->has_thread && !task->has_left; }

/* With the lock, which it releases meanwhile. The calling thread reads one block. */
static void run_reads(umemPump *pump) {
  Job job = {.pump = pump};
  bool one = !is_served(&pump->reading);
  choose_threads(&job, one);
  if (one) pump->reads.limit = pump->reads.begun + 1;
  umemLock_release(&pump->lock);
  umem_parallel(job.threads, read_pieces, &job);
  umemLock_acquire(&pump->lock);
  pump->reads.limit = pump->slots.plan.blocks;
  if (reads_are_over(pump)) close_traces(pump);
}

/* ==== writes ==== */

static bool has_destination(umemPump const *pump) { return pump->slots.plan.given.destination.ctx; }

static bool can_write(umemPump const *pump) {
  umemWrites const *writes = &pump->writes;
  bool old_values_are_read =
      reads_are_over(pump) || pump->reads.done > writes->done + pump->slots.plan.ahead;
  return has_destination(pump) && !writes->running && !writes->failed &&
         writes->done < pump->back && old_values_are_read;
}

/* Whether all is written that will be. */
static bool all_is_written(umemPump const *pump) {
  return pump->writes.failed || pump->writes.done == pump->back;
}

static bool writes_are_over(umemPump const *pump) {
  return all_is_written(pump) && (pump->stopping || pump->writes.failed);
}

/* With the lock, which it releases meanwhile. */
static void write_block(umemPump *pump) {
  umemWrites *writes = &pump->writes;
  size_t number = writes->done;
  writes->running = true;
  umemLock_release(&pump->lock);
  char name[umemBlockNameSize];
  umemBlocksPlan_name(&pump->slots.plan, pump->function, "writing", number, name);
  char const *function = umem_thread.function;
  Patience patience = {{is_wanted}, umem_thread.waiter, pump, true};
  umem_thread.function = name;
  umem_thread.waiter = &patience.waiter;
  umemAttempt attempt;
  umemAttempt_begin(&attempt);
  bool done = umemSlots_write(&pump->slots, number);
  umemAttempt_end(&attempt);
  umem_thread.waiter = patience.outer;
  umem_thread.function = function;
  umemLock_acquire(&pump->lock);
  writes->running = false;
  writes->done += done;
  writes->failed = !done;
  if (!done) writes->held = attempt;
  pthread_cond_broadcast(&pump->changed);
}

/* ==== tasks ==== */

/* Without its thread variables the thread leaves the task to the calling thread. */
static void *serve(void *argument) {
  umemPumpTask *task = argument;
  umemPump *pump = task->pump;
  bool serves = umem_worker_has_data();
  UMEM_LOCKED(&pump->lock);
  if (!serves) {
    task->has_left = true;
    pthread_cond_broadcast(&pump->changed);
  }
  while (serves && !task->is_over(pump)) {
    if (task->can_run(pump))
      task->run(pump);
    else
      pthread_cond_wait(&pump->changed, &pump->lock.mutex);
  }
  return NULL;
}

/* Does a step of a task that has no thread; if there is none to do, waits for a change. */
static void run_or_wait(umemPump *pump) {
  if (!is_served(&pump->writing) && can_write(pump))
    write_block(pump); /* it frees a slot */
  else if (!is_served(&pump->reading) && can_read(pump))
    run_reads(pump);
  else
    wait_for_change(pump);
}

/* ==== the program's side ==== */

/* Work that the program has queued with the block comes before what is done with its memory from
 * now on. */
static bool order_after_work(umemPump *pump, size_t number) {
  if (umemSlots_queue(&pump->slots, number) == pump->slots.plan.given.place) return true;
  char name[umemBlockNameSize];
  char const *function = umem_thread.function;
  umemBlocksPlan_name(&pump->slots.plan, pump->function, "ordering", number, name);
  umem_thread.function = name;
  bool ordered = umemSlots_order(&pump->slots, number);
  umem_thread.function = function;
  return ordered;
}

bool umemPump_give_back(umemPump *pump) {
  if (!order_after_work(pump, pump->back)) return false;
  UMEM_LOCKED(&pump->lock);
  pump->back++;
  if (!has_destination(pump)) pump->writes.done++;
  pthread_cond_broadcast(&pump->changed);
  return true;
}

/* Under the lock. */
static bool is_taken_or_never(umemPump *pump, bool *taken) {
  bool ended = pump->cancelled || pump->writes.failed || pump->given == pump->slots.plan.blocks;
  *taken = !ended && pump->given < pump->reads.done;
  pump->given += *taken;
  bool missed = pump->reads.failed && pump->reads.done == pump->reads.failed_at;
  return *taken || ended || (missed && pump->given == pump->reads.done);
}

bool umemPump_take(umemPump *pump, umemBlock *block) {
  bool taken;
  umemLock_acquire(&pump->lock);
  while (!is_taken_or_never(pump, &taken)) run_or_wait(pump);
  umemLock_release(&pump->lock);
  if (!taken) return false;
  size_t number = pump->given - 1;
  bool clamped = pump->slots.plan.given.ghosts == umemGhostsClamped;
  umemBlockRange range = umemBlocksPlan_range(&pump->slots.plan, number);
  *block = (umemBlock){.size = sizeof *block,
                       .number = number,
                       .first = range.first,
                       .rows = range.rows,
                       .before = clamped ? pump->slots.plan.given.before : range.before,
                       .after = clamped ? pump->slots.plan.given.after : range.after,
                       .adr = umemSlots_adr(&pump->slots, number),
                       .out = umemSlots_out(&pump->slots, number)};
  return true;
}

void umemPump_drain(umemPump *pump) {
  UMEM_LOCKED(&pump->lock);
  pump->stopping = true;
  pthread_cond_broadcast(&pump->changed);
  while (!reads_are_over(pump) || !all_is_written(pump)) run_or_wait(pump);
}

/* In a child of fork the condition may wait for ever for threads that were about to leave it. */
void umemPump_cancel(umemPump *pump) {
  if (umemPump_is_lost(pump)) return;
  UMEM_LOCKED(&pump->lock);
  pump->cancelled = true;
  pthread_cond_broadcast(&pump->changed);
}

bool umemPump_is_cancelled(umemPump *pump) {
  UMEM_LOCKED(&pump->lock);
  return pump->cancelled;
}

uint64_t umemPump_done(umemPump *pump) {
  UMEM_LOCKED(&pump->lock);
  uint64_t rows = (uint64_t)pump->writes.done * pump->slots.plan.rows;
  return rows < pump->slots.plan.given.count ? rows : pump->slots.plan.given.count;
}

/* ==== beginning and end ==== */

/* Bytes of a block that are worth a thread: to wake one takes 15 to 50 us, as copying them does. */
static size_t const woken_for = 256 << 10;

bool umemPump_is_lost(umemPump const *pump) {
  return pump->forks != umem_fork_count() && (pump->reading.has_thread || pump->writing.has_thread);
}

static bool is_concurrent(umemPump const *pump) {
  umemBlocksOptions const *given = &pump->slots.plan.given;
  bool all = umem_can(given->source.ctx, umemConcurrent) &&
             umem_can(given->place, umemConcurrent) &&
             (!has_destination(pump) || umem_can(given->destination.ctx, umemConcurrent));
  for (size_t i = 0; i < pump->slots.queue_count; i++)
    all = all && umem_can(pump->slots.queues[i], umemConcurrent);
  return all;
}

/* Where the thread cannot be started, the calling thread does its part. */
static void start_thread(umemPumpTask *task) {
  task->has_thread = true; /* before the thread looks */
  if (umem_thread_start(&task->thread, serve, task) != 0) task->has_thread = false;
}

/* RAM, or what the page cache holds or reads ahead; under adaptors, too. */
static bool is_quick(umemVirtual *ctx) {
  bool quick = false;
  for (; ctx && ctx->vptr && !quick; ctx = umem_below(ctx))
    quick = umem_cpu_reads(ctx) || UMEM_SLOT(ctx, window);
  return quick;
}

/* Whether a block is copied before another thread would be awake. */
static bool is_soon_done(umemPump const *pump) {
  umemBlocksOptions const *given = &pump->slots.plan.given;
  return pump->slots.plan.slot_bytes < woken_for && is_quick(given->source.ctx) &&
         umem_cpu_writes(given->place) &&
         (!has_destination(pump) || is_quick(given->destination.ctx));
}

static void start_threads(umemPump *pump, bool concurrent) {
  unsigned threads = umem_parallel_threads();
  if (pump->slots.plan.depth < 2 || threads < 2 || !concurrent || is_soon_done(pump)) return;
  start_thread(&pump->reading);
  if (has_destination(pump) && threads > 2) start_thread(&pump->writing);
}

umemPump *umemPump_begin(umemBlocksPlan const *plan, char const *function) {
  size_t nbytes;
  bool fits = !__builtin_mul_overflow(plan->depth, sizeof(umemSlotState), &nbytes) &&
              !__builtin_add_overflow(nbytes, sizeof(umemPump), &nbytes);
  umemPump *pump = fits ? calloc(1, nbytes) : NULL;
  if (!pump) return UMEM_FAIL_NULL(plan->given.place, umemMemoryError, "no memory for blocks");
  pump->function = function;
  pump->forks = umem_fork_count();
  if (!umemSlots_take(&pump->slots, plan)) {
    free(pump);
    return NULL;
  }
  umemLock_init(&pump->lock);
  umemLock_init_timed(&pump->changed);
  pump->reading = (umemPumpTask){
      .pump = pump, .can_run = can_read, .is_over = reads_are_over, .run = run_reads};
  pump->writing = (umemPumpTask){
      .pump = pump, .can_run = can_write, .is_over = writes_are_over, .run = write_block};
  bool concurrent = is_concurrent(pump);
  umemReads_begin(&pump->reads, &pump->slots, concurrent);
  start_threads(pump, concurrent);
  return pump;
}

/* A child of fork has no threads to join, and no thread there waits for the condition. Where the
 * place does not work in it either, the memory goes with the process. */
void umemPump_end(umemPump *pump) {
  bool inherited = pump->forks != umem_fork_count(), lost = umemPump_is_lost(pump);
  umemAttempt forgotten;
  if (!lost && pump->reading.has_thread) pthread_join(pump->reading.thread, NULL);
  if (!lost && pump->writing.has_thread) pthread_join(pump->writing.thread, NULL);
  if (!lost) pthread_cond_destroy(&pump->changed);
  umemLock_destroy(&pump->lock);
  if (inherited) umemAttempt_begin(&forgotten);
  umemSlots_release(&pump->slots);
  if (inherited) umemAttempt_end(&forgotten);
  free(pump);
}
