/* pool_stats.c - counts of a pool. See pool.h. */
#include "pool/pool_stats.h"
#include "pool/pool_cache.h"
#include "pool/pool_large.h"
#include "pool/pool_range.h"
#include "pool/pool_space.h"

/* Free blocks of the class in the caches and in the depot of the list. Under the lock. */
static uint64_t kept_of(umemPoolFreeList const *list, unsigned class) {
  uint64_t count = (uint64_t)list->classes[class].depot_count * list->core->shapes[class].batch;
  for (umemPoolCache *cache = list->caches; cache; cache = cache->after)
    count += umemPoolSlot_count(&cache->slots[class]);
  return count;
}

/* The live blocks of the class. A cache may change while it is counted. */
static uint64_t live(umemPoolCore const *core, unsigned class) {
  uint64_t kept = 0, out = core->classes[class].out;
  for (umemPoolFreeList const *list = core->lists; list; list = list->next)
    kept += kept_of(list, class);
  return out > kept ? out - kept : 0;
}

static uint64_t served(umemPoolCore const *core) {
  uint64_t count = core->served;
  for (umemPoolFreeList const *list = core->lists; list; list = list->next)
    for (umemPoolCache *cache = list->caches; cache; cache = cache->after)
      for (unsigned i = 0; i < umemPoolClasses; i++) count += umemPoolSlot_served(&cache->slots[i]);
  return count;
}

/* In one list, with its quick lists coalesced. */
static uint64_t largest_free(umemPoolCore *core) {
  uint64_t largest = 0;
  for (umemPoolFreeList *list = core->lists; list; list = list->next) {
    umemPoolLarge_coalesce(list);
    uint64_t units = umemPoolRange_largest(list);
    if (units > largest) largest = units;
  }
  return largest << umemPoolUnitShift;
}

/* Spaces with memory. */
static uint64_t spaces_of(umemPoolCore const *core) {
  uint64_t count = 0;
  for (umemPoolSpace const *space = core->spaces; space; space = space->next)
    count += umemPoolSpace_next(space, 0, true) < space->count;
  return count;
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
  stats->chunks = core->chunk_count + spaces_of(core);
  stats->factor = stats->used_peak ? (double)stats->reserved_peak / (double)stats->used_peak : 0;
}

void umemPoolCore_measure(umemPoolCore *core, umemPoolStats *stats) {
  umemLock_acquire(&core->lock);
  measure(core, stats);
  umemLock_release(&core->lock);
}

bool umemPoolCore_try_measure(umemPoolCore *core, umemPoolStats *stats) {
  if (!umemLock_try(&core->lock)) return false;
  measure(core, stats);
  umemLock_release(&core->lock);
  return true;
}

void umemPoolCore_measure_free(umemPoolCore *core, umemPoolStats *stats) {
  umemLock_acquire(&core->lock);
  measure(core, stats);
  stats->largest_free = largest_free(core);
  umemLock_release(&core->lock);
  uint64_t idle = stats->reserved > stats->used ? stats->reserved - stats->used : 0;
  stats->fragmentation = idle ? 1 - (double)stats->largest_free / (double)idle : 0;
}
