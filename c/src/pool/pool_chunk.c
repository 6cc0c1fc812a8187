/* pool_chunk.c - chunks of the upstream, and ranges of them. See umem_pool.h.
 *
 * Ranges are counted in units from address 0 on, so that addresses of any upstream fit below the range
 * allocator's bound. Each chunk is a region of its own and can be removed when all of it is free. */
#include "pool/pool.h"

#include <stdlib.h>

static size_t const growth_least = 1 << 20, growth_most = 64 << 20;

/* ---- what is coming ---- */

/* A chunk that the upstream is being asked for. */
typedef struct Question {
  size_t size;
  bool ample;
  unsigned lineage; /* umem_fork_count() when it was asked */
  uint64_t outer;   /* asks_for before */
} Question;

/* The serial of the oldest pool whose upstream the calling thread is in. */
static _Thread_local uint64_t asks_for = UINT64_MAX;

void umemPool_renew_waits(umemPoolCore *core) {
  unsigned lineage = umem_fork_count();
  if (core->waits_lineage == lineage) return;
  core->waits_lineage = lineage;
  pthread_cond_init(&core->no_guests, NULL);
  pthread_cond_init(&core->landed, NULL);
}

static bool is_coming(umemPoolCore const *core) {
  return core->coming.count && core->coming.lineage == umem_fork_count();
}

static bool is_ample_coming(umemPoolCore const *core) {
  return is_coming(core) && core->coming.ample;
}

static uint64_t bytes_coming(umemPoolCore const *core) {
  return is_coming(core) ? core->coming.bytes : 0;
}

static void ask(umemPoolCore *core, Question *question, size_t size, bool ample) {
  unsigned lineage = umem_fork_count();
  uint64_t serial = core->own->serial;
  if (core->coming.lineage != lineage) core->coming = (umemPoolComing){.lineage = lineage};
  core->coming.bytes += size;
  core->coming.count++;
  core->coming.ample += ample;
  *question = (Question){size, ample, lineage, asks_for};
  if (serial < asks_for) asks_for = serial;
}

static void be_answered(umemPoolCore *core, Question const *question) {
  asks_for = question->outer;
  if (core->coming.lineage != question->lineage) return; /* forgotten since, after a fork */
  core->coming.bytes -= question->size;
  core->coming.count--;
  core->coming.ample -= question->ample;
  umemPool_renew_waits(core);
  pthread_cond_broadcast(&core->landed);
}

bool umemPool_await_chunk(umemPoolCore *core) {
  if (!is_coming(core) || core->own->serial >= asks_for) return false;
  umemPool_renew_waits(core);
  umemLock_wait(&core->lock, &core->landed);
  return true;
}

/* ---- chunks ---- */

static bool has_room_for_chunk(umemPoolCore *core) {
  if (core->chunk_count < core->chunk_room) return true;
  size_t room = core->chunk_room ? 2 * core->chunk_room : 16;
  umemPoolChunk *chunks = realloc(core->chunks, room * sizeof *chunks);
  if (!chunks) return false;
  core->chunks = chunks;
  core->chunk_room = room;
  return true;
}

static bool lacks_books(umemPoolLack *lack) {
  lack->why = umemPoolBooks;
  return false;
}

/* Whether the maximum allows size bytes more. */
static bool is_allowed(umemPoolCore const *core, size_t size, umemPoolLack *lack) {
  if (!core->maximum || size <= core->maximum - core->reserved - bytes_coming(core)) return true;
  lack->why = umemPoolMaximum;
  lack->reserved = core->reserved;
  return false;
}

/* Writes a new chunk down, all free for the lane. False without memory. */
static bool note_chunk(umemPoolLane *lane, umemPoolChunk chunk) {
  umemPoolCore *core = lane->core;
  if (!has_room_for_chunk(core) || !umemRange_add(lane->range, chunk.adr >> umemPoolUnitShift,
                                                  chunk.size >> umemPoolUnitShift, false))
    return false;
  core->chunks[core->chunk_count++] = chunk;
  core->special_count += chunk.special;
  core->reserved += chunk.size;
  if (core->reserved > core->reserved_peak) core->reserved_peak = core->reserved;
  return true;
}

