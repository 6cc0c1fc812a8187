/* pool_pages.c - gets memory for a pool page by page, where the upstream can map it.
 *
 * A large range of addresses is the place of all blocks. Where nothing free suffices, a place is
 * made of free memory and gaps that are side by side. The gaps get pages of which all is free
 * elsewhere, and new ones only for the rest: so the pool holds hardly more than what was live at
 * once (PyTorch's expandable segments; GMLake).
 *
 * Large pages of the upstream take less time, but move only as a whole. So a pool has them only if
 * the program wants it to grow by so many bytes.
 *
 * A page may be moved when the work that may still use it is done, which the driver does not wait
 * for. So a piece is taken out of its list first, then the lock is opened, and the queue of the
 * list waited for. While the lock is open the pieces are held ranges, and one thread at a time
 * maps. */
#include "base/number.h"
#include "core/ram.h"
#include "pool/pool_grow.h"

#include <stdlib.h>

/* What a thread maps, and moves for it, while the lock is open. */
struct umemPoolPaging {
  unsigned lineage; /* umem_fork_count() at its begin */
  umemPoolFreeList *list;
  umemPoolPlace place; /* space NULL: none, pages go back */
  size_t gap_count, source_count, seen_count, room;
  umemPoolPiece *gaps;    /* of the place: will get memory; the rest of it was free, and is held */
  umemPoolPiece *sources; /* free pages elsewhere: 2 * room */
  umemPoolPiece *seen;    /* what may become sources: room */
  umemPoolPiece pieces[];
};

static uintptr_t address_in(umemPoolPiece const *piece, size_t page_size, size_t page) {
  return (uintptr_t)(piece->start << umemPoolUnitShift) + page * page_size;
}

/* At most so many pieces of free pages there are: a pool may have very many free ranges that are
 * smaller than a page. */
static size_t count_sources(umemPoolFreeList const *list) {
  size_t count = 0;
  umemPoolPiece piece;
  for (umemPoolFreeList *home = list->core->lists; home; home = home->next)
    for (umemPoolWalk walk = umemPoolWalk_begin(list, home); umemPoolWalk_next(&walk, &piece);)
      count++;
  return count;
}

static size_t count_gaps(umemPoolPlace const *place) {
  size_t count = 0;
  for (size_t page = place->first; page <= place->last; count++)
    page =
        umemPoolSpace_next(place->space, umemPoolSpace_next(place->space, page, false), true) + 1;
  return count;
}

/* ---- end ---- */

/* Notes which pages of a gap or of a source have memory now, and makes these free. Without RAM for
 * the record of a part it remains unused until the pool ends. */
static void end_piece(umemPoolCore *core, umemPoolPiece const *piece, bool gap) {
  umemPoolSpace *space = umemPoolSpace_of(core, piece->start);
  size_t page = umemPoolSpace_page(core, space, piece->start);
  size_t from = gap ? 0 : piece->done, to = gap ? piece->done : piece->pages;
  uint64_t units = umemPoolSpace_units(core);
  if (piece->done) umemPoolSpace_set(core, space, page, piece->done, gap);
  if (to - from == piece->pages) {
    umemRange_free(piece->home->range, piece->start);
    return;
  }
  umemRange *range = piece->home->range;
  uint64_t start = piece->start + from * units;
  umemRange_drop(range, piece->start);
  if (from < to && umemRange_enter(range, start, (to - from) * units, space->separate))
    umemRange_free(range, start);
}

/* Frees what is held in the place: its gaps have ended. */
static void free_held(umemPoolPaging *paging) {
  umemPoolPlace const *place = &paging->place;
  umemRange *range = paging->list->range;
  umemRangeItem item;
  for (uint64_t at = place->start; umemRange_next(range, at, &item) && item.start < place->end;
       at = item.start + item.extent)
    if (item.held) umemRange_free(range, item.start);
}

/* Makes all pieces free again: where they have memory now. Sources first: what is moved counts
 * once. */
static void end_paging(umemPoolPaging *paging) {
  umemPoolCore *core = paging->list->core;
  for (size_t i = 0; i < paging->source_count; i++) end_piece(core, &paging->sources[i], false);
  for (size_t i = 0; i < paging->gap_count; i++) end_piece(core, &paging->gaps[i], true);
  free_held(paging);
  core->paging = NULL;
  free(paging);
}

