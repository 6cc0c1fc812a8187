/* pool_stats.c - what a pool holds, and how it lies there. See umem_pool.h. */
#include "pool/pool.h"

/* Blocks of the class that wait in the lane's caches or in its depot. Under the lock. */
static uint64_t waiting(umemPoolLane const *lane, unsigned class) {
  uint64_t count = (uint64_t)lane->shelves[class].depot_count * lane->core->shapes[class].batch;
  for (umemPoolCache *cache = lane->caches; cache; cache = cache->after)
    count += __atomic_load_n(&cache->slots[class].count, __ATOMIC_RELAXED);
  return count;
}

/* Those in caches and depots of all lanes. A stack may change while it is counted. */
static uint64_t live(umemPoolCore const *core, unsigned class) {
  uint64_t kept = 0, out = core->classes[class].out;
  for (umemPoolLane const *lane = core->lanes; lane; lane = lane->next)
    kept += waiting(lane, class);
  return out > kept ? out - kept : 0;
}

static uint64_t served(umemPoolCore const *core) {
  uint64_t count = core->served;
  for (umemPoolLane const *lane = core->lanes; lane; lane = lane->next)
    for (umemPoolCache *cache = lane->caches; cache; cache = cache->after)
      for (unsigned i = 0; i < umemPoolClasses; i++)
        count += __atomic_load_n(&cache->slots[i].served, __ATOMIC_RELAXED);
  return count;
}

/* Of one lane, when all that waits is joined. */
static uint64_t largest_free(umemPoolCore *core) {
  uint64_t largest = 0;
  for (umemPoolLane *lane = core->lanes; lane; lane = lane->next) {
    umemPool_join_waiting(lane);
    uint64_t units = umemRange_totals(lane->range).largest_free;
    if (units > largest) largest = units;
  }
  return largest << umemPoolUnitShift;
}

/* Under the lock. */
static void measure(umemPoolCore *core, umemPoolStats *stats) {
  stats->blocks = core->large_count;
  stats->used = core->large_units << umemPoolUnitShift;
  for (unsigned i = 0; i < umemPoolClasses; i++) {
    uint64_t blocks = live(core, i);
    stats->blocks += blocks;
    stats->used += blocks * core->shapes[i].size;
  }
  stats->used_peak = core->used_peak;
  stats->reserved = core->reserved;
  stats->reserved_peak = core->reserved_peak;
  stats->allocations = served(core);
  stats->chunks = core->chunk_count;
}

void umemPool_measure(umemPoolCore *core, umemPoolStats *stats) {
  umemLock_acquire(&core->lock);
  measure(core, stats);
  umemLock_release(&core->lock);
}

void umemPool_measure_free(umemPoolCore *core, umemPoolStats *stats) {
  umemLock_acquire(&core->lock);
  measure(core, stats);
  stats->largest_free = largest_free(core);
  umemLock_release(&core->lock);
  uint64_t idle = stats->reserved > stats->used ? stats->reserved - stats->used : 0;
  stats->fragmentation = idle ? 1 - (double)stats->largest_free / (double)idle : 0;
}