/* Memory of an ordered upstream is free in its order. Whether the lane may use it; else why not. */
static bool follow_upstream(umemPoolLane *lane, umemPoolLack *lack) {
  if (!umemPoolLane_must_follow_upstream(lane)) return true;
  if (umem_wait_apart(lane->queue, lane->core->upstream) == umemOK) return true;
  lack->why = umemPoolOrder;
  return false;
}

bool umemPool_add_chunk(umemPoolLane *lane, size_t size, size_t alignment, bool ample,
                        umemPoolLack *lack) {
  umemPoolCore *core = lane->core;
  if (!is_allowed(core, size, lack)) return false;
  bool special = alignment > umemPoolPage;
  Question question;
  lack->why = umemPoolUpstream;
  ask(core, &question, size, ample);
  umemLock_release(&core->lock);
  umemAttempt_begin(&lack->attempt);
  uintptr_t adr = umem_aligned_alloc(core->upstream, special ? alignment : umemPoolPage, size);
  bool had = adr != umem_null_of(core->upstream), follows = had && follow_upstream(lane, lack);
  umemAttempt_end(&lack->attempt);
  umemLock_acquire(&core->lock);
  be_answered(core, &question);
  if (follows && note_chunk(lane, (umemPoolChunk){adr, size, special})) return true;
  if (!had) return false;
  umemAttempt forgotten;
  umemAttempt_begin(&forgotten);
  umem_aligned_free(core->upstream, adr);
  umemAttempt_end(&forgotten);
  return follows ? lacks_books(lack) : false;
}

/* How large a chunk for size bytes would best be. */
static size_t best_size(umemPoolCore const *core, size_t size, size_t alignment) {
  if (alignment > umemPoolPage) return size;
  size_t growth = core->growth;
  if (!growth) growth = core->reserved < growth_most ? (size_t)core->reserved : growth_most;
  if (!core->growth && growth < growth_least) growth = growth_least;
  growth = (growth + umemPoolPage - 1) & ~(size_t)(umemPoolPage - 1);
  return size > growth ? size : growth;
}

/* Takes a chunk that holds size bytes, a multiple of units: as large as it should be, or if that is not
 * to be had as small as it may be. Where another thread is asking for one that may do for both, it waits for
 * that instead. */
static bool grow(umemPoolLane *lane, size_t size, size_t alignment, umemPoolGrowth growth,
                 umemPoolLack *lack) {
  umemPoolCore *core = lane->core;
  if (!is_allowed(core, size, lack)) return false;
  if (umemPoolLane_must_follow_upstream(lane) && umemPoolLane_is_blocked(lane)) {
    lack->why = umemPoolCapture;
    return false;
  }
  size_t best = growth == umemPoolGrowWell ? best_size(core, size, alignment) : size;
  uint64_t allowed =
      core->maximum ? core->maximum - core->reserved - bytes_coming(core) : UINT64_MAX;
  if (best > allowed) best = (size_t)allowed & ~(size_t)(umemPoolUnit - 1);
  if (best > size && is_ample_coming(core) && !umemPoolLane_is_blocked(lane) &&
      umemPool_await_chunk(core)) {
    lack->why = umemPoolLanded;
    return false;
  }
  if (umemPool_add_chunk(lane, best, alignment, best > size, lack)) return true;
  return best > size && umemPoolLack_is_of_memory(lack) &&
         umemPool_add_chunk(lane, size, alignment, false, lack);
}

