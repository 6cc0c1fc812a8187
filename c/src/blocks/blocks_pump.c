/* blocks_pump.c - see blocks_pump.h.
 *
 * Reading and writing are two legs. Each begins one block after the other, in the order of the array, when it may: a
 * block may be read when its slot is free, and written when it was given back (and, where it replaces ghost rows of
 * later blocks, when these have been read). A leg has threads of its own, or the calling thread does its blocks while
 * it waits for the next block. So the same conditions hold with any number of threads.
 *
 * Several threads read where that gains: one begins a block while the others wait for the last bytes of the blocks
 * before. Each of their copies takes only its part of the workers. Only one thread writes, because after a failure no
 * later block may be written. */
#include "blocks/blocks_pump.h"
#include "base/thread.h"
#include "core/guard.h"
#include "core/parallel.h"

#include <stdio.h>
#include <stdlib.h>

/* Bytes of blocks that several threads read at a time. */
static size_t const together_from = 256 << 10, together_below = 128 << 20;

bool umemPump_is_lost(umemPump const *pump) {
  return pump->forks != umem_fork_count() && (pump->reads.threads || pump->writes.threads);
}

/* ---- when a leg may run: under the lock ---- */

static bool has_destination(umemPump const *pump) { return pump->slots.plan.given.destination.ctx; }

/* Whether all blocks that will be read have been begun. */
static bool no_more_is_read(umemPump const *pump) {
  return pump->stopping || pump->cancelled || pump->reads.failed ||
         pump->reads.begun == pump->slots.plan.blocks;
}

static bool reading_is_over(umemPump const *pump) {
  return !pump->reads.running && no_more_is_read(pump);
}

static bool can_read(umemPump const *pump) {
  return !no_more_is_read(pump) && pump->reads.begun - pump->writes.done < pump->slots.plan.depth;
}

static bool can_write(umemPump const *pump) {
  umemLeg const *writes = &pump->writes;
  bool old_values_are_read =
      reading_is_over(pump) || pump->reads.done > writes->done + pump->slots.plan.ahead;
  return has_destination(pump) && !writes->running && !writes->failed &&
         writes->done < pump->back && old_values_are_read;
}

static bool can_run(umemLeg const *leg) {
  umemPump const *pump = leg->pump;
  return leg == &pump->reads ? can_read(pump) : can_write(pump);
}

/* Whether all is written that will be. */
static bool writing_is_over(umemPump const *pump) {
  return pump->writes.failed || pump->writes.done == pump->back;
}

static bool is_over(umemLeg const *leg) {
  umemPump const *pump = leg->pump;
  if (leg == &pump->reads) return reading_is_over(pump);
  return writing_is_over(pump) && (pump->stopping || leg->failed);
}

/* ---- a block of a leg ---- */

enum { name_size = 128 };

/* What the messages of failures with a block begin with. */
static void name_block(umemPump const *pump, char const *verb, size_t number,
                       char name[name_size]) {
  umemBlockRange range = umemBlocksPlan_range(&pump->slots.plan, number);
  snprintf(name, name_size, "%s: %s block %zu of %zu (rows %zu to %zu)", pump->function, verb,
           number, pump->slots.plan.blocks, range.first, range.first + range.rows - 1);
}

/* Counts the blocks that are done: those before the first that is not. */
static void count_done(umemLeg *leg, size_t number) {
  bool *ended = leg->pump->ended;
  size_t depth = leg->pump->slots.plan.depth;
  ended[number % depth] = true;
  for (; leg->done < leg->begun && ended[leg->done % depth]; leg->done++)
    ended[leg->done % depth] = false;
}

/* Of several failures the leg holds that of the first block: all blocks before it are done. */
static void hold_failure(umemLeg *leg, size_t number, umemAttempt const *attempt) {
  if (leg->failed && leg->failed_at < number) return;
  leg->failed = true;
  leg->failed_at = number;
  leg->held = *attempt;
}

