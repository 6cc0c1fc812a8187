/* pool_chunk.c - takes chunks from the upstream, and gives them back. See pool.h.
 *
 * Each chunk is a region of its own in the range allocator, so that it can be removed when all of it is
 * free. */
#include "pool/pool_chunk.h"
#include "base/thread.h"
#include "core/context.h"
#include "core/order.h"
#include "pool/pool_queue.h"

#include <stdlib.h>

struct umemPoolChunk {
  uintptr_t adr;
  size_t size;
  uint64_t serial;
  unsigned generation; /* of the process that has taken it */
  bool special;        /* its alignment made it costly: goes back as soon as it is empty */
};

/* ---- new chunks ---- */

uint64_t umemPoolChunk_allowance(umemPoolCore const *core) {
  if (!core->maximum) return UINT64_MAX;
  return core->maximum - core->reserved - umemGrowth_amount(&core->growing);
}

bool umemPoolChunk_allows(umemPoolCore const *core, size_t size, umemPoolFailure *failure) {
  if (size <= umemPoolChunk_allowance(core)) return true;
  failure->reason = umemPoolAtMaximum;
  failure->reserved = core->reserved;
  return false;
}

static bool has_room_for_chunk(umemPoolCore *core) {
  if (core->chunk_count < core->chunk_room) return true;
  size_t room = core->chunk_room ? 2 * core->chunk_room : 16;
  umemPoolChunk *chunks = realloc(core->chunks, room * sizeof *chunks);
  if (!chunks) return false;
  core->chunks = chunks;
  core->chunk_room = room;
  return true;
}

/* Records a new chunk, all free for the list. False without memory. */
static bool add_record(umemPoolFreeList *list, umemPoolChunk chunk) {
  umemPoolCore *core = list->core;
  if (!has_room_for_chunk(core) || !umemRange_add(list->range, chunk.adr >> umemPoolUnitShift,
                                                  chunk.size >> umemPoolUnitShift, false))
    return false;
  core->chunks[core->chunk_count++] = chunk;
  core->special_count += chunk.special;
  core->reserved += chunk.size;
  if (core->reserved > core->reserved_peak) core->reserved_peak = core->reserved;
  return true;
}

/* Memory of an ordered upstream is free in its order. Whether the list may use it; else why not. */
static bool follow_upstream(umemPoolFreeList *list, umemPoolFailure *failure) {
  if (!umemPoolQueue_must_follow_upstream(list) && !umemPoolQueue_should_follow_upstream(list))
    return true;
  if (umem_wait_apart(list->queue, list->core->upstream) == umemOK) return true;
  failure->reason = umemPoolNotOrdered;
  return false;
}

bool umemPoolChunk_add(umemPoolFreeList *list, size_t size, size_t alignment, bool ample,
                       umemPoolFailure *failure) {
  umemPoolCore *core = list->core;
  if (!umemPoolChunk_allows(core, size, failure)) return false;
  bool special = alignment > umemPoolPage;
  umemGrowthRequest request;
  failure->reason = umemPoolUpstreamFailed;
  umemGrowth_begin(&core->growing, &request, size, ample);
  umemLock_release(&core->lock);
  umemAttempt_begin(&failure->attempt);
  uintptr_t adr = umem_aligned_alloc(core->upstream, special ? alignment : umemPoolPage, size);
  bool allocated = adr != umem_null_of(core->upstream);
  bool follows = allocated && follow_upstream(list, failure);
  umemAttempt_end(&failure->attempt);
  umemLock_acquire(&core->lock);
  umemGrowth_end(&core->growing, &request);
  if (follows && add_record(list, (umemPoolChunk){adr, size, ++core->chunk_serial,
                                                  umem_fork_count(), special}))
    return true;
  if (!allocated) return false;
  umemAttempt forgotten;
  umemAttempt_begin(&forgotten);
  umem_aligned_free(core->upstream, adr);
  umemAttempt_end(&forgotten);
  if (follows) failure->reason = umemPoolNoRecords;
  return false;
}

