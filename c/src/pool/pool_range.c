/* pool_range.c - ranges of a pool's chunks. See pool.h.
 *
 * Addresses of any upstream, counted in units, stay below the bound of the range allocator. */
#include "pool/pool_range.h"
#include "pool/pool_paging.h"

#include <stdlib.h>

bool umemPoolRange_take(umemPoolFreeList *list, uint64_t units, size_t alignment, uintptr_t *adr) {
  uint64_t step = alignment > umemPoolUnit ? alignment >> umemPoolUnitShift : 1;
  uint64_t start = umemRange_alloc(list->range, units, step);
  *adr = (uintptr_t)(start << umemPoolUnitShift);
  return start != UMEM_RANGE_NONE;
}

uint64_t umemPoolRange_free(umemPoolFreeList *list, umemPoolFreeList *home, uintptr_t adr) {
  return umemRange_hand(home->range, adr >> umemPoolUnitShift, list->range);
}

static bool is_in_transit(umemPoolFreeList const *home, uint64_t start) {
  for (umemPoolTransit *transit = home->core->transits; transit; transit = transit->next)
    for (size_t i = 0; transit->home == home && i < transit->count; i++)
      if (transit->starts[i] == start) return true;
  return false;
}

static bool is_paged(umemPoolCore const *core, umemPoolFreeList const *list, uint64_t start) {
  return core->paging && umemPoolPaging_has(core->paging, list, start);
}

umemPoolFreeList *umemPoolRange_home(umemPoolCore *core, uintptr_t adr, uint64_t *units) {
  uint64_t start = adr >> umemPoolUnitShift;
  umemRangeItem item;
  if (adr & (umemPoolUnit - 1)) return NULL;
  for (umemPoolFreeList *list = core->lists; list; list = list->next)
    if (umemRange_find(list->range, start, &item) && item.live && item.start == start) {
      *units = item.extent;
      return is_in_transit(list, start) || is_paged(core, list, start) ? NULL : list;
    }
  return NULL;
}

/* ---- in transit ---- */

umemPoolTransit *umemPoolTransit_new(umemPoolFreeList *home, size_t count) {
  umemPoolTransit *transit = malloc(sizeof *transit + count * sizeof *transit->starts);
  if (!transit) {
    umemVirtual_fail(NULL, umemMemoryError, "no memory for the records of the pool");
    return NULL;
  }
  *transit = (umemPoolTransit){home->core->transits, home, 0};
  home->core->transits = transit;
  return transit;
}

umemPoolTransit *umemPoolTransit_of_all(umemPoolFreeList *home) {
  umemPoolTransit *transit = umemPoolTransit_new(home, umemRange_totals(home->range).free_count);
  umemRangeItem item;
  if (!transit) return NULL;
  for (uint64_t at = 0; umemRange_next(home->range, at, &item); at = item.start + item.extent)
    if (!item.live) {
      umemRange_claim(home->range, item.start);
      transit->starts[transit->count++] = item.start;
    }
  return transit;
}

bool umemPoolTransit_end(umemPoolTransit *transit, umemPoolFreeList *list) {
  bool all = true;
  for (size_t i = 0; i < transit->count; i++)
    if (!umemRange_hand(transit->home->range, transit->starts[i], list->range)) {
      umemRange_free(transit->home->range, transit->starts[i]);
      all = false;
    }
  umemPoolTransit **link = &list->core->transits;
  while (*link != transit) link = &(*link)->next;
  *link = transit->next;
  free(transit);
  return all;
}

void umemPoolTransit_free_all(umemPoolCore *core) {
  while (core->transits) {
    umemPoolTransit *transit = core->transits;
    core->transits = transit->next;
    free(transit);
  }
}
