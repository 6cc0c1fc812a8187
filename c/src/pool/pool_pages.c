/* pool_pages.c - gets memory for a pool page by page, where the upstream can map it. See pool.h.
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
 * list waited for. While the lock is open the pieces are live ranges that are no blocks, and one
 * thread at a time maps. */
#include "pool/pool_pages.h"
#include "base/thread.h"
#include "core/context.h"
#include "core/order.h"
#include "core/ram.h"
#include "pool/pool_chunk.h"
#include "pool/pool_paging.h"
#include "pool/pool_core.h"

#include <stdlib.h>

enum { most_of_group = 64 };

void umemPoolPages_init(umemPoolCore *core) {
  umemPages const *(*method)(umemVirtual *) = UMEM_SLOT(core->upstream, pages);
  umemPages const *pages = method ? method(core->upstream) : NULL;
  if (!pages || pages->page_size < umemPoolPage) return;
  core->pages = pages;
  method = UMEM_SLOT(core->upstream, large_pages);
  umemPages const *large = method ? method(core->upstream) : NULL;
  size_t group = large ? large->page_size / pages->page_size : 0;
  if (group < 2 || group > most_of_group) return;
  core->large = large;
  core->group = group;
}

/* In a child of fork no thread goes on mapping what one of the parent has begun to map. */
bool umemPoolPages_are_busy(umemPoolCore *core) {
  if (core->paging && core->paging->lineage != umem_fork_count()) umemPoolPaging_abandon(core);
  return core->paging;
}

bool umemPoolPages_suit(umemPoolFreeList const *list, size_t alignment) {
  return list->core->pages && alignment <= umemPoolPage && !umemPoolQueue_is_blocked(list);
}

/* ---- the place ---- */

/* Large pages are faster to map and to move, but free memory in a part of one is stuck there. */
static bool may_be_large(umemPoolCore const *core) {
  return core->group && core->growth >= core->large->page_size;
}

static umemPoolPlace find_place(umemPoolFreeList *list, uint64_t units, uint64_t step) {
  umemPoolPlace place = umemPoolPlace_find(list, units, step);
  if (place.space) return place;
  size_t per_page = umemPoolSpace_units(list->core);
  if (umemPoolSpace_add(list->core, (size_t)((units + step + per_page - 1) / per_page)))
    place = umemPoolPlace_find(list, units, step);
  return place;
}

/* Adds gaps behind the place, for later requests; with large pages, up to where a group ends. */
static void extend(umemPoolCore const *core, umemPoolPlace *place, size_t pages) {
  umemPoolSpace const *space = place->space;
  if (!pages || umemPoolSpace_has(space, place->last)) return;
  size_t next = umemPoolSpace_next(space, place->last, true), end = place->last + 1;
  size_t last = next - end > pages ? end + pages : next;
  size_t group_end = may_be_large(core) ? umemPoolSpace_next_group(core, last - 1) : last;
  size_t allowed = umemPoolChunk_allowance(core) / core->pages->page_size;
  if (group_end <= next && place->missing + (group_end - end) <= allowed) last = group_end;
  place->missing += last - end;
  place->last = last - 1;
}

/* ---- mapping; without the lock ---- */

/* Fills the gaps of a paging, in ascending order. Where a group begins and is all in the gap, a
 * large page comes first. */
typedef struct Filler {
  umemPoolPaging *paging;
  umemPoolCore *core;
  size_t size;    /* of a page */
  size_t fresh;   /* so many pages may be new, */
  bool large;     /* also as large ones */
  bool stuck;     /* a move has failed: there is no other */
  size_t next[2]; /* sources of pages and of large ones: those before it are done */
} Filler;

static size_t lesser(size_t a, size_t b) { return a < b ? a : b; }

/* A source that has pages of this size; NULL where there is none. */
static umemPoolPiece *source_of(Filler *filler, bool large) {
  umemPoolPaging const *paging = filler->paging;
  for (size_t *i = &filler->next[large]; *i < paging->source_count && !filler->stuck; ++*i) {
    umemPoolPiece *source = &paging->sources[*i];
    if (!source->ends && source->large == large && source->done < source->pages) return source;
  }
  return NULL;
}

/* Notes the size of pages before they get memory. */
static void note_size(Filler const *filler, size_t page, size_t count, bool large) {
  umemPoolCore const *core = filler->core;
  for (size_t end = page + count; core->group && page < end;
       page = umemPoolSpace_next_group(core, page))
    umemPoolSpace_set_large(core, filler->paging->place.space, page, large);
}

