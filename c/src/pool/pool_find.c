/* pool_find.c - finds a block where the calling thread's cache has none, and gets more memory for
 * its free list. See pool.h.
 *
 * First the pool uses what it has, or what the upstream adds. If it is out of memory, but the
 * upstream is about to answer another thread, it tries again after that. Then it gives back chunks
 * that it does not use and tries again: the upstream is asked again only if something went back to
 * it, or for less. At last pages go back. */
#include "pool/pool_find.h"
#include "pool/pool_cache.h"
#include "pool/pool_chunk.h"
#include "pool/pool_pages.h"
#include "pool/pool_core.h"
#include "pool/pool_transfer.h"

/* ---- growth ---- */

/* Where there are chunks, but no pages, so many growths ask for chunks at once: to look for pages
 * takes milliseconds in a pool of very many pieces. */
enum { growths_to_wait = 256 };

/* By default one page in so many may be new although others could move. Not for some time after the
 * upstream had none, as it takes a GPU's driver long to find that out. */
enum { spare_share = 64 };

/* Nor, on a GPU, in a pool that seldom moves pages: at most one in so many of the pages that it
 * has, and one in so many of those that its large blocks had. There the memory is worth more than
 * the time. */
enum { moved_share = 32, moved_share_served = 2048 };

static size_t const growth_least = 1 << 20, growth_most = 64 << 20;

/* ---- steps: whether one has made memory free ---- */

/* Makes free what the list keeps for later requests. */
static bool free_kept(umemPoolGrower *grower) {
  umemPoolFreeList *list = grower->list;
  if (!list->core->reserved) return false;
  umemPoolCache_drain(list);
  if (list->quick_units << umemPoolUnitShift >= list->core->reserved / 32)
    umemPoolLarge_coalesce(list);
  return true;
}

static bool take_from_others(umemPoolGrower *grower) {
  uint64_t units = umemPoolUnits_of(grower->size);
  uint64_t step = grower->alignment > umemPoolUnit ? grower->alignment >> umemPoolUnitShift : 1;
  return umemPoolFreeList_has_others(grower->list) &&
         umemPoolTransfer_range(grower->list, units, step);
}

/* The best size of a chunk for size bytes. */
static size_t best_size(umemPoolCore const *core, size_t size, size_t alignment) {
  if (alignment > umemPoolPage) return size;
  size_t growth = core->growth;
  if (!growth) growth = core->reserved < growth_most ? (size_t)core->reserved : growth_most;
  if (!core->growth && growth < growth_least) growth = growth_least;
  growth = (growth + umemPoolPage - 1) & ~(size_t)(umemPoolPage - 1);
  return size > growth ? size : growth;
}

/* By how much a chunk of this size makes the pool larger than ever. */
static uint64_t new_peak(umemPoolCore const *core, uint64_t size) {
  uint64_t after = core->reserved + umemGrowth_amount(&core->growing) + size;
  return after > core->reserved_peak ? after - core->reserved_peak : 0;
}

/* Before pages are mapped or moved, or the pool becomes larger than ever, all that the list keeps
 * serves any size. */
static bool free_all_kept(umemPoolGrower *grower) {
  umemPoolFreeList *list = grower->list;
  if (!list->quick_units) return false;
  if (!list->core->pages && !new_peak(list->core, grower->size)) return false;
  umemPoolLarge_coalesce(list);
  return true;
}

/* And then free chunks go back. */
static void make_room(umemPoolCore *core, uint64_t size) {
  uint64_t more = new_peak(core, size);
  if (!more || !core->chunk_count) return;
  umemAttempt forgotten;
  umemAttempt_begin(&forgotten);
  umemPoolLarge_coalesce(core->own);
  umemPoolChunk_release_bytes(core, more);
  umemAttempt_end(&forgotten);
}

/* RAM gets its memory when it is touched: a page that is not needed costs nothing there, and
 * several cost a call. On a GPU each takes its memory, and time, when it is mapped. */
static bool is_touched_later(umemPoolCore const *core) {
  return umem_can(core->upstream, umemCpuWritable);
}

/* More pages than needed are mapped at once: as the options say, or where that is little beside
 * what the pool has. */