/* Of a thread of the parent, in a child of fork: what that thread was moving remains unused. */
static void abandon_paging(umemPoolCore *core) {
  umemPoolPaging *paging = core->paging;
  for (size_t i = 0; i < paging->gap_count; i++)
    umemRange_drop(paging->list->range, paging->gaps[i].start);
  free_held(paging);
  core->paging = NULL;
  free(paging);
}

/* ---- begin ---- */

static umemPoolPaging *new_paging(umemPoolFreeList *list, umemPoolPlace const *place) {
  size_t gaps = place ? count_gaps(place) : 0, room = count_sources(list) + 2;
  umemPoolPaging *paging = malloc(sizeof *paging + (gaps + 3 * room) * sizeof *paging->pieces);
  if (!paging) return NULL;
  *paging = (umemPoolPaging){.lineage = umem_fork_count(), .list = list, .room = room};
  if (place) paging->place = *place;
  paging->gaps = paging->pieces;
  paging->sources = paging->pieces + gaps;
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
    if (!umemRange_enter(paging->list->range, start, units, space->separate)) return false;
    paging->gaps[paging->gap_count++] =
        (umemPoolPiece){.home = paging->list, .start = start, .units = units, .pages = end - page};
    page = umemPoolSpace_next(space, end, false);
  }
  return true;
}

/* Holds what is free in the place. */
static bool hold_free(umemPoolPaging *paging) {
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
  }
  return true;
}

/* Begins to map for the list, and takes the pieces of place; NULL: there is none. No other thread
 * is mapping. Returns NULL, with nothing changed, without memory. */
static umemPoolPaging *begin_paging(umemPoolFreeList *list, umemPoolPlace const *place) {
  umemPoolPaging *paging = new_paging(list, place);
  if (!paging) return NULL;
  list->core->paging = paging;
  if (!place || (hold_free(paging) && take_gaps(paging))) return paging;
  end_paging(paging);
  return NULL;
}

/* ---- sources ---- */

/* The highest piece first. So the gaps gather above, the memory below: fewer pages move than with
 * the smallest piece first, in fewer pieces. */
static int compare_pieces(void const *one, void const *other) {
  umemPoolPiece const *a = one, *b = other;
  return a->start > b->start ? -1 : 1;
}

/* Adds all that the list has to what was seen. Returns the pages. */
static size_t look_at(umemPoolPaging *paging, umemPoolFreeList *home) {
  size_t first = paging->seen_count, pages = 0;
  umemPoolPiece piece;
  for (umemPoolWalk walk = umemPoolWalk_begin(paging->list, home);
       paging->seen_count < paging->room && umemPoolWalk_next(&walk, &piece);) {
    paging->seen[paging->seen_count++] = piece;
    pages += piece.pages;
  }
  qsort(paging->seen + first, paging->seen_count - first, sizeof *paging->seen, compare_pieces);
  return pages;
}

/* Makes up to so many pages of this order sources: of what was seen and is left, in turn, the upper
 * part of each piece. The lower one remains beside what is below. */
