/* pool_paging.c - the pieces of memory that a thread maps and moves while the lock is open. See pool.h. */
#include "pool/pool_paging.h"
#include "base/thread.h"
#include "pool/pool_queue.h"

#include <stdlib.h>

/* ---- what there is ---- */

/* The whole pages inside of a free range: their number, and the first unit of them. */
static size_t whole_pages(umemPoolCore const *core, umemRangeItem const *item, uint64_t *start) {
  umemPoolSpace const *space = umemPoolSpace_of(core, item->start);
  if (!space) return 0;
  uint64_t units = umemPoolSpace_units(core), end = item->start + item->extent;
  size_t first = umemPoolSpace_page(core, space, item->start + units - 1);
  size_t last = umemPoolSpace_page(core, space, end);
  *start = umemPoolSpace_unit(core, space, first);
  return last > first ? last - first : 0;
}

/* Whether its pages may become sources for the list. */
static bool gives(umemPoolPaging const *paging, umemPoolFreeList const *home) {
  if (home == paging->list) return true;
  bool others = paging->place.space && (home->in_use || home == home->core->own);
  return others && !home->ending && !umemPoolQueue_is_blocked(home);
}

/* At most so many free ranges have whole pages: a pool may have very many that are smaller. */
static size_t count_large_ranges(umemPoolCore const *core) {
  size_t count = 0;
  umemRangeItem item;
  for (umemPoolFreeList const *list = core->lists; list; list = list->next)
    for (uint32_t cursor = 0;
         umemRange_next_free(list->range, umemPoolSpace_units(core), &cursor, &item);)
      count++;
  return count;
}

/* The pieces of a place: at most one more than its borders. */
static size_t count_pieces(umemPoolFreeList const *list, umemPoolPlace const *place) {
  size_t count = 0;
  umemRangeItem item;
  for (uint64_t at = place->start;
       umemRange_next(list->range, at, &item) && item.start < place->end;
       at = item.start + item.extent)
    count++;
  for (size_t page = place->first; page <= place->last; count++)
    page =
        umemPoolSpace_next(place->space, umemPoolSpace_next(place->space, page, false), true) + 1;
  return count + 2;
}

/* ---- begin ---- */

static umemPoolPaging *new_paging(umemPoolFreeList *list, umemPoolPlace const *place) {
  size_t pieces = place ? 2 * count_pieces(list, place) : 0,
         room = count_large_ranges(list->core) + 2;
  umemPoolPaging *paging = malloc(sizeof *paging + (pieces + room) * sizeof *paging->pieces);
  if (!paging) return NULL;
  *paging = (umemPoolPaging){.lineage = umem_fork_count(), .list = list, .source_room = room};
  if (place) paging->place = *place;
  paging->gaps = paging->pieces;
  paging->held = paging->pieces + pieces / 2;
  paging->sources = paging->pieces + pieces;
  return paging;
}

static bool take_gaps(umemPoolPaging *paging) {
  umemPoolPlace const *place = &paging->place;
  umemPoolSpace const *space = place->space;
  umemPoolCore const *core = paging->list->core;
  size_t page = umemPoolSpace_next(space, place->first, false);
  while (page <= place->last) {
    size_t end = umemPoolSpace_next(space, page, true);
    if (end > place->last || end <= page) end = place->last + 1;
    uint64_t start = umemPoolSpace_unit(core, space, page);
    uint64_t units = (end - page) * umemPoolSpace_units(core);
    if (!umemRange_enter(paging->list->range, start, units)) return false;
    paging->gaps[paging->gap_count++] = (umemPoolPiece){paging->list, start, units, end - page, 0};
    page = umemPoolSpace_next(space, end, false);
  }
  return true;
}

/* What is free in the place. */
static bool hold(umemPoolPaging *paging) {
  umemPoolPlace const *place = &paging->place;
  umemRange *range = paging->list->range;
  umemRangeItem item;
  for (uint64_t at = place->start; at < place->end;) {
    bool found = umemRange_find(range, at, &item) || umemRange_next(range, at, &item);
    if (!found || item.start >= place->end) break;
    uint64_t start = item.start > at ? item.start : at, end = item.start + item.extent;
    at = end;
    if (item.live) continue;
    if (end > place->end) end = place->end;
    if (!umemRange_take(range, start, end - start)) return false;
    paging->held[paging->held_count++] = (umemPoolPiece){paging->list, start, end - start, 0, 0};
  }
  return true;
}

umemPoolPaging *umemPoolPaging_begin(umemPoolFreeList *list, umemPoolPlace const *place) {
  umemPoolPaging *paging = new_paging(list, place);
  if (!paging) return NULL;
  list->core->paging = paging;
  if (!place || (hold(paging) && take_gaps(paging))) return paging;
  umemPoolPaging_end(paging);
  return NULL;
}

/* ---- sources ---- */

/* The highest piece first. So the gaps gather above, the memory below: fewer pages move than with the smallest piece
 * first, in fewer pieces. */
static int compare(void const *one, void const *other) {
  umemPoolPiece const *a = one, *b = other;
  return a->start > b->start ? -1 : 1;
}

