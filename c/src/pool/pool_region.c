/* pool_region.c - what is where in the memory of a pool. See pool.h. */
#include "pool/pool_region.h"
#include "pool/pool_chunk.h"
#include "pool/pool_large.h"
#include "pool/pool_space.h"

/* ---- which one. Under the lock ---- */

/* Sets *found if the piece begins at or after from, and before what was found so far. */
static void consider(umemPoolRegion *found, uintptr_t from, umemPoolRegion piece) {
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
  consider(found, from,
           (umemPoolRegion){
               .adr = start + page * size, .nbytes = (end - page) * size, .age = UMEM_UNKNOWN});
}

/* ---- what is in it. Under the lock ---- */

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

bool umemPoolCore_next_region(umemPoolCore *core, uintptr_t from, umemPoolRegion *region) {
  umemLock_acquire(&core->lock);
  umemPoolChunk_next(core, from, region);
  for (umemPoolSpace const *space = core->spaces; space; space = space->next)
    consider_pages(region, from, core, space);
  for (umemPoolFreeList *list = core->lists; list && region->nbytes; list = list->next) {
    umemPoolLarge_coalesce(list);
    add_ranges(region, list);
  }
  umemLock_release(&core->lock);
  return region->nbytes;
}
