/* blocks_pump.c - see blocks_pump.h.
 *
 * Reading and writing are two legs. A block may be read when its slot is free, and written when it was given back (and,
 * where it replaces ghost rows of later blocks, when these have been read). A leg has a thread of its own, or the calling
 * thread does its blocks while it waits for the next block. So the same conditions hold with any number of threads.
 *
 * The thread that reads shares the blocks with the workers of all copies (blocks_reads.c). Only one thread writes,
 * because after a failure no later block may be written. */
#include "blocks/blocks_pump.h"
#include "base/thread.h"
#include "blocks/blocks_reads.h"
#include "core/context.h"
#include "core/threads.h"

#include <stdlib.h>

/* Bytes of a block that are worth a thread: to wake one takes 15 to 50 us, as copying them does. */
static size_t const woken_for = 256 << 10;

bool umemPump_is_lost(umemPump const *pump) {
  return pump->forks != umem_fork_count() && (pump->reading.has_thread || pump->writing.has_thread);
}

/* ---- when a leg may run: under the lock ---- */

static bool has_destination(umemPump const *pump) { return pump->slots.plan.given.destination.ctx; }

static bool can_write(umemPump const *pump) {
  umemWrites const *writes = &pump->writes;
  bool old_values_are_read =
      umemReads_are_over(pump) || pump->reads.done > writes->done + pump->slots.plan.ahead;
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

/* ---- a leg ---- */

static void write_block(umemPump *pump, bool one) {
  (void)one; /* it always is */
  umemWrites *writes = &pump->writes;
  size_t number = writes->done;
  writes->running = true;
  umemLock_release(&pump->lock);
  char name[umemBlockNameSize];
  umemBlocksPlan_name(&pump->slots.plan, pump->function, "writing", number, name);
  char const *function = umem_thread.function;
  umem_thread.function = name;
  umemAttempt attempt;
  umemAttempt_begin(&attempt);
  bool done = umemSlots_write(&pump->slots, number);
  umemAttempt_end(&attempt);
  umem_thread.function = function;
  umemLock_acquire(&pump->lock);
  writes->running = false;
  writes->done += done;
  writes->failed = !done;
  if (!done) writes->held = attempt;
  pthread_cond_broadcast(&pump->changed);
}

/* Without its thread variables the thread leaves the leg to the calling thread. */
static void *serve(void *argument) {
  umemLeg *leg = argument;
  umemPump *pump = leg->pump;
  bool serves = umem_worker_has_data();
  umemLock_acquire(&pump->lock);
  if (!serves) {
    leg->has_left = true;
    pthread_cond_broadcast(&pump->changed);
  }
  while (serves && !leg->is_over(pump)) {
    if (leg->can_run(pump))
      leg->run(pump, false);
    else
      pthread_cond_wait(&pump->changed, &pump->lock.mutex);
  }
  umemLock_release(&pump->lock);
  return NULL;
}

/* Does a step of a leg that has no thread; if there is none to do, waits for a change. */
static void run_or_wait(umemPump *pump) {
  umemLeg *const legs[] = {&pump->writing, &pump->reading}; /* what is written frees a slot */
  for (size_t i = 0; i < sizeof legs / sizeof *legs; i++) {
    bool served = legs[i]->has_thread && !legs[i]->has_left;
    if (served || !legs[i]->can_run(pump)) continue;
    legs[i]->run(pump, true);
    return;
  }
  umemLock_wait(&pump->lock, &pump->changed);
}

/* ---- the program's side ---- */

/* Work that the program has queued with the block comes before what is done with its memory from now on. */
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
  umemLock_acquire(&pump->lock);
  pump->back++;
  if (!has_destination(pump)) pump->writes.done++;
  pthread_cond_broadcast(&pump->changed);
  umemLock_release(&pump->lock);
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
  umemLock_acquire(&pump->lock);
  pump->stopping = true;
  pthread_cond_broadcast(&pump->changed);
  while (!umemReads_are_over(pump) || !all_is_written(pump)) run_or_wait(pump);
  umemLock_release(&pump->lock);
}

/* In a child of fork the condition may wait for ever for threads that were about to leave it. */
void umemPump_cancel(umemPump *pump) {
  if (umemPump_is_lost(pump)) return;
  umemLock_acquire(&pump->lock);
  pump->cancelled = true;
  pthread_cond_broadcast(&pump->changed);
  umemLock_release(&pump->lock);
}

bool umemPump_is_cancelled(umemPump *pump) {
  umemLock_acquire(&pump->lock);
  bool cancelled = pump->cancelled;
  umemLock_release(&pump->lock);
  return cancelled;
}

uint64_t umemPump_done(umemPump *pump) {
  umemLock_acquire(&pump->lock);
  uint64_t rows = (uint64_t)pump->writes.done * pump->slots.plan.rows;
  umemLock_release(&pump->lock);
  return rows < pump->slots.plan.given.count ? rows : pump->slots.plan.given.count;
}

/* ---- beginning and end ---- */

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
static void start_thread(umemPump *pump, umemLeg *leg) {
  pthread_t thread;
  if (umem_thread_start(&thread, serve, leg) != 0) return;
  umemLock_acquire(&pump->lock); /* the thread is under way already */
  leg->thread = thread;
  leg->has_thread = true;
  umemLock_release(&pump->lock);
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
  start_thread(pump, &pump->reading);
  if (has_destination(pump) && threads > 2) start_thread(pump, &pump->writing);
}

umemPump *umemPump_begin(umemBlocksPlan const *plan, char const *function) {
  size_t nbytes;
  bool fits = !__builtin_mul_overflow(plan->depth, sizeof(umemSlotState), &nbytes) &&
              !__builtin_add_overflow(nbytes, sizeof(umemPump), &nbytes);
  umemPump *pump = fits ? calloc(1, nbytes) : NULL;
  if (!pump) {
    umemVirtual_fail(plan->given.place, umemMemoryError, "no memory for blocks");
    return NULL;
  }
  pump->function = function;
  pump->forks = umem_fork_count();
  if (!umemSlots_take(&pump->slots, plan)) {
    free(pump);
    return NULL;
  }
  umemLock_init(&pump->lock);
  pthread_cond_init(&pump->changed, NULL);
  pump->reading = (umemLeg){.pump = pump,
                            .can_run = umemReads_can_run,
                            .is_over = umemReads_are_over,
                            .run = umemReads_run};
  pump->writing =
      (umemLeg){.pump = pump, .can_run = can_write, .is_over = writes_are_over, .run = write_block};
  bool concurrent = is_concurrent(pump);
  umemReads_begin(pump, concurrent);
  start_threads(pump, concurrent);
  return pump;
}

static void join_threads(umemPump *pump) {
  if (pump->reading.has_thread) pthread_join(pump->reading.thread, NULL);
  if (pump->writing.has_thread) pthread_join(pump->writing.thread, NULL);
  pthread_cond_destroy(&pump->changed);
}

/* A child of fork has no threads to join, and nobody waits for the condition there. Where the place does not work in
 * it either, the memory goes with the process. */
void umemPump_end(umemPump *pump) {
  bool inherited = pump->forks != umem_fork_count();
  umemAttempt forgotten;
  if (!umemPump_is_lost(pump)) join_threads(pump);
  umemLock_destroy(&pump->lock);
  if (inherited) umemAttempt_begin(&forgotten);
  umemSlots_release(&pump->slots);
  if (inherited) umemAttempt_end(&forgotten);
  free(pump);
}
