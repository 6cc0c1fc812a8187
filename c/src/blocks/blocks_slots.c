/* blocks_slots.c - see blocks_slots.h. */
#include "blocks/blocks_slots.h"
#include "base/number.h"
#include "base/thread.h"
#include "core/context.h"
#include "core/order.h"
#include "watch/watch.h"

#include <stdlib.h>

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

umemVirtual *umemSlots_queue(umemSlots const *slots, size_t number) {
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

/* ---- the parts of a block ---- */

/* The rows of a block in memory: ghost rows that the array has not, then rows of the array, then
 * such ghost rows. */
typedef struct Regions {
  umemBlockRange range;
  size_t first; /* row of the array that stands first */
  size_t lead;  /* rows before it */
  size_t rows;  /* of the array */
} Regions;

static Regions regions_of(umemSlots const *slots, size_t number) {
  umemBlockRange range = umemBlocksPlan_range(&slots->plan, number);
  return (Regions){range, range.first - range.before, range.missing_before,
                   range.before + range.rows + range.after};
}

size_t umemSlots_nbytes(umemSlots const *slots, size_t number) {
  Regions regions = regions_of(slots, number);
  size_t rows = regions.lead + regions.rows + regions.range.missing_after;
  return rows * slots->plan.given.source.nbytes;
}

static bool has_gaps(umemRows const *rows) { return rows->stride != (ptrdiff_t)rows->nbytes; }

/* Rows with gaps, and copies of one row, are not cut within a row. */
umemSlotPart umemSlots_part(umemSlots const *slots, size_t number, size_t at, size_t wanted) {
  umemRows const *source = &slots->plan.given.source;
  Regions regions = regions_of(slots, number);
  size_t start = regions.lead * source->nbytes, end = start + regions.rows * source->nbytes;
  if (at < start) return (umemSlotPart){number, at, start - at};
  if (at >= end) return (umemSlotPart){number, at, umemSlots_nbytes(slots, number) - at};
  size_t rest = end - at;
  if (has_gaps(source)) wanted = umem_greater(wanted / source->nbytes, 1) * source->nbytes;
  return (umemSlotPart){number, at, umem_lesser(wanted, rest)};
}

/* The memory of a block, its first ghost row included. */
static uintptr_t memory_of(umemSlots const *slots, size_t number, Regions const *regions) {
  size_t ghosts = regions->lead + regions->range.before;
  return umemSlots_adr(slots, number) - ghosts * slots->plan.given.source.nbytes;
}

static bool is_of_array(umemSlots const *slots, umemSlotPart const *part, Regions const *regions) {
  size_t row = part->at / slots->plan.given.source.nbytes;
  return row >= regions->lead && row < regions->lead + regions->rows;
}

bool umemSlots_piece(umemSlots const *slots, umemSlotPart const *part, umemCopyPiece *piece) {
  umemRows const *source = &slots->plan.given.source;
  Regions regions = regions_of(slots, part->number);
  if (has_gaps(source) || !is_of_array(slots, part, &regions)) return false;
  size_t skipped = part->at - regions.lead * source->nbytes;
  *piece = (umemCopyPiece){.src_adr = row_at(source, regions.first) + skipped,
                           .dst_adr = memory_of(slots, part->number, &regions) + part->at,
                           .nbytes = part->nbytes,
                           .dst = umemSlots_queue(slots, part->number),
                           .copy = part->number};
  return true;
}

/* Rows of the array, or one row again and again. */
static void read_rows(umemSlots const *slots, umemSlotPart const *part) {
  umemRows const *source = &slots->plan.given.source;
  Regions regions = regions_of(slots, part->number);
  umemRows from = *source, to = *source;
  size_t row = part->at / source->nbytes;
  to.ctx = umemSlots_queue(slots, part->number);
  to.stride = (ptrdiff_t)source->nbytes;
  to.adr = memory_of(slots, part->number, &regions) + part->at;
  if (row < regions.lead) {
    from.adr = row_at(source, 0);
    from.stride = 0;
  } else if (row < regions.lead + regions.rows) {
    from.adr = row_at(source, regions.first + row - regions.lead);
  } else {
    from.adr = row_at(source, slots->plan.given.count - 1);
    from.stride = 0;
  }
  copy_rows(&from, &to, part->nbytes / source->nbytes);
}

/* Waits, also when a copy has failed: what was queued before still uses the memory. */
static bool settle(uint64_t before, umemVirtual *one, umemVirtual *other) {
  unsigned queued = umemOrdered | umemDeviceShared;
  if (one->capabilities & queued) umem_finish(one);
  if (other != one && (other->capabilities & queued)) umem_finish(other);
  return umem_thread.failures == before;
}

bool umemSlots_read(umemSlots const *slots, umemSlotPart const *part) {
  umemVirtual *source = slots->plan.given.source.ctx;
  uint64_t before = umem_thread.failures;
  umemCopyPiece piece;
  if (umemSlots_piece(slots, part, &piece))
    umem_copy_to(source, piece.src_adr, piece.dst, piece.dst_adr, piece.nbytes);
  else
    read_rows(slots, part);
  return settle(before, umemSlots_queue(slots, part->number), source);
}

bool umemSlots_write(umemSlots const *slots, size_t number) {
  umemRows const *destination = &slots->plan.given.destination;
  umemBlockRange range = umemBlocksPlan_range(&slots->plan, number);
  uint64_t before = umem_thread.failures;
  umemTrace trace;
  __attribute__((cleanup(umem_step_close))) umemOpenStep step = {0};
  if (umem_is_watched()) /* until the block is there it is one copy */
    umem_trace_open(&trace, &step, umemSlots_queue(slots, number), destination->ctx,
                    range.rows * destination->nbytes);
  umemRows from = *destination, to = *destination;
  from.ctx = umemSlots_queue(slots, number);
  from.adr = umemSlots_out(slots, number);
  from.stride = (ptrdiff_t)destination->nbytes;
  to.adr = row_at(destination, range.first);
  copy_rows(&from, &to, range.rows);
  return settle(before, umemSlots_queue(slots, number), destination->ctx);
}

bool umemSlots_order(umemSlots const *slots, size_t number) {
  return umem_wait_apart(umemSlots_queue(slots, number), slots->plan.given.place) == umemOK;
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
    if (slots->queues[i] != place) umem_wait_apart(slots->queues[i], place);
  return umem_thread.failures == before;
}

bool umemSlots_take(umemSlots *slots, umemBlocksPlan const *plan) {
  *slots = (umemSlots){
      .plan = *plan, .memory = umem_null(plan->given.place), .generation = umem_fork_count()};
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
    if (slots->queues[i] != place) umem_wait_apart(place, slots->queues[i]);
  umemAttempt_end(&forgotten);
}

void umemSlots_release(umemSlots *slots) {
  order_free(slots);
  umem_end_block(slots->plan.given.place, slots->memory, false, false, slots->generation);
  free(slots->queues);
}
