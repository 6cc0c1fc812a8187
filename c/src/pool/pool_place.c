/* pool_place.c - where in the spaces of a pool a range is made of free memory and gaps. See pool.h.
 *
 * Gaps and free memory of one list that are side by side form a cluster (C. Guo et al.: "GMLake", ASPLOS 2024, stitches
 * such pieces). In each cluster the search tries the places that begin where a piece begins, and those that end
 * where one ends: no other place needs fewer pages. */
#include "pool/pool_place.h"

typedef struct Search {
  umemPoolFreeList const *list;
  uint64_t units, step;
  umemPoolPlace best;
} Search;

static bool begins_page(umemPoolCore const *core, umemPoolSpace const *space, uint64_t unit) {
  return !((unit - space->start) & (umemPoolSpace_units(core) - 1));
}

uint64_t umemPoolPlace_piece(umemPoolFreeList const *list, umemPoolSpace const *space,
                             uint64_t unit) {
  umemPoolCore const *core = list->core;
  umemRangeItem item;
  if (unit >= umemPoolSpace_unit(core, space, space->count)) return unit;
  size_t page = umemPoolSpace_page(core, space, unit);
  if (!umemPoolSpace_has(space, page) && begins_page(core, space, unit))
    return umemPoolSpace_unit(core, space, umemPoolSpace_next(space, page, true));
  bool free = umemRange_find(list->range, unit, &item) && !item.live;
  return free ? item.start + item.extent : unit;
}

/* ---- one cluster ---- */

static void consider(Search *search, umemPoolSpace *space, uint64_t begin, uint64_t end,
                     uint64_t start) {
  umemPoolCore const *core = search->list->core;
  if (start < begin || start > end || end - start < search->units) return;
  size_t first = umemPoolSpace_page(core, space, start);
  size_t last = umemPoolSpace_page(core, space, start + search->units - 1);
  size_t missing = umemPoolSpace_missing(space, first, last + 1);
  umemPoolPlace *best = &search->best;
  if (best->space && missing >= best->missing) return;
  *best = (umemPoolPlace){space, start, start + search->units, first, last, missing};
}

static uint64_t end_of_cluster(Search const *search, umemPoolSpace const *space, uint64_t begin) {
  uint64_t end = begin, next;
  while ((next = umemPoolPlace_piece(search->list, space, end)) != end) end = next;
  return end;
}

/* Where the cluster of the gap that begins with this page begins. */
static uint64_t begin_of_cluster(Search const *search, umemPoolSpace const *space, size_t gap) {
  uint64_t unit = umemPoolSpace_unit(search->list->core, space, gap);
  umemRangeItem item;
  bool below = gap && umemRange_find(search->list->range, unit - 1, &item) && !item.live;
  return below ? item.start : unit;
}

/* Returns the end of the cluster. */
static uint64_t search_cluster(Search *search, umemPoolSpace *space, uint64_t begin) {
  uint64_t end = end_of_cluster(search, space, begin), mask = search->step - 1;
  for (uint64_t piece = begin, next; piece < end; piece = next) {
    next = umemPoolPlace_piece(search->list, space, piece);
    consider(search, space, begin, end, (piece + mask) & ~mask);
    if (next - begin >= search->units)
      consider(search, space, begin, end, (next - search->units) & ~mask);
  }
  return end;
}

/* ---- all clusters ---- */

/* Each place has a gap. So none is better than one that needs a single page: in a pool of very many gaps that is found
 * soon. */
static bool is_over(Search const *search) {
  return search->best.space && search->best.missing <= 1;
}

static void search_space(Search *search, umemPoolSpace *space) {
  umemPoolCore const *core = search->list->core;
  for (size_t gap = 0;
       !is_over(search) && (gap = umemPoolSpace_next(space, gap, false)) < space->count;) {
    uint64_t begin = begin_of_cluster(search, space, gap);
    uint64_t end = search_cluster(search, space, begin);
    size_t next = umemPoolSpace_page(core, space, end);
    gap = next > gap ? next : gap + 1;
  }
}

umemPoolPlace umemPoolPlace_find(umemPoolFreeList const *list, uint64_t units, uint64_t step) {
  Search search = {.list = list, .units = units, .step = step};
  for (umemPoolSpace *space = list->core->spaces; space && !is_over(&search); space = space->next)
    search_space(&search, space);
  return search.best;
}