static size_t ample_bytes(umemPoolGrower const *grower) {
  umemPoolCore const *core = grower->list->core;
  size_t more = is_touched_later(core) ? (size_t)(core->reserved / 256) : 0;
  more -= more % core->pages->page_size;
  if (core->growth > grower->size && core->growth - grower->size > more)
    more = core->growth - grower->size;
  return more <= umemPoolChunk_allowance(core) ? more : 0;
}

/* What the pool has moved beyond the share that it may move before it takes memory instead. */
static uint64_t earned_bytes(umemPoolCore const *core) {
  uint64_t seldom = core->reserved / moved_share +
                    ((core->served_units / moved_share_served) << umemPoolUnitShift);
  return core->moved > seldom ? core->moved - seldom : 0;
}

/* What the pool may have beyond so many bytes in use. */
static uint64_t spare_bytes(umemPoolCore const *core, uint64_t used) {
  if (core->spare) return used / 100 * core->spare + used % 100 * core->spare / 100;
  uint64_t most = used / spare_share, earned = earned_bytes(core);
  return most < earned || is_touched_later(core) ? most : earned;
}

/* To move pages takes longer than to map new ones: each leaves a gap, which is filled again later.
 * So the pool maps new ones until it has a bit more than was ever in use at once. */
static size_t unmoved_bytes(umemPoolGrower const *grower) {
  umemPoolCore *core = grower->list->core;
  if (core->growths_without_new_pages) {
    core->growths_without_new_pages--;
    return 0;
  }
  uint64_t used = core->small_out + (core->large_units << umemPoolUnitShift) + grower->size;
  uint64_t most = used > core->used_peak ? used : core->used_peak;
  uint64_t has = core->reserved + umemGrowth_amount(&core->growing);
  uint64_t allowed = umemPoolChunk_allowance(core);
  most += spare_bytes(core, most);
  uint64_t more = most > has ? most - has : 0;
  return (size_t)(more < allowed ? more : allowed);
}

static umemPoolExtra extra_of(umemPoolGrower const *grower) {
  if (grower->growth != umemPoolGrowWell) return (umemPoolExtra){0, 0};
  return (umemPoolExtra){ample_bytes(grower), unmoved_bytes(grower)};
}

/* Maps pages. If another thread is mapping some, waits for that instead; if it must not wait, a
 * chunk serves. What fails here may work with a chunk, too: that is of another size, and the driver
 * may have no more pages. */
static bool add_pages(umemPoolGrower *grower) {
  umemPoolFreeList *list = grower->list;
  umemPoolCore *core = list->core;
  umemPoolFailure *failure = grower->failure;
  size_t size = (size_t)umemPoolUnits_of(grower->size) << umemPoolUnitShift;
  if (grower->growth == umemPoolGrowByOthers) return false;
  if (!umemPoolPages_suit(list, grower->alignment)) return false;
  if (core->growths_without_pages && grower->growth == umemPoolGrowWell) {
    core->growths_without_pages--;
    return false;
  }
  if (umemPoolPages_are_busy(core)) {
    if (umemGrowth_await(&core->growing, &core->lock)) failure->reason = umemPoolChanged;
    return false;
  }
  umemPoolExtra extra = extra_of(grower), none = {0, 0};
  bool grown = umemPoolPages_grow(list, size, grower->alignment, extra, failure);
  if (!grown && (extra.ample || (extra.unmoved && umemPoolPages_may_move(core)))) {
    grown = umemPoolPages_grow(list, size, grower->alignment, none, failure);
    if (grown) core->growths_without_new_pages = growths_to_wait;
  }
  grower->refused = !grown && failure->reason == umemPoolUpstreamFailed;
  return grown;
}

/* Takes a chunk that holds size bytes, a multiple of units: of the best size, or of the least size
 * when the upstream has no more. If another thread is asking for a chunk that may do for both,
 * waits for that instead. */
