/* pool_find.c - finds a block where the calling thread's cache has none. See pool.h.
 *
 * First the pool uses what it has, or what the upstream adds. If it is out of memory, but the upstream is
 * about to answer another thread, it tries again after that. Then it gives back chunks that it does not use and
 * tries again: the upstream is asked again only if something went back to it, or for less. At last pages go back. */
#include "pool/pool_find.h"
#include "pool/pool_chunk.h"
#include "pool/pool_grow.h"
#include "pool/pool_large.h"
#include "pool/pool_pages.h"
#include "pool/pool_queue.h"
#include "pool/pool_transfer.h"

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

/* Makes sure that the list has a span with free blocks: of its own, from its own range, of other lists, from
 * new memory. */
static bool have_span(umemPoolRequest *request, umemPoolGrowth growth) {
  umemPoolFreeList *list = request->list;
  if (has_span(request)) return true;
  if (umemPoolFreeList_has_others(list) &&
      (add_span(request, umemPoolGrowNot) ||
       (umemPoolTransfer_spans(list, request->class) && has_span(request))))
    return true;
  return add_span(request, growth);
}

/* While the upstream is asked, a function of the program that it calls may free blocks to the slot. But a new
 * span must not stay without a live block, because it goes back when its last one is freed. */
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

/* Tries until no more memory comes. Once the upstream has refused, it is not asked again meanwhile. */
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

/* Brings together what is not used: in the pool's own list, from which chunks can go back; or, where the upstream
 * cannot wait, in the list that needs it. */
static void collect(umemPoolFreeList *list) {
  umemPoolFreeList *own = list->core->own;
  umemPoolCache_drain_all_threads(list->core);
  umemPoolCache_drain(list);
  umemPoolLarge_coalesce(list);
  if (!umemPoolFreeList_has_others(list)) return;
  umemPoolFreeList *to = umemPoolQueue_is_blocked(own) ? list : own;
  if (!umemPoolQueue_is_blocked(to)) umemPoolTransfer_all(to);
}

/* Gives back chunks that are not used. Returns how the list may grow then: by the upstream, if that got anything or
 * moves pages. */
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

/* Gives back pages that could not be moved to where they are needed: a chunk may do. Returns whether there were any. */
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