/* Takes chunk i out of the books. */
static void forget_chunk(umemPoolCore *core, size_t i) {
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

/* Gives chunk i back if all of it is free. Where the upstream refuses, as one may whose stream is being
 * captured, the chunk stays for another day. */
static void release_if_free(umemPoolCore *core, size_t i) {
  umemPoolChunk *chunk = &core->chunks[i];
  if (!is_free(core, chunk)) return;
  uint64_t before = umem_thread.failures;
  umem_aligned_free(core->upstream, chunk->adr);
  if (umem_thread.failures != before) {
    core->special_count -= chunk->special;
    chunk->special = false;
    return;
  }
  umemRange_remove(core->own->range, chunk->adr >> umemPoolUnitShift,
                   chunk->size >> umemPoolUnitShift);
  forget_chunk(core, i);
}

void umemPool_release_chunks(umemPoolCore *core, size_t keep) {
  for (size_t i = core->chunk_count; i-- > 0;)
    if (core->reserved - core->chunks[i].size >= keep) release_if_free(core, i);
}

void umemPool_release_special_chunks(umemPoolCore *core) {
  for (size_t i = core->special_count ? core->chunk_count : 0; i-- > 0;)
    if (core->chunks[i].special) release_if_free(core, i);
}

void umemPool_end_chunks(umemPoolCore *core) {
  for (size_t i = core->chunk_count; i-- > 0;)
    umem_aligned_free(core->upstream, core->chunks[i].adr);
  free(core->chunks);
  core->chunks = NULL;
  core->chunk_count = 0;
}

/* ---- ranges ---- */

/* The lane's own, that waits, is made free. */
static void join_own(umemPoolLane *lane) {
  umemPool_drain(lane);
  if (lane->waiting_units << umemPoolUnitShift >= lane->core->reserved / 16)
    umemPool_join_waiting(lane);
}

/* A range where the lane has none at hand; UMEM_RANGE_NONE, and why in *lack, without memory. */
static uint64_t find_more(umemPoolLane *lane, uint64_t units, size_t alignment, uint64_t step,
                          umemPoolGrowth growth, umemPoolLack *lack) {
  uint64_t start = UMEM_RANGE_NONE;
  if (lane->core->chunk_count) {
    join_own(lane);
    start = umemRange_alloc(lane->range, units, step);
  }
  if (start == UMEM_RANGE_NONE && umemPoolLane_has_others(lane) &&
      umemPool_borrow(lane, units, step))
    start = umemRange_alloc(lane->range, units, step);
  if (start != UMEM_RANGE_NONE || growth == umemPoolGrowByOthers) return start;
  if (!grow(lane, (size_t)units << umemPoolUnitShift, alignment, growth, lack))
    return UMEM_RANGE_NONE;
  start = umemRange_alloc(lane->range, units, step);
  if (start == UMEM_RANGE_NONE) lacks_books(lack); /* the chunk stays for another try */
  return start;
}

bool umemPool_reserve(umemPoolLane *lane, size_t size, size_t alignment, umemPoolGrowth growth,
                      uintptr_t *adr, umemPoolLack *lack) {
  uint64_t units = ((uint64_t)size + umemPoolUnit - 1) >> umemPoolUnitShift;
  uint64_t step = alignment > umemPoolUnit ? alignment >> umemPoolUnitShift : 1;
  uint64_t start = umemRange_alloc(lane->range, units, step);
  if (start == UMEM_RANGE_NONE && growth != umemPoolGrowNot)
    start = find_more(lane, units, alignment, step, growth, lack);
  *adr = (uintptr_t)(start << umemPoolUnitShift);
  return start != UMEM_RANGE_NONE;
}

uint64_t umemPool_unreserve(umemPoolLane *lane, umemPoolLane *home, uintptr_t adr) {
  return umemRange_hand(home->range, adr >> umemPoolUnitShift, lane->range);
}

umemPoolLane *umemPool_home_of(umemPoolCore *core, uintptr_t adr, uint64_t *units) {
  uint64_t start = adr >> umemPoolUnitShift;
  umemRangeItem item;
  if (adr & (umemPoolUnit - 1)) return NULL;
  for (umemPoolLane *lane = core->lanes; lane; lane = lane->next)
    if (umemRange_find(lane->range, start, &item) && item.live && item.start == start) {
      *units = item.extent;
      return umemPool_is_held(lane, start) ? NULL : lane;
    }
  return NULL;
}
