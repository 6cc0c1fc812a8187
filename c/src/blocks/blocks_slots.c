/* blocks_slots.c - see blocks_slots.h. */
#include "blocks/blocks_slots.h"
#include "base/number.h"
#include "base/thread.h"
#include "core/guard.h"
#include "core/parallel.h"
#include "core/route.h"

#include <stdlib.h>

/* Bytes of the longest block of which several threads read parts, and of a part at least. */
static size_t const most_shared = 8 << 20, shared_part = 1 << 20;

static uintptr_t slot_of(umemSlots const *slots, size_t number) {
  return slots->memory + number % slots->plan.depth * slots->plan.slot_bytes;
}

uintptr_t umemSlots_adr(umemSlots const *slots, size_t number) {
  umemBlocksOptions const *given = &slots->plan.given;
  return slot_of(slots, number) + given->before * given->source.nbytes;
}

uintptr_t umemSlots_out(umemSlots const *slots, size_t number) {
  return slots->plan.given.apart ? slot_of(slots, number) + slots->plan.in_bytes
                                 : umemSlots_adr(slots, number);
}

static umemVirtual *queue_of(umemSlots const *slots, size_t number) {
  return slots->queues[number % slots->plan.depth % slots->queue_count];
}

/* The address of a row, which may be one before the first for strides of any sign. */
static uintptr_t row_at(umemRows const *rows, size_t number) {
  return rows->adr + number * (uintptr_t)rows->stride;
}

static void copy_rows(umemRows const *from, umemRows const *to, size_t count) {
  umemLayout layout = {.size = sizeof layout,
                       .item_size = from->nbytes,
                       .rank = 1,
                       .extents = &count,
                       .src_strides = &from->stride,
                       .dst_strides = &to->stride};
  if (count) umem_copy_strided(from->ctx, from->adr, to->ctx, to->adr, &layout);
}

/* Rows of the source from first on, or the same row again and again. */
static void read_rows(umemSlots const *slots, size_t number, size_t first, size_t count,
                      ptrdiff_t at, bool repeat) {
  umemRows const *source = &slots->plan.given.source;
  umemRows from = *source, to = *source;
  from.adr = row_at(source, first);
  if (repeat) from.stride = 0;
  to.ctx = queue_of(slots, number);
  to.stride = (ptrdiff_t)source->nbytes;
  to.adr = umemSlots_adr(slots, number) + (uintptr_t)at * source->nbytes;
  copy_rows(&from, &to, count);
}

/* ---- the rows of a block, by several threads ---- */

typedef struct Share {
  umemSlots const *slots;
  size_t number, first, count;
  ptrdiff_t at;
  unsigned parts;
} Share;

static void read_part(void *job, unsigned part) {
  Share const *share = job;
  size_t begin = share->count * part / share->parts;
  size_t end = share->count * (part + 1) / share->parts;
  read_rows(share->slots, share->number, share->first + begin, end - begin,
            share->at + (ptrdiff_t)begin, false);
}

/* A long copy is shared by several threads anyway, and a GPU takes a short one from one thread. A copy of some MiB
 * into RAM gains here: the passage goes on as soon as the block is there. */
static unsigned parts_of(umemSlots const *slots, size_t number, size_t count) {
  umemRows const *source = &slots->plan.given.source;
  umemVirtual *queue = queue_of(slots, number);
  size_t nbytes = count * source->nbytes; /* fits: the block has room for them */
  if (nbytes > most_shared || !umem_can(source->ctx, umemConcurrent) ||
      !umem_can(queue, umemConcurrent | umemCpuWritable) || umem_can(queue, umemOrdered))
    return 1;
  size_t parts = umem_parallel_pieces(nbytes, shared_part, umemParallelMost);
  return (unsigned)umem_lesser(parts, count);
}

static void read_shared(umemSlots const *slots, size_t number, size_t first, size_t count,
                        ptrdiff_t at) {
  Share share = {slots, number, first, count, at, parts_of(slots, number, count)};
  umem_parallel(share.parts, read_part, &share);
}

/* Waits, also when a copy has failed: what was queued before still uses the memory. */
static bool settle(uint64_t before, umemVirtual *one, umemVirtual *other) {
  unsigned queued = umemOrdered | umemDeviceShared;
  if (one->capabilities & queued) umem_synchronize(one);
  if (other != one && (other->capabilities & queued)) umem_synchronize(other);
  return umem_thread.failures == before;
}