static bool add_chunk(umemPoolGrower *grower) {
  umemPoolFreeList *list = grower->list;
  umemPoolCore *core = list->core;
  umemPoolFailure *failure = grower->failure;
  size_t size = (size_t)umemPoolUnits_of(grower->size) << umemPoolUnitShift;
  if (grower->growth == umemPoolGrowByOthers) return false;
  if (!umemPoolChunk_allows(core, size, failure)) return false;
  if (umemPoolQueue_must_follow_upstream(list) && umemPoolQueue_is_blocked(list)) {
    failure->reason = umemPoolCaptured;
    return false;
  }
  bool well = grower->growth == umemPoolGrowWell && !grower->refused;
  size_t best = well ? best_size(core, size, grower->alignment) : size;
  make_room(core, best);
  uint64_t allowed = umemPoolChunk_allowance(core);
  if (best > allowed) best = (size_t)allowed & ~(size_t)(umemPoolUnit - 1);
  if (best > size && umemGrowth_is_ample(&core->growing) && !umemPoolQueue_is_blocked(list) &&
      umemGrowth_await(&core->growing, &core->lock)) {
    failure->reason = umemPoolChanged;
    return false;
  }
  bool added = umemPoolChunk_add(list, best, grower->alignment, best > size, failure) ||
               (best > size && umemPoolFailure_is_of_memory(failure) &&
                umemPoolChunk_add(list, size, grower->alignment, false, failure));
  if (added && grower->refused && core->spaces) core->growths_without_pages = growths_to_wait;
  return added;
}

/* ---- all of them ---- */

bool umemPoolGrower_next(umemPoolGrower *grower) {
  static bool (*const steps[])(umemPoolGrower *) = {free_kept, take_from_others, free_all_kept,
                                                    add_pages, add_chunk};
  unsigned const count = sizeof steps / sizeof *steps;
  if (grower->growth == umemPoolGrowNot) return false;
  if (grower->step == count) /* no RAM to record a range of the new chunk, which stays */
    grower->failure->reason = umemPoolNoRecords;
  while (grower->step < count) {
    if (steps[grower->step++](grower)) return true;
    if (grower->failure->reason == umemPoolChanged) return false;
  }
  return false;
}

/* ---- one try ---- */

/* Whether the request was served from what the list has free. */
static bool is_found(umemPoolRequest *request, umemPoolResult result) {
  if (result == umemPoolNoRam) request->failure.reason = umemPoolNoRecords;
  return result == umemPoolFound;
}

static bool add_span(umemPoolRequest *request, umemPoolGrowth growth) {
  umemPoolFreeList *list = request->list;
  size_t size = (size_t)list->core->shapes[request->class].pages << umemPageShift;
  umemPoolGrower grower = {list, size, umemPoolPage, growth, 0, &request->failure, false};
  umemPoolResult result;
  do result = umemPoolSpan_add(list, request->class);
  while (result == umemPoolNoneFree && umemPoolGrower_next(&grower));
  return is_found(request, result);
}

static bool find_range(umemPoolRequest *request, umemPoolGrowth growth) {
  umemPoolFreeList *list = request->list;
  size_t size = request->size, alignment = request->alignment;
  umemPoolGrower grower = {list, size, alignment, growth, 0, &request->failure, false};
  umemPoolResult result;
  request->entry.live = NULL;
  do result = umemPoolLarge_alloc(list, size, alignment, &request->entry.adr);
  while (result == umemPoolNoneFree && umemPoolGrower_next(&grower));
  return is_found(request, result);
}

static bool has_span(umemPoolRequest const *request) {
  return request->list->classes[request->class].spans;
}

/* Makes sure that the list has a span with free blocks: of its own, from its own range, of other
 * lists, from new memory. */
static bool have_span(umemPoolRequest *request, umemPoolGrowth growth) {
  umemPoolFreeList *list = request->list;
  if (has_span(request)) return true;
  if (umemPoolFreeList_has_others(list) &&
      (add_span(request, umemPoolGrowNot) ||
       (umemPoolTransfer_spans(list, request->class) && has_span(request))))
    return true;
  return add_span(request, growth);
}

/* While the upstream is asked, a function of the program that it calls may free blocks to the slot.
 * But a new span must not stay without a live block, because it goes back when its last one is
 * freed. */
