/* pool_paging.c - finds places for ranges, and maps and moves pages. See pool.h.
 *
 * Gaps and free memory of one list that are side by side form a cluster (C. Guo et al.: "GMLake",
 * ASPLOS 2024, stitches such pieces). In each cluster the search tries the places that begin where
 * a piece begins, and those that end where one ends: no other place needs fewer pages. */
#include "pool/pool_paging.h"
#include "base/thread.h"
#include "pool/pool_core.h"

#include <stdlib.h>

/* ---- places ---- */

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

/* Each place has a gap. So none is better than one that needs a single page: in a pool of very many
 * gaps that is found soon. */
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

/* ---- what there is ---- */

/* The whole pages inside of a free range: [*first, *end) of the space. NULL outside of spaces. */
static umemPoolSpace *whole_pages(umemPoolCore const *core, umemRangeItem const *item,
                                  size_t *first, size_t *end) {
  umemPoolSpace *space = umemPoolSpace_of(core, item->start);
  if (!space) return NULL;
  *first = umemPoolSpace_page(core, space, item->start + umemPoolSpace_units(core) - 1);
  *end = umemPoolSpace_page(core, space, item->start + item->extent);
  return space;
}

/* A walk through the pages of a list of which all is free. Begins with the list, and zeros. */
typedef struct Walk {
  umemPoolFreeList *home;
  uint32_t cursor;
  umemPoolSpace *space; /* of the free range that was found last */
  size_t page, end;     /* what is left of that */
} Walk;

/* Fills in the next ones, of one size. False at the end. */
static bool next_source(Walk *walk, umemPoolPiece *piece) {
  umemPoolCore const *core = walk->home->core;
  uint64_t units = umemPoolSpace_units(core);
  umemRangeItem item;
  umemPoolRun run;
  for (;;) {
    if (walk->space && umemPoolSpace_next_run(core, walk->space, &walk->page, walk->end, &run)) {
      uint64_t start = umemPoolSpace_unit(core, walk->space, run.first);
      *piece =
          (umemPoolPiece){walk->home, start, run.count * units, run.count, 0, run.large, false};
      return true;
    }
    if (!umemRange_next_free(walk->home->range, units, &walk->cursor, &item)) return false;
    walk->space = whole_pages(core, &item, &walk->page, &walk->end);
  }
}

/* Whether its pages may become sources for the list. */
static bool gives(umemPoolPaging const *paging, umemPoolFreeList const *home) {
  if (home == paging->list) return true;
  bool others = paging->place.space && (home->in_use || home == home->core->own);
  return others && !home->ending && !umemPoolQueue_is_blocked(home);
}

/* At most so many pieces of free pages there are: a pool may have very many free ranges that are
 * smaller than a page. */
