/* pool_pages.c - gets memory for a pool page by page, where the upstream can map it. See pool.h.
 *
 * A large range of addresses is the place of all blocks. Where nothing free suffices, a place is made of free memory and
 * gaps that are side by side. The gaps get pages of which all is free elsewhere, and new ones only for the rest: so the
 * pool holds hardly more than what was live at once (PyTorch's expandable segments; GMLake).
 *
 * A page may be moved when the work that may still use it is done, which the driver does not wait for. So a piece is taken
 * out of its list first, then the lock is opened, and the queue of the list waited for. While the lock is open the pieces
 * are live ranges that are no blocks, and one thread at a time maps. */
#include "pool/pool_pages.h"
#include "base/thread.h"
#include "core/guard.h"
#include "core/order.h"
#include "pool/pool_chunk.h"
#include "pool/pool_large.h"
#include "pool/pool_paging.h"
#include "pool/pool_queue.h"

#include <stdlib.h>

void umemPoolPages_init(umemPoolCore *core) {
  umemPages const *(*method)(umemVirtual *) = UMEM_SLOT(core->upstream, pages);
  umemPages const *pages = method ? method(core->upstream) : NULL;
  if (pages && pages->page_size >= umemPoolPage) core->pages = pages;
}

/* In a child of fork nobody maps what a thread of the parent has begun to. */
bool umemPoolPages_are_busy(umemPoolCore *core) {
  if (core->paging && core->paging->lineage != umem_fork_count()) umemPoolPaging_abandon(core);
  return core->paging;
}

bool umemPoolPages_suit(umemPoolFreeList const *list, size_t alignment) {
  return list->core->pages && alignment <= umemPoolPage && !umemPoolQueue_is_blocked(list);
}

/* ---- the place ---- */

static umemPoolPlace find_place(umemPoolFreeList *list, uint64_t units, uint64_t step) {
  umemPoolPlace place = umemPoolPlace_find(list, units, step);
  if (place.space) return place;
  size_t per_page = umemPoolSpace_units(list->core);
  if (umemPoolSpace_add(list->core, (size_t)((units + step + per_page - 1) / per_page)))
    place = umemPoolPlace_find(list, units, step);
  return place;
}

/* Adds gaps behind the place, for later requests. */
static void extend(umemPoolPlace *place, size_t pages) {
  umemPoolSpace const *space = place->space;
  if (umemPoolSpace_has(space, place->last)) return;
  size_t more = umemPoolSpace_next(space, place->last, true) - place->last - 1;
  if (more > pages) more = pages;
  place->last += more;
  place->missing += more;
}

/* ---- mapping; without the lock ---- */

/* Moves pages of the sources to a gap. */
static void move_to(umemPoolPaging *paging, umemPoolPiece *gap, size_t *source) {
  umemPoolCore *core = paging->list->core;
  size_t size = core->pages->page_size;
  while (gap->done < gap->pages && *source < paging->source_count) {
    umemPoolPiece *from = &paging->sources[*source];
    size_t count = gap->pages - gap->done, left = from->pages - from->done;
    if (count > left) count = left;
    size_t done = core->pages->move(core->upstream, umemPoolPiece_adr(from, size, from->done),
                                    umemPoolPiece_adr(gap, size, gap->done), count * size) /
                  size;
    from->done += done;
    gap->done += done;
    if (done < count)
      *source = paging->source_count; /* no more of this */
    else
      *source += from->done == from->pages;
  }
}

/* fresh: so many pages may be new. */
static void fill_gaps(umemPoolPaging *paging, size_t fresh) {
  umemPoolCore *core = paging->list->core;
  size_t size = core->pages->page_size, source = 0;
  for (size_t i = 0; i < paging->gap_count; i++) {
    umemPoolPiece *gap = &paging->gaps[i];
    move_to(paging, gap, &source);
    size_t left = gap->pages - gap->done, count = left < fresh ? left : fresh;
    size_t done = 0;
    if (count)
      done =
          core->pages->map(core->upstream, umemPoolPiece_adr(gap, size, gap->done), count * size) /
          size;
    gap->done += done;
    fresh -= done;
    if (done < left) return;
  }
}

static bool is_filled(umemPoolPaging const *paging) {
  for (size_t i = 0; i < paging->gap_count; i++)
    if (paging->gaps[i].done < paging->gaps[i].pages) return false;
  return true;
}

/* ---- growing ---- */

/* Takes sources for the place, after the work on them is done; none for so many unmoved pages. Returns how many pages
 * have to be new. */
static size_t take_sources(umemPoolPaging *paging, size_t unmoved) {
  size_t missing = paging->place.missing;
  size_t taken = missing > unmoved ? umemPoolPaging_take(paging, missing - unmoved) : 0;
  if (taken) {
    umemAttempt forgotten;
    umemAttempt_begin(&forgotten);
    taken -= umemPoolPaging_finish(paging);
    umemAttempt_end(&forgotten);
  }
  return missing - taken;
}

/* Opens the lock to map pages. */
static bool map_open(umemPoolPaging *paging, size_t fresh, umemPoolFailure *failure) {
  umemPoolCore *core = paging->list->core;
  failure->reason = umemPoolUpstreamFailed;
  umemLock_release(&core->lock);
  umemAttempt_begin(&failure->attempt);
  if (umem_guard(core->upstream)) fill_gaps(paging, fresh);
  umemAttempt_end(&failure->attempt);
  umemLock_acquire(&core->lock);
  return is_filled(paging);
}

/* The pieces of the place are taken, and no others yet. */
static bool grow(umemPoolPaging *paging, size_t unmoved, umemPoolFailure *failure) {
  umemPoolCore *core = paging->list->core;
  size_t size = core->pages->page_size;
  umemGrowthRequest request;
  umemGrowth_begin(&core->growing, &request, 0, true);
  size_t fresh = take_sources(paging, unmoved);
  umemGrowth_end(&core->growing, &request);
  if (!umemPoolChunk_allows(core, fresh * size, failure)) return false;
  umemGrowth_begin(&core->growing, &request, fresh * size, true);
  bool grown = map_open(paging, fresh, failure);
  for (size_t i = 0; i < paging->source_count; i++) core->moved += paging->sources[i].done * size;
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
  extend(&place, extra.ample / core->pages->page_size);
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
  size_t size = core->pages->page_size;
  umemLock_release(&core->lock);
  if (umem_guard(core->upstream))
    for (size_t i = 0; i < paging->source_count; i++) {
      umemPoolPiece *piece = &paging->sources[i];
      piece->done = core->pages->unmap(core->upstream, umemPoolPiece_adr(piece, size, 0),
                                       piece->pages * size) /
                    size;
    }
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
  if (umemPoolPaging_take(paging, count)) {
    umemPoolPaging_finish(paging);
    unmap(paging);
  }
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