static size_t take_some(umemPoolPaging *paging, size_t pages, unsigned order, bool ends) {
  uint64_t const units = umemPoolSpace_units(paging->list->core);
  size_t taken = 0;
  for (size_t i = 0; i < paging->seen_count && taken < pages; i++) {
    umemPoolPiece *seen = &paging->seen[i], piece = *seen;
    size_t count = umem_lesser(seen->pages, pages - taken) >> order << order;
    if (seen->order != order || !count) continue;
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

/* How many pages of the gaps can be in pages of this order. */
static size_t room_for(umemPoolPaging const *paging, unsigned order) {
  size_t room = 0;
  for (size_t i = 0; i < paging->gap_count; i++) room += paging->gaps[i].pages >> order << order;
  return room;
}

/* Takes so many pages as sources, the highest pieces first: large pages while the gaps have room
 * for whole ones, then smaller ones. If these are not enough, it takes further large pages, whose
 * memory goes back to the upstream; it then may take more pages, up to a large one. Sources for a
 * place are of its list, and then of lists that are not blocked. Without a place all are of the
 * list, and their memory goes back. */
static void take_pages(umemPoolPaging *paging, size_t pages) {
  umemPoolCore const *core = paging->list->core;
  bool const moves = paging->place.space;
  size_t seen = look_at(paging, paging->list), taken = 0;
  for (umemPoolFreeList *home = core->lists; home && seen < pages; home = home->next)
    if (moves && home != paging->list && umemPoolPlan_may_move(paging->list, home))
      seen += look_at(paging, home);
  for (unsigned order = core->orders; order-- > 0 && taken < pages;) {
    size_t most = umemPoolSpace_round(pages, moves ? order : 0);
    if (moves) most = umem_lesser(most, room_for(paging, order));
    if (most > taken) taken += take_some(paging, most - taken, order, !moves);
  }
  for (unsigned order = 1; moves && order < core->orders && taken < pages; order++)
    taken += take_some(paging, umemPoolSpace_round(pages - taken, order), order, true);
}

/* Several small pages take longer to move than new larger ones, of this order, to map, then and
 * each time they move again: so their memory goes back. */
static void join_small(umemPoolPaging *paging, unsigned larger) {
  enum { small_order = 1, least = 5 };
  size_t count = 0;
  if (larger <= small_order) return;
  for (size_t i = 0; i < paging->source_count; i++) {
    umemPoolPiece const *piece = &paging->sources[i];
    if (!piece->ends && piece->order <= small_order) count += piece->pages >> piece->order;
  }
  for (size_t i = 0; i < paging->source_count && count >= least; i++)
    if (paging->sources[i].order <= small_order) paging->sources[i].ends = true;
}

/* The pages of the sources that end, or that are moved. */
static size_t count_pages(umemPoolPaging const *paging, bool ends) {
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

/* Waits for the work that may use the sources. Gives back those for which that fails. Releases the
 * lock for some time. */
static void finish_sources(umemPoolPaging *paging) {
  size_t kept = 0;
  for (size_t i = 0; i < paging->source_count; i++) {
    umemPoolFreeList *home = paging->sources[i].home;
    if (!home || is_done(paging->sources, i) || umemPoolQueue_finish(paging->list, home)) continue;
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

/* ---- the pages of a pool ---- */

void umemPoolPages_init(umemPoolCore *core) {
  umemVirtual *upstream = core->upstream;
  umemPages const *(*method)(umemVirtual *) = UMEM_SLOT(upstream, pages);
  umemPages const *(*large)(umemVirtual *) = UMEM_SLOT(upstream, large_pages);
  umemPages const *(*sized)(umemVirtual *, size_t) = UMEM_SLOT(upstream, sized_pages);
  umemPages const *pages = method ? method(upstream) : NULL;
  if (!pages || pages->page_size < umemPoolPage) return;
  umemPages const *largest = large ? large(upstream) : NULL;
  core->pages = core->sizes[0] = pages;
  core->orders = 1;
  for (unsigned order = 1; order < umemPoolOrders && largest; order++) {
    size_t size = pages->page_size << order;
    if (size == largest->page_size)
      core->sizes[order] = largest;
    else if (sized && size < largest->page_size)
      core->sizes[order] = sized(upstream, size);
    if (core->sizes[order]) core->orders = order + 1;
  }
}

/* In a child of fork no thread goes on mapping what one of the parent has begun to map. */
bool umemPoolPages_are_busy(umemPoolCore *core) {
  if (core->paging && core->paging->lineage != umem_fork_count()) abandon_paging(core);
  return core->paging;
}

bool umemPoolPages_suit(umemPoolFreeList const *list, size_t alignment) {
  return list->core->pages && alignment <= umemPoolPage && !umemPoolQueue_is_blocked(list);
}

/* ---- mapping; without the lock ---- */

/* Fills the gaps of a paging, in ascending order. */
typedef struct Filler {
  umemPoolPaging *paging;
  umemPoolCore *core;
  size_t size;                 /* of a page */
  size_t fresh;                /* so many pages may be new, */
  unsigned order;              /* of this order or a smaller one */
  bool stuck;                  /* a move has failed: there is no other */
  size_t next[umemPoolOrders]; /* sources of each order: those before it are done */
} Filler;

/* A source that has pages of this order; NULL where there is none. */
static umemPoolPiece *source_of(Filler *filler, unsigned order) {
  umemPoolPaging const *paging = filler->paging;
  for (size_t *i = &filler->next[order]; *i < paging->source_count && !filler->stuck; ++*i) {
    umemPoolPiece *source = &paging->sources[*i];
    if (!source->ends && source->order == order && source->done < source->pages) return source;
  }
  return NULL;
}

/* Moves up to so many pages of the source to the gap, whose next page this is. */
static void move_some(Filler *filler, umemPoolPiece *gap, size_t page, umemPoolPiece *source,
                      size_t most) {
  umemPages const *methods = filler->core->sizes[source->order];
  size_t count = umem_lesser(most, source->pages - source->done);
  umemPoolSpace_set_order(filler->paging->place.space, page, count, source->order);
  size_t done =
      methods->move(filler->core->upstream, address_in(source, filler->size, source->done),
                    address_in(gap, filler->size, gap->done), count * filler->size) /
      filler->size;
  source->done += done;
  gap->done += done;
  filler->stuck = done < count;
}

/* Whether all of them have got memory. */
static bool map_some(Filler *filler, umemPoolPiece *gap, size_t page, size_t count,
                     unsigned order) {
  umemPages const *methods = filler->core->sizes[order];
  size_t done = methods->map(filler->core->upstream, address_in(gap, filler->size, gap->done),
                             count * filler->size) /
                filler->size;
  umemPoolSpace_set_order(filler->paging->place.space, page, done, order);
  if (!order) umemPoolSpace_set_fresh(filler->paging->place.space, page, done);
  UMEM_DECIDED(umemDecisionMemory, filler->core->upstream,
               "a pool over %s takes %zu bytes of pages",
               umem_get_device_name(filler->core->upstream), done * filler->size);
  gap->done += done;
  filler->fresh -= done;
  return done == count;
}

/* Gives memory to the next pages of the gap: moved ones first, because new ones can be of any order
 * that is left; the largest that fit. False if there is no more. After a move that has failed new
 * memory serves, as far as it is allowed. */
static bool fill_some(Filler *filler, umemPoolPiece *gap) {
  umemPoolCore const *core = filler->core;
  size_t page = umemPoolSpace_page(core, filler->paging->place.space, gap->start) + gap->done;
  size_t most = gap->pages - gap->done;
  for (unsigned order = core->orders; order-- > 0;) {
    umemPoolPiece *source = most >> order ? source_of(filler, order) : NULL;
    if (!source) continue;
    move_some(filler, gap, page, source, most >> order << order);
    return true;
  }
  most = umem_lesser(most, filler->fresh);
  for (unsigned order = filler->order + 1; order-- > 0;)
    if (core->sizes[order] && most >> order)
      return map_some(filler, gap, page, most >> order << order, order);
  return false;
}

/* Unmaps these sources before anything is mapped, so that the pool never has more than its
 * maximum. */
static void end_sources(Filler *filler) {
  umemPoolPaging *paging = filler->paging;
  for (size_t i = 0; i < paging->source_count; i++) {
    umemPoolPiece *piece = &paging->sources[i];
    if (!piece->ends) continue;
    umemPages const *methods = filler->core->sizes[piece->order];
    piece->done = methods->unmap(filler->core->upstream, address_in(piece, filler->size, 0),
                                 piece->pages * filler->size) /
                  filler->size;
    filler->fresh -= umem_lesser(filler->fresh, piece->pages - piece->done);
  }
}

/* Whether all gaps have got memory. */
static bool fill_gaps(Filler *filler) {
  umemPoolPaging *paging = filler->paging;
  end_sources(filler);
  for (size_t i = 0; i < paging->gap_count; i++)
    while (paging->gaps[i].done < paging->gaps[i].pages)
      if (!fill_some(filler, &paging->gaps[i])) return false;
  return true;
}

/* ---- growing ---- */

/* Takes sources for the place, after the work on them is done. */
static void take_sources(umemPoolPaging *paging, umemPoolPlan const *plan) {
  if (plan->place.missing <= plan->unmoved) return;
  take_pages(paging, plan->place.missing - plan->unmoved);
  join_small(paging, plan->joins);
  UMEM_FORGETTING();
  finish_sources(paging);
}

/* Whether the machine has as much left as all gaps need, where pages are RAM: the upstream compares
 * each call alone. */
static bool has_left(Filler const *filler) {
  umemVirtual *upstream = filler->core->upstream;
  return filler->paging->gap_count < 2 || !umem_can(upstream, umemCpuWritable) ||
         umem_ram_has(upstream, filler->fresh * filler->size);
}

/* Opens the lock to map pages: so many bytes more. */
static bool map_open(Filler *filler, size_t nbytes, umemPoolFailure *failure) {
  umemPoolCore *core = filler->core;
  umemGrowthRequest request;
  failure->reason = umemPoolUpstreamFailed;
  umemGrowth_open(&core->growing, &core->lock, &request, nbytes, true, &failure->attempt);
  bool filled = umem_check(core->upstream) && has_left(filler) && fill_gaps(filler);
  umemGrowth_close(&core->growing, &core->lock, &request, &failure->attempt);
  return filled;
}

/* The pieces of the place are taken, and no others yet. */
static bool grow_place(umemPoolPaging *paging, umemPoolPlan const *plan, umemPoolFailure *failure) {
  umemPoolCore *core = paging->list->core;
  umemGrowthRequest request;
  umemGrowth_begin(&core->growing, &request, 0, true);
  take_sources(paging, plan);
  umemGrowth_end(&core->growing, &request);
  size_t ends = count_pages(paging, true);
  Filler filler = {.paging = paging,
                   .core = core,
                   .size = core->pages->page_size,
                   .fresh = plan->place.missing - count_pages(paging, false),
                   .order = ends && plan->joins > plan->order ? plan->joins : plan->order};
  size_t more = filler.fresh > ends ? filler.fresh - ends : 0;
  if (!umemPoolCore_allows(core, more * filler.size, failure)) return false;
  bool grown = map_open(&filler, more * filler.size, failure);
  for (size_t i = 0; i < paging->source_count; i++)
    if (!paging->sources[i].ends) core->moved += paging->sources[i].done * filler.size;
  return grown;
}

bool umemPoolPages_grow(umemPoolFreeList *list, size_t size, size_t alignment, umemPoolExtra extra,
                        umemPoolFailure *failure) {
  umemPoolPlan plan;
  failure->reason = umemPoolUpstreamFailed;
  umemAttempt_begin(&failure->attempt);
  bool planned = umemPoolPlan_make(list, size, alignment, extra, &plan);
  umemAttempt_end(&failure->attempt);
  if (!planned) return false;
  failure->reason = umemPoolNoRecords;
  umemPoolPaging *paging = begin_paging(list, &plan.place);
  if (!paging) return false;
  bool grown = grow_place(paging, &plan, failure);
  end_paging(paging);
  return grown;
}

bool umemPoolPages_may_move(umemPoolFreeList const *list) {
  umemPoolPiece piece;
  for (umemPoolFreeList *home = list->core->lists; home; home = home->next) {
    umemPoolWalk walk = umemPoolWalk_begin(list, home);
    if (umemPoolWalk_next(&walk, &piece)) return true;
  }
  return false;
}

/* ---- giving back ---- */

static void unmap_sources(umemPoolPaging *paging) {
  umemPoolCore *core = paging->list->core;
  Filler filler = {.paging = paging, .core = core, .size = core->pages->page_size};
  umemLock_release(&core->lock);
  if (umem_check(core->upstream)) end_sources(&filler);
  umemLock_acquire(&core->lock);
}

void umemPoolPages_release(umemPoolCore *core, size_t keep) {
  if (!core->spaces) return;
  while (umemPoolPages_are_busy(core))
    if (!umemGrowth_await(&core->growing, &core->lock)) return;
  uint64_t excess = core->reserved > keep ? core->reserved - keep : 0;
  size_t count = (size_t)(excess / core->pages->page_size);
  umemPoolPaging *paging = count ? begin_paging(core->own, NULL) : NULL;
  if (!paging) return;
  umemGrowthRequest request;
  umemGrowth_begin(&core->growing, &request, 0, true);
  take_pages(paging, count);
  finish_sources(paging);
  if (paging->source_count) unmap_sources(paging);
  umemGrowth_end(&core->growing, &request);
  end_paging(paging);
}

/* ---- the end ---- */

/* Work that has failed is done as well, and reports its failure once. */
static void finish_all(umemPoolCore *core) {
  for (umemPoolFreeList *list = core->lists; list; list = list->next)
    if (list->in_use && !umemPoolQueue_is_blocked(list) &&
        umem_synchronize_uncaptured(list->queue) != umemOK)
      umem_synchronize_uncaptured(list->queue);
}

void umemPoolPages_end(umemPoolCore *core) {
  if (core->spaces) finish_all(core);
  free(core->paging);
  core->paging = NULL;
  umemPoolSpace_end_all(core);
}
