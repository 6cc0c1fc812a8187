/* pool_report.c - what a pool says of itself: how much it has and uses, and where. */
#include "pool/pool_cache.h"
#include "pool/pool_space.h"

/* ---- counts; under the lock ---- */

/* Counts the small blocks: those that are out of their spans, but not kept in depots and caches. A
 * cache may change while it is counted. */
static void measure_small(umemPoolCore const *core, umemPoolStats *stats) {
  uint64_t kept[umemPoolClasses] = {0};
  for (umemPoolFreeList const *list = core->lists; list; list = list->next) {
    for (unsigned i = 0; i < umemPoolClasses; i++)
      kept[i] += (uint64_t)list->classes[i].depot_count * core->shapes[i].batch;
    for (umemPoolCache *cache = list->caches; cache; cache = cache->after)
      for (unsigned i = 0; i < umemPoolClasses; i++) {
        kept[i] += umemPoolSlot_count(&cache->slots[i]);
        stats->allocations += umemPoolSlot_served(&cache->slots[i]);
      }
  }
  for (unsigned i = 0; i < umemPoolClasses; i++) {
    uint64_t out = core->classes[i].out, blocks = out > kept[i] ? out - kept[i] : 0;
    stats->blocks += blocks;
    stats->used += blocks * core->shapes[i].size;
  }
}

/* Spaces with memory. */
static uint64_t spaces_of(umemPoolCore const *core) {
  uint64_t count = 0;
  for (umemPoolSpace const *space = core->spaces; space; space = space->next)
    count += umemPoolSpace_next(space, 0, true) < space->count;
  return count;
}

void umemPoolReport_measure(umemPoolCore *core, umemPoolStats *stats) {
  stats->blocks = core->large_count;
  stats->used = core->large_units << umemPoolUnitShift;
  stats->allocations = core->served;
  measure_small(core, stats);
  stats->used_peak = core->used_peak;
  stats->reserved = core->reserved;
  stats->reserved_peak = core->reserved_peak;
  stats->chunks = core->chunk_count + spaces_of(core);
  stats->factor = stats->used_peak ? (double)stats->reserved_peak / (double)stats->used_peak : 0;
}

/* ---- regions; under the lock ---- */

/* Sets *found if the piece begins at or after from, and before what was found so far. */
static void consider_region(umemPoolRegion *found, uintptr_t from, umemPoolRegion piece) {
  if (piece.adr < from) return;
  if (!found->nbytes || piece.adr < found->adr) *found = piece;
}

/* The first run of pages with memory. */
static void consider_pages(umemPoolRegion *found, uintptr_t from, umemPoolCore const *core,
                           umemPoolSpace const *space) {
  uintptr_t start = (uintptr_t)(space->start << umemPoolUnitShift);
  size_t size = core->pages->page_size, page = 0, end = 0;
  do {
    page = umemPoolSpace_next(space, end, true);
    if (page == space->count) return;
    end = umemPoolSpace_next(space, page, false);
  } while (start + page * size < from);
  consider_region(found, from,
                  (umemPoolRegion){.adr = start + page * size,
                                   .nbytes = (end - page) * size,
                                   .age = UMEM_UNKNOWN});
}

static void add_ranges(umemPoolRegion *region, umemPoolFreeList const *list) {
  uint64_t start = region->adr >> umemPoolUnitShift,
           end = start + (region->nbytes >> umemPoolUnitShift);
  umemRangeItem item;
  for (uint64_t at = start; umemRange_next(list->range, at, &item) && item.start < end;
       at = item.start + item.extent) {
    uint64_t nbytes = item.extent << umemPoolUnitShift;
    region->ranges += item.live;
    if (item.live) region->used += nbytes;
    if (!item.live && nbytes > region->largest_free) region->largest_free = nbytes;
  }
}

void umemPoolReport_next_region(umemPoolCore *core, uintptr_t from, umemPoolRegion *region) {
  umemPoolChunk_next(core, from, region);
  for (umemPoolSpace const *space = core->spaces; space; space = space->next)
    consider_pages(region, from, core, space);
  for (umemPoolFreeList *list = core->lists; list && region->nbytes; list = list->next) {
    umemPoolLarge_coalesce(list);
    add_ranges(region, list);
  }
}

/* ---- the largest free range ---- */

uint64_t umemPoolReport_largest_free(umemPoolCore *core) {
  uint64_t largest = 0;
  for (umemPoolFreeList *list = core->lists; list; list = list->next) {
    umemPoolLarge_coalesce(list);
    uint64_t units = umemPoolRange_largest(list);
    if (units > largest) largest = units;
  }
  return largest << umemPoolUnitShift;
}