/* A block is one copy for the ledger, however many threads read parts of it, and lasts until it is there. */
static void watch(umemTrace *trace, umemOpenLeg *leg, umemVirtual *src, umemVirtual *dst,
                  size_t nbytes) {
  *leg = (umemOpenLeg){0};
  if (nbytes && umem_is_watched()) umem_trace_open(trace, leg, src, dst, nbytes);
}

bool umemSlots_read(umemSlots const *slots, size_t number) {
  umemRows const *source = &slots->plan.given.source;
  umemBlockRange range = umemBlocksPlan_range(&slots->plan, number);
  uint64_t before = umem_thread.failures;
  size_t lead = range.before, all = range.before + range.rows + range.after;
  umemTrace trace;
  __attribute__((cleanup(umem_leg_close))) umemOpenLeg leg;
  watch(&trace, &leg, source->ctx, queue_of(slots, number),
        (all + range.missing_before + range.missing_after) * source->nbytes);
  read_shared(slots, number, range.first - lead, all, -(ptrdiff_t)lead);
  if (umem_thread.failures == before)
    read_rows(slots, number, 0, range.missing_before, -(ptrdiff_t)(lead + range.missing_before),
              true);
  if (umem_thread.failures == before)
    read_rows(slots, number, slots->plan.given.count - 1, range.missing_after,
              (ptrdiff_t)(range.rows + range.after), true);
  return settle(before, queue_of(slots, number), source->ctx);
}

bool umemSlots_write(umemSlots const *slots, size_t number) {
  umemRows const *destination = &slots->plan.given.destination;
  umemBlockRange range = umemBlocksPlan_range(&slots->plan, number);
  uint64_t before = umem_thread.failures;
  umemTrace trace;
  __attribute__((cleanup(umem_leg_close))) umemOpenLeg leg;
  watch(&trace, &leg, queue_of(slots, number), destination->ctx, range.rows * destination->nbytes);
  umemRows from = *destination, to = *destination;
  from.ctx = queue_of(slots, number);
  from.adr = umemSlots_out(slots, number);
  from.stride = (ptrdiff_t)destination->nbytes;
  to.adr = row_at(destination, range.first);
  copy_rows(&from, &to, range.rows);
  return settle(before, queue_of(slots, number), destination->ctx);
}

bool umemSlots_order(umemSlots const *slots, size_t number) {
  umemVirtual *place = slots->plan.given.place, *queue = queue_of(slots, number);
  return queue == place || umem_wait(queue, place) == umemOK;
}

/* ---- memory ---- */

static bool take_queues(umemSlots *slots) {
  umemBlocksOptions *given = &slots->plan.given;
  size_t count = given->queue_count ? given->queue_count : 1;
  slots->queues = calloc(count, sizeof *slots->queues);
  if (!slots->queues) {
    umemVirtual_fail(given->place, umemMemoryError, "no memory for %zu queues", count);
    return false;
  }
  slots->queue_count = count;
  slots->queues[0] = given->place;
  for (size_t i = 0; i < given->queue_count; i++) slots->queues[i] = given->queues[i];
  given->queues = NULL;
  return true;
}

/* The queues may use the memory when the place has come as far as the allocation. */
static bool take_memory(umemSlots *slots) {
  void *place = slots->plan.given.place;
  uint64_t before = umem_thread.failures;
  size_t nbytes = slots->plan.depth * slots->plan.slot_bytes;
  if (nbytes) slots->memory = umem_alloc(place, nbytes);
  for (size_t i = 0; i < slots->queue_count && umem_thread.failures == before; i++)
    if (slots->queues[i] != place) umem_wait(slots->queues[i], place);
  return umem_thread.failures == before;
}

bool umemSlots_take(umemSlots *slots, umemBlocksPlan const *plan) {
  *slots = (umemSlots){.plan = *plan, .memory = umem_null(plan->given.place)};
  if (take_queues(slots) && take_memory(slots)) return true;
  umemSlots_release(slots);
  return false;
}

/* After a failed wait, a queue may still use the memory: the place then frees it after that. */
static void order_free(umemSlots *slots) {
  void *place = slots->plan.given.place;
  umemAttempt forgotten; /* the failure has been reported */
  umemAttempt_begin(&forgotten);
  for (size_t i = 0; i < slots->queue_count; i++)
    if (slots->queues[i] != place) umem_wait(place, slots->queues[i]);
  umemAttempt_end(&forgotten);
}

void umemSlots_release(umemSlots *slots) {
  order_free(slots);
  umem_free(slots->plan.given.place, slots->memory);
  free(slots->queues);
}