/* Adds all that the list has to the sources; nothing is taken yet. Returns the pages. */
static size_t look_at(umemPoolPaging *paging, umemPoolFreeList *home) {
  size_t first = paging->source_count, pages = 0;
  uint64_t per_page = umemPoolSpace_units(home->core);
  umemRangeItem item;
  for (uint32_t cursor = 0; umemRange_next_free(home->range, per_page, &cursor, &item);) {
    uint64_t start = 0;
    size_t count = whole_pages(home->core, &item, &start);
    if (!count || paging->source_count == paging->source_room) continue;
    uint64_t units = count * per_page;
    paging->sources[paging->source_count++] = (umemPoolPiece){home, start, units, count, 0};
    pages += count;
  }
  qsort(paging->sources + first, paging->source_count - first, sizeof *paging->sources, compare);
  return pages;
}

/* Takes sources in turn until there are enough, and forgets the others. */
static size_t take_in_turn(umemPoolPaging *paging, size_t pages) {
  size_t taken = 0, kept = 0;
  for (size_t i = 0; i < paging->source_count && taken < pages; i++) {
    umemPoolPiece piece = paging->sources[i];
    uint64_t units = piece.units / piece.pages;
    if (piece.pages >
        pages - taken) { /* the upper part: the lower one stays beside what is below */
      size_t left = piece.pages - (pages - taken);
      piece.start += left * units;
      piece.pages -= left;
      piece.units = piece.pages * units;
    }
    if (!umemRange_take(piece.home->range, piece.start, piece.units)) continue;
    paging->sources[kept++] = piece;
    taken += piece.pages;
  }
  paging->source_count = kept;
  return taken;
}

size_t umemPoolPaging_take(umemPoolPaging *paging, size_t pages) {
  size_t seen = look_at(paging, paging->list);
  for (umemPoolFreeList *home = paging->list->core->lists; home && seen < pages; home = home->next)
    if (home != paging->list && gives(paging, home)) seen += look_at(paging, home);
  return take_in_turn(paging, pages);
}

static bool is_done(umemPoolPiece const *sources, size_t count, umemPoolFreeList const *home) {
  for (size_t i = 0; i < count; i++)
    if (sources[i].home == home) return true;
  return false;
}

size_t umemPoolPaging_finish(umemPoolPaging *paging) {
  size_t given_back = 0, kept = 0;
  for (size_t i = 0; i < paging->source_count; i++) {
    umemPoolFreeList *home = paging->sources[i].home;
    if (!home || is_done(paging->sources, i, home) || umemPoolQueue_finish(home)) continue;
    for (size_t j = i; j < paging->source_count; j++) {
      umemPoolPiece *piece = &paging->sources[j];
      if (piece->home != home) continue;
      umemRange_free(home->range, piece->start);
      given_back += piece->pages;
      piece->home = NULL;
    }
  }
  for (size_t i = 0; i < paging->source_count; i++)
    if (paging->sources[i].home) paging->sources[kept++] = paging->sources[i];
  paging->source_count = kept;
  return given_back;
}

/* ---- end ---- */

/* The pages [from, to) of a piece whose record was dropped are free in its list. Without memory for the record they
 * stay unused until the pool ends. */
static void free_part(umemPoolCore *core, umemPoolPiece const *piece, size_t from, size_t to) {
  uint64_t units = umemPoolSpace_units(core);
  if (from < to)
    umemRange_add(piece->home->range, piece->start + from * units, (to - from) * units, true);
}

static void note(umemPoolCore *core, umemPoolPiece const *piece, bool mapped) {
  umemPoolSpace *space = umemPoolSpace_of(core, piece->start);
  size_t page = umemPoolSpace_page(core, space, piece->start);
  if (piece->done) umemPoolSpace_set(core, space, page, piece->done, mapped);
}

static void end_source(umemPoolCore *core, umemPoolPiece const *piece) {
  note(core, piece, false);
  if (!piece->done) {
    umemRange_free(piece->home->range, piece->start);
  } else {
    umemRange_drop(piece->home->range, piece->start);
    free_part(core, piece, piece->done, piece->pages);
  }
}

static void end_gap(umemPoolCore *core, umemPoolPiece const *piece) {
  note(core, piece, true);
  if (piece->done == piece->pages) {
    umemRange_free(piece->home->range, piece->start);
  } else {
    umemRange_drop(piece->home->range, piece->start);
    free_part(core, piece, 0, piece->done);
  }
}

/* Sources first: what is moved counts once. */
void umemPoolPaging_end(umemPoolPaging *paging) {
  umemPoolCore *core = paging->list->core;
  for (size_t i = 0; i < paging->source_count; i++) end_source(core, &paging->sources[i]);
  for (size_t i = 0; i < paging->gap_count; i++) end_gap(core, &paging->gaps[i]);
  for (size_t i = 0; i < paging->held_count; i++)
    umemRange_free(paging->list->range, paging->held[i].start);
  core->paging = NULL;
  free(paging);
}

void umemPoolPaging_abandon(umemPoolCore *core) {
  umemPoolPaging *paging = core->paging;
  for (size_t i = 0; i < paging->gap_count; i++)
    umemRange_drop(paging->list->range, paging->gaps[i].start);
  for (size_t i = 0; i < paging->held_count; i++)
    umemRange_free(paging->list->range, paging->held[i].start);
  core->paging = NULL;
  free(paging);
}

bool umemPoolPaging_has(umemPoolPaging const *paging, umemPoolFreeList const *list,
                        uint64_t start) {
  umemPoolPiece const *end = paging->sources + paging->source_count;
  for (umemPoolPiece const *piece = paging->pieces; piece < end; piece++) {
    bool used = piece < paging->gaps + paging->gap_count ||
                (piece >= paging->held && piece < paging->held + paging->held_count) ||
                piece >= paging->sources;
    if (used && piece->home == list && piece->start == start) return true;
  }
  return false;
}
