/* umem_pool_stats.c - what a pool holds, and how it lies there. See umem_pool.h. */
#include "umem_pool.h"

/* Blocks of the class that wait in caches or in the depot. Under the lock. */
static uint64_t waiting(umemPoolCore *core, unsigned class) {
  uint64_t count = (uint64_t)core->classes[class].depot_count * core->shapes[class].batch;
  for (umemPoolCache *cache = core->caches; cache; cache = cache->after)
    count += __atomic_load_n(&cache->slots[class].count, __ATOMIC_RELAXED);
  return count;
}

static uint64_t served(umemPoolCore *core) {
  uint64_t count = core->served;
  for (umemPoolCache *cache = core->caches; cache; cache = cache->after)
    for (unsigned i = 0; i < umemPoolClasses; i++)
      count += __atomic_load_n(&cache->slots[i].served, __ATOMIC_RELAXED);
  return count;
}

void umemPool_measure(umemPoolCore *core, umemPoolStats *stats) {
  umemLock_acquire(&core->lock);
  stats->blocks = core->large_count;
  stats->used = core->large_units << umemPoolUnitShift;
  for (unsigned i = 0; i < umemPoolClasses; i++) {
    uint64_t out = core->classes[i].out, kept = waiting(core, i);
    uint64_t live = out > kept ? out - kept : 0; /* a stack may change while it is counted */
    stats->blocks += live;
    stats->used += live * core->shapes[i].size;
  }
  stats->used_peak = core->used_peak;
  stats->reserved = core->reserved;
  stats->reserved_peak = core->reserved_peak;
  umemPool_join_waiting(core);
  stats->largest_free = umemRange_totals(core->range).largest_free << umemPoolUnitShift;
  stats->allocations = served(core);
  stats->chunks = core->chunk_count;
  umemLock_release(&core->lock);
  uint64_t idle = stats->reserved > stats->used ? stats->reserved - stats->used : 0;
  stats->fragmentation = idle ? 1 - (double)stats->largest_free / (double)idle : 0;
}