static bool find_small(umemPoolRequest *request, umemPoolGrowth growth) {
  umemPoolFreeList *list = request->list;
  umemPoolSlot *slot = request->slot;
  unsigned class = request->class;
  if (slot && (umemPoolSlot_count(slot) || umemPoolCache_fetch(list, class, slot)))
    return umemPoolSlot_pop(slot, &request->entry);
  if (!have_span(request, growth)) return false;
  if (!slot || umemPoolSlot_count(slot)) {
    list->core->served++; /* one that no slot counts */
    return umemPoolSpan_take(list, class, &request->entry, 1) == 1;
  }
  uint32_t count = umemPoolSpan_take(list, class, slot->entries, list->core->shapes[class].batch);
  umemPoolSlot_set_count(slot, count);
  return umemPoolSlot_pop(slot, &request->entry);
}

/* Where there is no room for a span there may be some for a block alone. */
static bool try_once(umemPoolRequest *request, umemPoolGrowth growth, umemPoolGrowth alone) {
  if (request->class == umemPoolClasses) return find_range(request, growth);
  if (find_small(request, growth)) return true;
  return request->failure.reason != umemPoolChanged && find_range(request, alone);
}

/* Tries until no more memory comes. Once the upstream has refused, it is not asked again
 * meanwhile. */
static bool keep_trying(umemPoolRequest *request, umemPoolGrowth growth, umemPoolGrowth alone) {
  umemPoolFailure *failure = &request->failure;
  umemPoolCore *core = request->list->core;
  for (;;) {
    if (try_once(request, growth, alone)) return true;
    if (failure->reason == umemPoolChanged) {
      failure->reason = umemPoolNoRecords;
    } else {
      bool waited =
          umemPoolFailure_is_of_memory(failure) && umemGrowth_await(&core->growing, &core->lock);
      if (!waited) return false;
      if (failure->reason == umemPoolUpstreamFailed) growth = alone = umemPoolGrowByOthers;
    }
  }
}

/* ---- out of memory ---- */

/* Brings together what is not used: in the pool's own list, from which chunks can go back; or,
 * where the upstream cannot wait, in the list that needs it. */
static void collect(umemPoolFreeList *list) {
  umemPoolFreeList *own = list->core->own;
  umemPoolCache_drain_all_threads(list->core);
  umemPoolCache_drain(list);
  umemPoolLarge_coalesce(list);
  if (!umemPoolFreeList_has_others(list)) return;
  umemPoolFreeList *to = umemPoolQueue_is_blocked(own) ? list : own;
  if (!umemPoolQueue_is_blocked(to)) umemPoolTransfer_all(to);
}

/* Gives back chunks that are not used. Returns how the list may grow then: by the upstream, if that
 * got anything or moves pages. */
static umemPoolGrowth reclaim(umemPoolFreeList *list, umemPoolFailure const *failure) {
  umemPoolCore *core = list->core;
  umemAttempt forgotten;
  umemAttempt_begin(&forgotten);
  collect(list);
  uint64_t before = core->reserved;
  umemPoolChunk_release(core, 0);
  umemAttempt_end(&forgotten);
  if (core->reserved == before && !core->spaces) return umemPoolGrowByOthers;
  return failure->reason == umemPoolAtMaximum ? umemPoolGrowWell : umemPoolGrowLeast;
}

/* Gives back pages that could not be moved to where they are needed: a chunk may do. Returns
 * whether there were any. */
static bool give_pages_back(umemPoolCore *core) {
  umemAttempt forgotten;
  uint64_t before = core->reserved;
  umemAttempt_begin(&forgotten);
  umemPoolPages_release(core, 0);
  umemAttempt_end(&forgotten);
  return core->reserved != before;
}

bool umemPoolRequest_find(umemPoolRequest *request) {
  umemPoolFailure *failure = &request->failure;
  failure->reason = umemPoolNoRecords;
  if (keep_trying(request, umemPoolGrowWell, umemPoolGrowByOthers)) return true;
  if (!umemPoolFailure_is_of_memory(failure)) return false;
  if (keep_trying(request, reclaim(request->list, failure), umemPoolGrowLeast)) return true;
  return umemPoolFailure_is_of_memory(failure) && give_pages_back(request->list->core) &&
         keep_trying(request, umemPoolGrowLeast, umemPoolGrowLeast);
}