/* Moves up to so many pages of the source to the gap, whose next page this is. */
static void move_some(Filler *filler, umemPoolPiece *gap, size_t page, umemPoolPiece *source,
                      size_t most) {
  umemPages const *methods = umemPoolSpace_methods(filler->core, source->large);
  size_t count = lesser(most, source->pages - source->done);
  note_size(filler, page, count, source->large);
  size_t done =
      methods->move(filler->core->upstream, umemPoolPiece_adr(source, filler->size, source->done),
                    umemPoolPiece_adr(gap, filler->size, gap->done), count * filler->size) /
      filler->size;
  source->done += done;
  gap->done += done;
  filler->stuck = done < count;
}

/* Whether all of them have got memory. */
static bool map_some(Filler *filler, umemPoolPiece *gap, size_t page, size_t count, bool large) {
  umemPages const *methods = umemPoolSpace_methods(filler->core, large);
  note_size(filler, page, count, large);
  size_t done =
      methods->map(filler->core->upstream, umemPoolPiece_adr(gap, filler->size, gap->done),
                   count * filler->size) /
      filler->size;
  gap->done += done;
  filler->fresh -= done;
  return done == count;
}

/* Gives memory to the next pages of the gap. False if there is no more. After a move that has
 * failed new memory serves, as far as it is allowed. */
static bool fill_some(Filler *filler, umemPoolPiece *gap) {
  umemPoolCore const *core = filler->core;
  size_t const group = core->group, left = gap->pages - gap->done;
  size_t page = umemPoolSpace_page(core, filler->paging->place.space, gap->start) + gap->done;
  size_t to_group = group ? lesser(left, umemPoolSpace_next_group(core, page) - page) : left;
  bool whole = group && !(page % group) && left >= group; /* groups, from here on */
  umemPoolPiece *large = source_of(filler, true), *small = source_of(filler, false);
  size_t most = large ? to_group : left;
  if (large && whole) {
    move_some(filler, gap, page, large, left - left % group);
    return true;
  }
  if (small) {
    move_some(filler, gap, page, small, most);
    return true;
  }
  if (!filler->fresh) return false;
  if (whole && filler->large && filler->fresh >= group) {
    size_t count = lesser(left, filler->fresh);
    return map_some(filler, gap, page, count - count % group, true);
  }
  if (filler->large && !whole) most = to_group;
  return map_some(filler, gap, page, lesser(most, filler->fresh), false);
}

/* Unmaps these sources before anything is mapped, so that the pool never has more than its
 * maximum. */
static void end_sources(Filler *filler) {
  umemPoolPaging *paging = filler->paging;
  for (size_t i = 0; i < paging->source_count; i++) {
    umemPoolPiece *piece = &paging->sources[i];
    if (!piece->ends) continue;
    umemPages const *methods = umemPoolSpace_methods(filler->core, piece->large);
    piece->done = methods->unmap(filler->core->upstream, umemPoolPiece_adr(piece, filler->size, 0),
                                 piece->pages * filler->size) /
                  filler->size;
    filler->fresh -= lesser(filler->fresh, piece->pages - piece->done);
  }
}

static void fill_gaps(Filler *filler) {
  umemPoolPaging *paging = filler->paging;
  end_sources(filler);
  for (size_t i = 0; i < paging->gap_count; i++)
    while (paging->gaps[i].done < paging->gaps[i].pages)
      if (!fill_some(filler, &paging->gaps[i])) return;
}

static bool is_filled(umemPoolPaging const *paging) {
  for (size_t i = 0; i < paging->gap_count; i++)
    if (paging->gaps[i].done < paging->gaps[i].pages) return false;
  return true;
}

/* ---- growing ---- */

/* Takes sources for the place, after the work on them is done; none for so many unmoved pages. */
static void take_sources(umemPoolPaging *paging, size_t unmoved) {
  umemAttempt forgotten;
  if (paging->place.missing <= unmoved) return;
  umemPoolPaging_take(paging, paging->place.missing - unmoved);
  umemAttempt_begin(&forgotten);
  umemPoolPaging_finish(paging);
  umemAttempt_end(&forgotten);
}

/* Whether the machine has as much left as all gaps need, where pages are RAM: the upstream compares
 * each call alone. */