static size_t count_sources(umemPoolCore const *core) {
  size_t count = 0;
  umemPoolPiece piece;
  for (umemPoolFreeList *list = core->lists; list; list = list->next)
    for (Walk walk = {.home = list}; next_source(&walk, &piece);) count++;
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
  size_t pieces = place ? 2 * count_pieces(list, place) : 0, room = count_sources(list->core) + 2;
  umemPoolPaging *paging = malloc(sizeof *paging + (pieces + 3 * room) * sizeof *paging->pieces);
  if (!paging) return NULL;
  *paging = (umemPoolPaging){.lineage = umem_fork_count(), .list = list, .room = room};
  if (place) paging->place = *place;
  paging->gaps = paging->pieces;
  paging->held = paging->pieces + pieces / 2;
  paging->sources = paging->pieces + pieces;
  paging->seen = paging->sources + 2 * room;
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
    paging->gaps[paging->gap_count++] =
        (umemPoolPiece){.home = paging->list, .start = start, .units = units, .pages = end - page};
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
    paging->held[paging->held_count++] =
        (umemPoolPiece){.home = paging->list, .start = start, .units = end - start};
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

/* The highest piece first. So the gaps gather above, the memory below: fewer pages move than with
 * the smallest piece first, in fewer pieces. */
static int compare(void const *one, void const *other) {
  umemPoolPiece const *a = one, *b = other;
  return a->start > b->start ? -1 : 1;
}

/* Adds all that the list has to what was seen. Returns the pages. */
static size_t look_at(umemPoolPaging *paging, umemPoolFreeList *home) {
  size_t first = paging->seen_count, pages = 0;
  umemPoolPiece piece;
  for (Walk walk = {.home = home};
       paging->seen_count < paging->room && next_source(&walk, &piece);) {
    paging->seen[paging->seen_count++] = piece;
    pages += piece.pages;
  }
  qsort(paging->seen + first, paging->seen_count - first, sizeof *paging->seen, compare);
  return pages;
}

/* Makes up to so many pages sources: of what was seen and is left, in turn, the upper part of each
 * piece. The lower one stays beside what is below. */
static size_t take_some(umemPoolPaging *paging, size_t pages, bool large, bool ends) {
  size_t taken = 0, step = large ? paging->list->core->group : 1;
  for (size_t i = 0; i < paging->seen_count && taken < pages; i++) {
    umemPoolPiece *seen = &paging->seen[i], piece = *seen;
    size_t count = seen->pages < pages - taken ? seen->pages : pages - taken;
    uint64_t units = umemPoolSpace_units(paging->list->core);
    if (seen->large != large) continue;
    count -= count % step;
    if (!count) continue;
    piece.start += (seen->pages - count) * units;
    piece.pages = count;
    piece.units = count * units;
    piece.ends = ends;
    if (!umemRange_take(piece.home->range, piece.start, piece.units)) continue;
    seen->pages -= count;
    seen->units -= piece.units;
    paging->sources[paging->source_count++] = piece;
    taken += count;
  }
  return taken;
}

/* How many pages of the gaps can be large ones. */
static size_t room_for_large(umemPoolPaging const *paging) {
  umemPoolCore const *core = paging->list->core;
  size_t room = 0;
  for (size_t i = 0; core->group && i < paging->gap_count; i++) {
    umemPoolPiece const *gap = &paging->gaps[i];
    size_t page = umemPoolSpace_page(core, paging->place.space, gap->start);
    size_t end = page + gap->pages, first = (page + core->group - 1) / core->group * core->group;
    if (end >= first + core->group) room += (end - first) / core->group * core->group;
  }
  return room;
}

/* As many pages or more: whole groups of them. */
static size_t in_groups(umemPoolCore const *core, size_t pages) {
  return core->group ? (pages + core->group - 1) / core->group * core->group : pages;
}

void umemPoolPaging_take(umemPoolPaging *paging, size_t pages) {
  umemPoolCore const *core = paging->list->core;
  size_t seen = look_at(paging, paging->list);
  for (umemPoolFreeList *home = core->lists; home && seen < pages; home = home->next)
    if (home != paging->list && gives(paging, home)) seen += look_at(paging, home);
  if (!paging->place.space) {
    size_t taken = take_some(paging, pages, true, true);
    take_some(paging, pages - taken, false, true);
    return;
  }
  size_t most = in_groups(core, pages), room = room_for_large(paging);
  size_t taken = take_some(paging, room < most ? room : most, true, false);
  if (taken < pages) taken += take_some(paging, pages - taken, false, false);
  if (taken < pages) take_some(paging, in_groups(core, pages - taken), true, true);
}

size_t umemPoolPaging_pages(umemPoolPaging const *paging, bool ends) {
  size_t pages = 0;
  for (size_t i = 0; i < paging->source_count; i++)
    if (paging->sources[i].ends == ends) pages += paging->sources[i].pages;
  return pages;
}

/* Whether the queue of the source i was waited for with an earlier one. Most sources of a list
 * follow one another. */
static bool is_done(umemPoolPiece const *sources, size_t i) {
  umemPoolFreeList const *home = sources[i].home;
  bool done = i && sources[i - 1].home == home;
  for (size_t k = 0; !done && k < i; k++) done = sources[k].home == home;
  return done;
}

void umemPoolPaging_finish(umemPoolPaging *paging) {
  size_t kept = 0;
  for (size_t i = 0; i < paging->source_count; i++) {
    umemPoolFreeList *home = paging->sources[i].home;
    if (!home || is_done(paging->sources, i) || umemPoolQueue_finish(home)) continue;
    for (size_t j = i; j < paging->source_count; j++) {
      umemPoolPiece *piece = &paging->sources[j];
      if (piece->home != home) continue;
      umemRange_free(home->range, piece->start);
      piece->home = NULL;
    }
  }
  for (size_t i = 0; i < paging->source_count; i++)
    if (paging->sources[i].home) paging->sources[kept++] = paging->sources[i];
  paging->source_count = kept;
}

/* ---- end ---- */

/* The pages [from, to) of a piece whose record was dropped are free in its list. Without memory for
 * the record they stay unused until the pool ends. */
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
