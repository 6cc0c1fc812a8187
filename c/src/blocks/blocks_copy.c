/* blocks_copy.c - see blocks_copy.h. */
#include "blocks/blocks_copy.h"
#include "base/thread.h"
#include "core/guard.h"

static uintptr_t slot_of(umemPump const *pump, size_t number) {
  return pump->memory + number % pump->plan.depth * pump->plan.slot_bytes;
}

uintptr_t umemPump_adr(umemPump const *pump, size_t number) {
  umemBlocksOptions const *given = &pump->plan.given;
  return slot_of(pump, number) + given->before * given->source.nbytes;
}

uintptr_t umemPump_out(umemPump const *pump, size_t number) {
  return pump->plan.given.apart ? slot_of(pump, number) + pump->plan.in_bytes
                                : umemPump_adr(pump, number);
}

umemVirtual *umemPump_queue(umemPump const *pump, size_t number) {
  return pump->queues[number % pump->plan.depth % pump->queue_count];
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
static void read_rows(umemPump *pump, size_t number, size_t first, size_t count, ptrdiff_t at,
                      bool repeat) {
  umemRows const *source = &pump->plan.given.source;
  umemRows from = *source, to = *source;
  from.adr = row_at(source, first);
  if (repeat) from.stride = 0;
  to.ctx = umemPump_queue(pump, number);
  to.stride = (ptrdiff_t)source->nbytes;
  to.adr = umemPump_adr(pump, number) + (uintptr_t)at * source->nbytes;
  copy_rows(&from, &to, count);
}

/* Waits, also when a copy has failed: what was queued before still uses the memory. */
static bool settle(uint64_t before, umemVirtual *one, umemVirtual *other) {
  unsigned queued = umemOrdered | umemDeviceShared;
  if (one->capabilities & queued) umem_synchronize(one);
  if (other != one && (other->capabilities & queued)) umem_synchronize(other);
  return umem_thread.failures == before;
}

bool umemPump_read(umemPump *pump, size_t number) {
  umemBlockRange range = umemBlocksPlan_range(&pump->plan, number);
  uint64_t before = umem_thread.failures;
  size_t lead = range.before, all = range.before + range.rows + range.after;
  read_rows(pump, number, range.first - lead, all, -(ptrdiff_t)lead, false);
  if (umem_thread.failures == before)
    read_rows(pump, number, 0, range.missing_before, -(ptrdiff_t)(lead + range.missing_before),
              true);
  if (umem_thread.failures == before)
    read_rows(pump, number, pump->plan.given.count - 1, range.missing_after,
              (ptrdiff_t)(range.rows + range.after), true);
  return settle(before, umemPump_queue(pump, number), pump->plan.given.source.ctx);
}

bool umemPump_write(umemPump *pump, size_t number) {
  umemRows const *destination = &pump->plan.given.destination;
  umemBlockRange range = umemBlocksPlan_range(&pump->plan, number);
  uint64_t before = umem_thread.failures;
  umemRows from = *destination, to = *destination;
  from.ctx = umemPump_queue(pump, number);
  from.adr = umemPump_out(pump, number);
  from.stride = (ptrdiff_t)destination->nbytes;
  to.adr = row_at(destination, range.first);
  copy_rows(&from, &to, range.rows);
  return settle(before, umemPump_queue(pump, number), destination->ctx);
}