static bool has_left(Filler const *filler) {
  umemVirtual *upstream = filler->core->upstream;
  return filler->paging->gap_count < 2 || !umem_can(upstream, umemCpuWritable) ||
         umem_ram_has(upstream, filler->fresh * filler->size);
}

/* Opens the lock to map pages. */
static bool map_open(Filler *filler, umemPoolFailure *failure) {
  umemPoolCore *core = filler->core;
  failure->reason = umemPoolUpstreamFailed;
  umemLock_release(&core->lock);
  umemAttempt_begin(&failure->attempt);
  if (umem_check(core->upstream) && has_left(filler)) fill_gaps(filler);
  umemAttempt_end(&failure->attempt);
  umemLock_acquire(&core->lock);
  return is_filled(filler->paging);
}

/* The pieces of the place are taken, and no others yet. */
static bool grow(umemPoolPaging *paging, size_t unmoved, umemPoolFailure *failure) {
  umemPoolCore *core = paging->list->core;
  Filler filler = {
      .paging = paging, .core = core, .size = core->pages->page_size, .large = may_be_large(core)};
  umemGrowthRequest request;
  umemGrowth_begin(&core->growing, &request, 0, true);
  take_sources(paging, unmoved);
  umemGrowth_end(&core->growing, &request);
  filler.fresh = paging->place.missing - umemPoolPaging_pages(paging, false);
  size_t ends = umemPoolPaging_pages(paging, true),
         more = filler.fresh > ends ? filler.fresh - ends : 0;
  if (!umemPoolChunk_allows(core, more * filler.size, failure)) return false;
  umemGrowth_begin(&core->growing, &request, more * filler.size, true);
  bool grown = map_open(&filler, failure);
  for (size_t i = 0; i < paging->source_count; i++)
    if (!paging->sources[i].ends) core->moved += paging->sources[i].done * filler.size;
  umemGrowth_end(&core->growing, &request);
  return grown;
}

static void coalesce_all(umemPoolCore *core) {
  for (umemPoolFreeList *list = core->lists; list; list = list->next)
    if (!list->ending) umemPoolLarge_coalesce(list);
}

bool umemPoolPages_grow(umemPoolFreeList *list, size_t size, size_t alignment, umemPoolExtra extra,
                        umemPoolFailure *failure) {
  umemPoolCore *core = list->core;
  uint64_t step = alignment > umemPoolUnit ? alignment >> umemPoolUnitShift : 1;
  coalesce_all(core);
  failure->reason = umemPoolUpstreamFailed;
  umemAttempt_begin(&failure->attempt);
  umemPoolPlace place = find_place(list, umemPoolUnits_of(size), step);
  umemAttempt_end(&failure->attempt);
  if (!place.space) return false;
  extend(core, &place, extra.ample / core->pages->page_size);
  failure->reason = umemPoolNoRecords;
  umemPoolPaging *paging = umemPoolPaging_begin(list, &place);
  if (!paging) return false;
  bool grown = grow(paging, extra.unmoved / core->pages->page_size, failure);
  umemPoolPaging_end(paging);
  return grown;
}

bool umemPoolPages_may_move(umemPoolCore const *core) {
  umemRangeItem item;
  for (umemPoolFreeList const *list = core->lists; list; list = list->next) {
    uint32_t cursor = 0;
    if (umemRange_next_free(list->range, umemPoolSpace_units(core), &cursor, &item)) return true;
  }
  return false;
}

/* ---- giving back ---- */

static void unmap(umemPoolPaging *paging) {
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
  umemPoolPaging *paging = count ? umemPoolPaging_begin(core->own, NULL) : NULL;
  if (!paging) return;
  umemGrowthRequest request;
  umemGrowth_begin(&core->growing, &request, 0, true);
  umemPoolPaging_take(paging, count);
  umemPoolPaging_finish(paging);
  if (paging->source_count) unmap(paging);
  umemGrowth_end(&core->growing, &request);
  umemPoolPaging_end(paging);
}

/* ---- the end ---- */

/* Work that has failed is done as well, and reports its failure once. */
static void finish_all(umemPoolCore *core) {
  for (umemPoolFreeList *list = core->lists; list; list = list->next)
    if (list->in_use && !umemPoolQueue_is_blocked(list) &&
        umem_synchronize_apart(list->queue) != umemOK)
      umem_synchronize_apart(list->queue);
}

void umemPoolPages_end(umemPoolCore *core) {
  if (core->spaces) finish_all(core);
  free(core->paging);
  core->paging = NULL;
  umemPoolSpace_end_all(core);
}
