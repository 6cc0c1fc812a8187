/* pool_grow.c - makes memory free for a request that no free memory of its list serves, step by
 * step: from what the list keeps, from other lists, from the upstream. It decides how much memory
 * the pool takes at once, and when it takes new memory in place of pages that could move. */
#include "pool/pool_grow.h"
#include "pool/pool_cache.h"

/* ---- from the upstream ---- */

/* Where there are chunks, but no pages, so many growths ask for chunks at once: to look for pages
 * takes milliseconds in a pool of very many pieces. */
enum { growths_to_wait = 256 };

/* One page in so many may be new although others could move. Not for some time after the upstream
 * had none, as it takes a GPU's driver long to find that out. */
enum { spare_share = 64 };

/* Without the option spare a pool on a GPU that seldom moves pages has none: at most one in so many
 * of the pages that it has, and one in so many of those that its large blocks had. There the memory
 * is worth more than the time. */
enum { moved_share = 32, moved_share_served = 2048 };

/* Of the bytes that spare allows, so many percent are used before pages move. The rest is for what
 * no move can spare: free memory in a part of a page. */
enum { used_of_spare = 88 };

/* By default a chunk is as large as the pool as long as that is small, and then so large a part of
 * it. With larger chunks a growing pool holds memory that it does not need; with smaller ones it
 * has free memory in many pieces. */
enum { growth_share = 4 };
static size_t const growth_least = 1 << 20, growth_whole = 4 << 20, growth_most = 64 << 20;

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
  return umemPoolFreeList_has_others(grower->list) &&
         umemPoolTransfer_range(grower->list, umemPoolUnits_of(grower->size),
                                umemPoolStep_of(grower->alignment));
}

static size_t usual_growth(umemPoolCore const *core) {
  uint64_t whole = core->reserved < growth_whole ? core->reserved : growth_whole;
  uint64_t part = core->reserved / growth_share, growth = part > whole ? part : whole;
  return growth < growth_least ? growth_least : growth > growth_most ? growth_most : (size_t)growth;
}