/* Called with the lock, which it releases meanwhile. */
static void run_leg(umemLeg *leg) {
  umemPump *pump = leg->pump;
  size_t number = leg->begun++;
  leg->running++;
  umemLock_release(&pump->lock);
  char name[name_size];
  name_block(pump, leg->verb, number, name);
  char const *function = umem_thread.function;
  umem_thread.function = name;
  umemAttempt attempt;
  umemAttempt_begin(&attempt);
  bool done = leg->carry_out(&pump->slots, number);
  umemAttempt_end(&attempt);
  umem_thread.function = function;
  umemLock_acquire(&pump->lock);
  leg->running--;
  if (done)
    count_done(leg, number);
  else
    hold_failure(leg, number, &attempt);
  pthread_cond_broadcast(&pump->changed);
}

static void *serve(void *argument) {
  umemLeg *leg = argument;
  umemPump *pump = leg->pump;
  umem_thread.sharers = leg->wanted;
  umemLock_acquire(&pump->lock);
  while (!is_over(leg)) {
    if (can_run(leg))
      run_leg(leg);
    else
      pthread_cond_wait(&pump->changed, &pump->lock.mutex);
  }
  umemLock_release(&pump->lock);
  return NULL;
}

/* Does something that no thread does, or else waits for a change. */
static void run_or_wait(umemPump *pump) {
  umemLeg *const legs[] = {&pump->writes, &pump->reads}; /* what is written frees a slot */
  for (size_t i = 0; i < sizeof legs / sizeof *legs; i++) {
    if (legs[i]->threads || !can_run(legs[i])) continue;
    run_leg(legs[i]);
    return;
  }
  umemLock_wait(&pump->lock, &pump->changed);
}

/* ---- the program's side ---- */

/* Work that the program has queued with the block comes before what is done with its memory from now on. */
static bool order_after_work(umemPump *pump, size_t number) {
  char name[name_size];
  char const *function = umem_thread.function;
  name_block(pump, "ordering", number, name);
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
  while (!reading_is_over(pump) || !writing_is_over(pump)) run_or_wait(pump);
  umemLock_release(&pump->lock);
}

void umemPump_cancel(umemPump *pump) {
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

/* Where the thread cannot be started, the other one of the leg or the calling thread does its part. */
static void start_thread(umemPump *pump, umemLeg *leg) {
  pthread_t thread;
  if (umem_thread_start(&thread, serve, leg) != 0) return;
  umemLock_acquire(&pump->lock); /* the other threads are under way already */
  leg->thread[leg->threads++] = thread;
  umemLock_release(&pump->lock);
}

/* A short block is read before another thread is awake; a long one keeps all threads of a copy busy by itself. Where
 * blocks are written, too, that takes longest, and one reader keeps ahead. One block is the program's meanwhile. */
static unsigned count_readers(umemPump const *pump, unsigned threads) {
  umemBlocksPlan const *plan = &pump->slots.plan;
  bool gains = !has_destination(pump) && plan->depth > 2 && plan->in_bytes >= together_from &&
               plan->in_bytes < together_below;
  unsigned readers = gains ? umemBlocks_readers(plan) : 1;
  if (readers >= plan->depth) readers = (unsigned)plan->depth - 1;
  return readers < threads ? readers : threads - 1;
}

static void start_threads(umemPump *pump) {
  unsigned threads = umem_parallel_threads();
  if (pump->slots.plan.depth < 2 || threads < 2 || !is_concurrent(pump)) return;
  pump->reads.wanted = count_readers(pump, threads);
  pump->writes.wanted = has_destination(pump) && threads > 2;
  for (unsigned i = 0; i < pump->reads.wanted; i++) start_thread(pump, &pump->reads);
  if (pump->writes.wanted) start_thread(pump, &pump->writes);
}

umemPump *umemPump_begin(umemBlocksPlan const *plan, char const *function) {
  size_t nbytes;
  bool fits = !__builtin_add_overflow(sizeof(umemPump), plan->depth * sizeof(bool), &nbytes);
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
  pump->reads = (umemLeg){.pump = pump, .carry_out = umemSlots_read, .verb = "reading"};
  pump->writes = (umemLeg){.pump = pump, .carry_out = umemSlots_write, .verb = "writing"};
  start_threads(pump);
  return pump;
}

static void join_leg(umemLeg *leg) {
  for (unsigned i = 0; i < leg->threads; i++) pthread_join(leg->thread[i], NULL);
}

static void join_threads(umemPump *pump) {
  join_leg(&pump->reads);
  join_leg(&pump->writes);
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