/* ---- chunks that go back ---- */

static void remove_record(umemPoolCore *core, size_t i) {
  umemPoolChunk chunk = core->chunks[i];
  core->chunks[i] = core->chunks[--core->chunk_count];
  core->special_count -= chunk.special;
  core->reserved -= chunk.size;
}

static bool is_free(umemPoolCore const *core, umemPoolChunk const *chunk) {
  umemRangeItem item;
  bool found = umemRange_find(core->own->range, chunk->adr >> umemPoolUnitShift, &item);
  return found && !item.live && item.extent == chunk->size >> umemPoolUnitShift;
}

/* Gives chunk i back if all of it is free. If the upstream refuses, because its stream is being captured for
 * example, the chunk stays. */
static void release_if_free(umemPoolCore *core, size_t i) {
  umemPoolChunk *chunk = &core->chunks[i];
  if (!is_free(core, chunk) || umem_is_of_parent(core->upstream, chunk->generation)) return;
  uint64_t before = umem_thread.failures;
  umem_aligned_free(core->upstream, chunk->adr);
  if (umem_thread.failures != before) {
    core->special_count -= chunk->special;
    chunk->special = false;
    return;
  }
  umemRange_remove(core->own->range, chunk->adr >> umemPoolUnitShift,
                   chunk->size >> umemPoolUnitShift);
  remove_record(core, i);
}

void umemPoolChunk_release(umemPoolCore *core, size_t keep) {
  for (size_t i = core->chunk_count; i-- > 0;)
    if (core->reserved - core->chunks[i].size >= keep) release_if_free(core, i);
}

/* Of the free chunks whose end leaves at least the initial bytes: the smallest of nbytes or more, else the largest.
 * The number of chunks when there is none. */
static size_t best_to_release(umemPoolCore const *core, uint64_t nbytes) {
  size_t best = core->chunk_count;
  uint64_t spare = core->reserved > core->initial ? core->reserved - core->initial : 0;
  for (size_t i = 0; i < core->chunk_count; i++) {
    uint64_t size = core->chunks[i].size;
    uint64_t chosen = best < core->chunk_count ? core->chunks[best].size : 0;
    bool better = chosen >= nbytes ? size >= nbytes && size < chosen : size > chosen;
    if (better && size <= spare && is_free(core, &core->chunks[i])) best = i;
  }
  return best;
}

void umemPoolChunk_release_bytes(umemPoolCore *core, uint64_t nbytes) {
  for (uint64_t before = UINT64_MAX; nbytes && core->reserved < before;) {
    before = core->reserved;
    size_t best = best_to_release(core, nbytes);
    if (best < core->chunk_count) release_if_free(core, best);
    uint64_t released = before - core->reserved;
    nbytes -= released < nbytes ? released : nbytes;
  }
}

void umemPoolChunk_release_special(umemPoolCore *core) {
  for (size_t i = core->special_count ? core->chunk_count : 0; i-- > 0;)
    if (core->chunks[i].special) release_if_free(core, i);
}

void umemPoolChunk_next(umemPoolCore const *core, uintptr_t from, umemPoolRegion *region) {
  for (size_t i = 0; i < core->chunk_count; i++) {
    umemPoolChunk const *chunk = &core->chunks[i];
    if (chunk->adr < from || (region->nbytes && region->adr < chunk->adr)) continue;
    region->adr = chunk->adr;
    region->nbytes = chunk->size;
    region->age = core->chunk_serial - chunk->serial;
  }
}

void umemPoolChunk_end_all(umemPoolCore *core) {
  for (size_t i = core->chunk_count; i-- > 0;)
    umem_end_block(core->upstream, core->chunks[i].adr, true, false, core->chunks[i].generation);
  free(core->chunks);
  core->chunks = NULL;
  core->chunk_count = 0;
}