/* The best size of a chunk for size bytes. */
static size_t best_size(umemPoolCore const *core, size_t size, size_t alignment) {
  if (alignment > umemPoolPage) return size;
  size_t growth = core->growth ? core->growth : usual_growth(core);
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

/* Then free chunks go back. */
static void make_room(umemPoolCore *core, uint64_t size) {
  uint64_t more = new_peak(core, size);
  if (!more || !core->chunk_count) return;
  UMEM_FORGETTING();
  umemPoolLarge_coalesce(core->own);
  umemPoolChunk_release_bytes(core, more);
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
  return more <= umemPoolCore_allowance(core) ? more : 0;
}

/* What the pool has moved beyond so many bytes. */
static uint64_t moved_beyond(umemPoolCore const *core, uint64_t seldom) {
  return core->moved > seldom ? core->moved - seldom : 0;
}

/* What the pool may have beyond so many bytes in use: on a GPU as the option spare says. Otherwise
 * another page for each page that it moves, so that a pool that never moves any has no more. */
static uint64_t spare_bytes(umemPoolCore const *core, uint64_t used) {
  uint64_t share = used / spare_share;
  if (core->spare) {
    uint64_t most = used / (100 * 100) * (core->spare * used_of_spare);
    uint64_t earned = share + moved_beyond(core, core->reserved / spare_share);
    return most < earned || !is_touched_later(core) ? most : earned;
  }
  uint64_t earned =
      moved_beyond(core, core->reserved / moved_share +
                             ((core->served_units / moved_share_served) << umemPoolUnitShift));
  return share < earned || is_touched_later(core) ? share : earned;
}

/* To move pages takes longer than to map new ones: each leaves a gap, which is filled again later.
 * So the pool maps new ones until it has a bit more than was ever in use at once. */
static size_t unmoved_bytes(umemPoolGrower const *grower) {
  umemPoolCore *core = grower->list->core;
  if (core->growths_without_new_pages) {
    core->growths_without_new_pages--;
    return 0;
  }
  uint64_t used = umemPoolCore_used(core) + grower->size;
  uint64_t most = used > core->used_peak ? used : core->used_peak;
  uint64_t has = core->reserved + umemGrowth_amount(&core->growing);
  uint64_t allowed = umemPoolCore_allowance(core);
  most += spare_bytes(core, most);
  uint64_t more = most > has ? most - has : 0;
  return (size_t)(more < allowed ? more : allowed);
}

static void coalesce_all(umemPoolCore *core) {
  for (umemPoolFreeList *list = core->lists; list; list = list->next)
    if (!list->ending) umemPoolLarge_coalesce(list);
}

/* Whether a page for a small range would make the pool larger than it need be. */
static bool must_mix(umemPoolGrower const *grower, size_t unmoved) {
  umemPoolFreeList const *list = grower->list;
  return umemPoolCore_keeps_separate(list->core, umemPoolUnits_of(grower->size)) &&
         unmoved < list->core->pages->page_size && !umemPoolPages_may_move(list);
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
  umemPoolExtra none = {0, 0, false}, extra = none;
  if (grower->growth == umemPoolGrowWell)
    extra = (umemPoolExtra){ample_bytes(grower), unmoved_bytes(grower), core->spare > 0};
  coalesce_all(core);
  if (must_mix(grower, extra.unmoved)) return false;
  bool grown = umemPoolPages_grow(list, size, grower->alignment, extra, failure);
  bool less_may_do =
      extra.ample || ((extra.unmoved || extra.joins) && umemPoolPages_may_move(list));
  if (!grown && less_may_do) {
    coalesce_all(core);
    grown = umemPoolPages_grow(list, size, grower->alignment, none, failure);
    if (grown) core->growths_without_new_pages = growths_to_wait;
  }
  grower->refused = !grown && failure->reason == umemPoolUpstreamFailed;
  return grown;
}

/* A small range is placed beside others, as no page is left for it, and so are the next ones. */
static bool mix_ranges(umemPoolGrower *grower) {
  umemPoolCore *core = grower->list->core;
  if (!umemPoolCore_keeps_separate(core, umemPoolUnits_of(grower->size))) return false;
  core->ranges_mixed = growths_to_wait;
  return true;
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
  if (!umemPoolCore_allows(core, size, failure)) return false;
  if (umemPoolQueue_must_follow_upstream(list) && umemPoolQueue_is_blocked(list)) {
    failure->reason = umemPoolCaptured;
    return false;
  }
  bool well = grower->growth == umemPoolGrowWell && !grower->refused;
  size_t best = well ? best_size(core, size, grower->alignment) : size;
  make_room(core, best);
  bool const zeros = well && grower->zeros;
  uint64_t allowed = umemPoolCore_allowance(core);
  if (zeros && allowed >= size + umemPoolPage) allowed -= umemPoolPage; /* to align it */
  if (best > allowed) best = (size_t)allowed & ~(size_t)(umemPoolUnit - 1);
  if (best > size && umemGrowth_is_ample(&core->growing) && !umemPoolQueue_is_blocked(list) &&
      umemGrowth_await(&core->growing, &core->lock)) {
    failure->reason = umemPoolChanged;
    return false;
  }
  umemPoolChunkUse const ample = {best > size, zeros}, least = {false, false};
  bool added = umemPoolChunk_add(list, best, grower->alignment, ample, failure) ||
               ((best > size || zeros) && umemPoolFailure_is_of_memory(failure) &&
                umemPoolChunk_add(list, size, grower->alignment, least, failure));
  if (added && grower->refused && core->spaces) core->growths_without_pages = growths_to_wait;
  return added;
}

/* ---- all of them ---- */

bool umemPoolGrower_next(umemPoolGrower *grower) {
  static bool (*const steps[])(umemPoolGrower *) = {free_kept, take_from_others, free_all_kept,
                                                    add_pages, mix_ranges,       add_chunk};
  unsigned const count = sizeof steps / sizeof *steps;
  if (grower->growth == umemPoolGrowNot) return false;
  if (grower->step == count) /* no RAM to record a range of the new chunk, which is kept */
    grower->failure->reason = umemPoolNoRecords;
  while (grower->step < count) {
    if (steps[grower->step++](grower)) return true;
    if (grower->failure->reason == umemPoolChanged) return false;
  }
  return false;
}

/* ---- out of memory ---- */

/* Brings together what is not used: in the pool's own list, from which chunks can go back; or,
 * where the upstream cannot wait, in the list that needs it. */
static void gather_unused(umemPoolFreeList *list) {
  umemPoolFreeList *own = list->core->own;
  for (umemPoolFreeList *other = list->core->lists; other; other = other->next)
    if (umemPoolMark_is_needless(list, other)) umemPoolCache_drain_threads(list->core, other);
  umemPoolCache_drain(list);
  umemPoolLarge_coalesce(list);
  umemPoolMark_want(list, umemPoolWantThreads);
  if (!umemPoolFreeList_has_others(list)) return;
  umemPoolFreeList *to = umemPoolQueue_is_blocked(own) ? list : own;
  if (!umemPoolQueue_is_blocked(to)) umemPoolTransfer_all(to);
}

umemPoolGrowth umemPoolGrow_reclaim(umemPoolFreeList *list, umemPoolFailure const *failure) {
  umemPoolCore *core = list->core;
  UMEM_FORGETTING();
  gather_unused(list);
  uint64_t before = core->reserved;
  umemPoolChunk_release(core, 0);
  if (core->reserved == before && !core->spaces) return umemPoolGrowByOthers;
  return failure->reason == umemPoolAtMaximum ? umemPoolGrowWell : umemPoolGrowLeast;
}
