/* pool_block.c - the methods for blocks, which pools and their views share.
 *
 * A small block costs no lock: it comes from the calling thread's stack of its class, and goes
 * there. Where this has none, the pool uses what it has, or what the upstream adds. If it is out of
 * memory, but the upstream is about to answer another thread, it tries again after that. Then it
 * gives back chunks that it does not use and tries again: the upstream is asked again only if
 * something went back to it, or for less. At last pages go back. */
#include "pool/pool_grow.h"
#include "pool/pool_cache.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- search; under the lock, which may be open meanwhile ---- */

typedef struct Request {
  umemPoolFreeList *list;
  unsigned class;     /* umemPoolClasses: a large block, which has none */
  umemPoolSlot *slot; /* the calling thread's, empty; gets more blocks. NULL: the thread has none */
  size_t size;        /* at most PTRDIFF_MAX / 2 */
  size_t alignment;   /* if the block gets a range alone */
  bool zeros;         /* it is for umem_calloc: a new chunk should be zero */
  umemPoolEntry entry;     /* what was found; live is NULL when it is a large block */
  umemPoolFailure failure; /* why nothing was */
} Request;

/* Whether the request was served from what the list has free. */
static bool is_found(Request *request, umemPoolResult result) {
  if (result == umemPoolNoRam) request->failure.reason = umemPoolNoRecords;
  return result == umemPoolFound;
}

static bool add_span(Request *request, umemPoolGrowth growth) {
  umemPoolFreeList *list = request->list;
  size_t size = (size_t)list->core->shapes[request->class].pages << umemPageShift;
  umemPoolGrower grower = {list, size, umemPoolPage, growth, 0, &request->failure, false, false};
  umemPoolResult result;
  do result = umemPoolSpan_add(list, request->class);
  while (result == umemPoolNoneFree && umemPoolGrower_next(&grower));
  return is_found(request, result);
}

static bool find_range(Request *request, umemPoolGrowth growth) {
  umemPoolFreeList *list = request->list;
  size_t size = request->size, alignment = request->alignment;
  umemPoolGrower grower = {list,           size, alignment, growth, 0, &request->failure,
                           request->zeros, false};
  umemPoolResult result;
  request->entry.live = NULL;
  do result = umemPoolLarge_alloc(list, size, alignment, &request->entry.adr);
  while (result == umemPoolNoneFree && umemPoolGrower_next(&grower));
  return is_found(request, result);
}

static bool has_span(Request const *request) {
  return request->list->classes[request->class].spans;
}

/* Makes sure that the list has a span with free blocks: of its own, from its own range, of other
 * lists, from new memory. */
static bool have_span(Request *request, umemPoolGrowth growth) {
  umemPoolFreeList *list = request->list;
  if (has_span(request)) return true;
  if (umemPoolFreeList_has_others(list) &&
      (add_span(request, umemPoolGrowNot) ||
       (umemPoolTransfer_spans(list, request->class) && has_span(request))))
    return true;
  return add_span(request, growth);
}

/* Spans of wide classes leave much memory unused in a pool that has less than this. */
static uint64_t const spans_least = 32 << 20;
/* A pool that has more does without the holes: a block in one keeps a whole page from moving. */
static uint64_t const fills_most = 128 << 20;

/* Finds a range of whole units for a block of a wide class alone: in a small pool always. A larger
 * one makes a span of free memory if it can, and places the block alone before it grows. So what is
 * left between blocks from when the pool was small is used. Only memory of a GPU, and pinned and
 * managed memory: other RAM is taken where it is touched, and there heaps need 30 ns for such a
 * block. */
static bool find_alone(Request *request, umemPoolGrowth growth) {
  umemPoolCore const *core = request->list->core;
  if (!umemPoolClass_is_wide(request->class) || !umem_can(core->upstream, umemDeviceAccessible))
    return false;
  if (core->reserved < spans_least) return find_range(request, growth);
  return core->reserved < fills_most && !add_span(request, umemPoolGrowNot) &&
         find_range(request, umemPoolGrowNot);
}

/* While the upstream is asked, a function of the program that it calls may free blocks to the slot.
 * But a new span must not stay without a live block, because it goes back when its last one is
 * freed. */
static bool find_small(Request *request, umemPoolGrowth growth) {
  umemPoolFreeList *list = request->list;
  umemPoolSlot *slot = request->slot;
  unsigned class = request->class;
  if (slot && (umemPoolSlot_count(slot) || umemPoolCache_fetch(list, class, slot)))
    return umemPoolSlot_pop(slot, &request->entry);
  if (!has_span(request) && find_alone(request, growth)) return true;
  if (request->failure.reason == umemPoolChanged || !have_span(request, growth)) return false;
  if (!slot || umemPoolSlot_count(slot)) {
    list->core->served++; /* one that no slot counts */
    return umemPoolSpan_take(list, class, &request->entry, 1) == 1;
  }
  uint32_t count = umemPoolSpan_take(list, class, slot->entries, list->core->shapes[class].batch);
  umemPoolSlot_set_count(slot, count);
  return umemPoolSlot_pop(slot, &request->entry);
}

/* Where there is no room for a span there may be some for a block alone. */
static bool try_request(Request *request, umemPoolGrowth growth, umemPoolGrowth alone) {
  if (request->class == umemPoolClasses) return find_range(request, growth);
  if (find_small(request, growth)) return true;
  return request->failure.reason != umemPoolChanged && find_range(request, alone);
}

/* Tries until no more memory comes. Once the upstream has refused, it is not asked again
 * meanwhile. */
static bool keep_trying(Request *request, umemPoolGrowth growth, umemPoolGrowth alone) {
  umemPoolFailure *failure = &request->failure;
  umemPoolCore *core = request->list->core;
  for (;;) {
    if (try_request(request, growth, alone)) return true;
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

/* Gives back pages that could not be moved to where they are needed: a chunk may do. Returns
 * whether there were any. */
static bool give_pages_back(umemPoolCore *core) {
  uint64_t before = core->reserved;
  UMEM_FORGETTING();
  umemPoolPages_release(core, 0);
  return core->reserved != before;
}

/* Notes the view that holds most of what it has not marked. */
static void note_unmarked(umemPoolFreeList const *list, umemPoolFailure *failure) {
  umemPoolFreeList const *most = NULL;
  char label[UMEM_LABEL_SIZE];
  for (umemPoolFreeList const *other = list->core->lists; other; other = other->next)
    if (other->view && other->mark.is_old && !umemPoolMark_is_needless(list, other) &&
        (!most || other->mark.nbytes > most->mark.nbytes))
      most = other;
  if (!most || !umemPoolFailure_is_of_memory(failure)) return;
  umemExtra_label(most->view, label);
  snprintf(failure->hint, sizeof failure->hint,
           "; another view%s%s%s keeps %ju free bytes that it has not marked since",
           *label ? " \"" : "", label, *label ? "\"" : "", (uintmax_t)most->mark.nbytes);
}

static bool try_all(Request *request) {
  umemPoolFailure *failure = &request->failure;
  failure->reason = umemPoolNoRecords;
  if (keep_trying(request, umemPoolGrowWell, umemPoolGrowByOthers)) return true;
  if (!umemPoolFailure_is_of_memory(failure)) return false;
  if (keep_trying(request, umemPoolGrow_reclaim(request->list, failure), umemPoolGrowLeast))
    return true;
  return umemPoolFailure_is_of_memory(failure) && give_pages_back(request->list->core) &&
         keep_trying(request, umemPoolGrowLeast, umemPoolGrowLeast);
}

/* Finds the block. False, and why in request->failure, when it cannot. */
static bool find_block(Request *request) {
  request->failure.hint[0] = 0;
  bool found = try_all(request);
  if (!found) note_unmarked(request->list, &request->failure);
  return found;
}

/* ---- failures; without the lock ---- */

bool umemPoolBlock_has_pool(umemVirtual *ctx) {
  if (!__atomic_load_n(&umemPoolImpl_of(ctx)->core->ended, __ATOMIC_ACQUIRE)) return true;
  return UMEM_FAIL(ctx, umemValueError, "the pool of this view was destructed before it");
}

/* What fails below the pool of a view, or in another queue, is not upstream of the view: the
 * failure becomes its own. */
void umemPoolBlock_record_held(umemVirtual *ctx, umemAttempt const *held) {
  umemPoolImpl const *impl = umemPoolImpl_of(ctx);
  if (impl->list == impl->core->own) {
    umemAdaptor_record_held(ctx, held);
  } else if (umemAttempt_failed(held)) {
    umemAttempt mine = *held;
    mine.ctx = ctx;
    mine.adopter = NULL;
    umemAttempt_record(&mine);
  }
}

void umemPoolBlock_lock(umemVirtual *ctx, umemAttempt *held) {
  umemAttempt_begin(held);
  umemLock_acquire(&umemPoolImpl_of(ctx)->core->lock);
}

void umemPoolBlock_unlock(umemVirtual *ctx, umemAttempt *held) {
  umemLock_release(&umemPoolImpl_of(ctx)->core->lock);
  umemAttempt_end(held);
  umemPoolBlock_record_held(ctx, held);
}

/* Names the pages if the bytes alone would fit. */
static void record_maximum(umemVirtual *ctx, umemPoolFailure const *failure, size_t nbytes) {
  size_t maximum = umemPoolImpl_of(ctx)->core->maximum;
  bool fits = nbytes <= maximum - failure->reserved;
  umemVirtual_fail(ctx, umemMemoryError,
                   "no room for %zu bytes: the pool holds %ju of at most %zu bytes%s%s", nbytes,
                   (uintmax_t)failure->reserved, maximum,
                   fits ? ", in whole pages of 4096 bytes" : "", failure->hint);
}
_Static_assert(umemPoolUnit == 4096, "as the message says");

/* The failure of the upstream, with the hint. */
static void record_upstream(umemVirtual *ctx, umemPoolFailure const *failure) {
  umemAttempt attempt = failure->attempt;
  size_t length = strlen(attempt.text);
  snprintf(attempt.text + length, sizeof attempt.text - length, "%s", failure->hint);
  umemPoolBlock_record_held(ctx, &attempt);
}

void umemPoolBlock_record_failure(umemVirtual *ctx, umemPoolFailure const *failure, size_t nbytes) {
  switch (failure->reason) {
  case umemPoolAtMaximum:
    record_maximum(ctx, failure, nbytes);
    break;
  case umemPoolNoRecords:
    umemVirtual_fail(ctx, umemMemoryError, "no memory for the records of the pool");
    break;
  case umemPoolCaptured:
    umemVirtual_fail(ctx, umemNotSupportedError,
                     "no %zu bytes are free in the order of this stream, which is being captured "
                     "into a graph: others cannot be waited for",
                     nbytes);
    break;
  case umemPoolChanged: /* is tried again */
  case umemPoolUpstreamFailed:
  case umemPoolNotOrdered:
    record_upstream(ctx, failure);
    break;
  }
}

static uintptr_t fail_wrong(umemVirtual *ctx, uintptr_t adr) {
  return UMEM_FAIL_AS(umem_null_of(ctx), ctx, umemValueError,
                      "%#" PRIxPTR " is not a live block of the pool", adr);
}

/* ---- large blocks ---- */

/* What is zero in a new block. */
typedef struct Fresh {
  umemPoolSpace *space; /* knows it; NULL where the block is in a chunk: */
  uintptr_t from;       /* all from here on */
} Fresh;

static Fresh fresh_at(umemPoolCore const *core, uintptr_t adr) {
  return (Fresh){umemPoolSpace_of(core, adr >> umemPoolUnitShift),
                 umemPoolChunk_zero_from(core, adr)};
}

/* fresh: NULL unless it is for umem_calloc. */
static uintptr_t alloc_large_in(umemVirtual *ctx, size_t size, size_t alignment, Fresh *fresh) {
  umemPoolImpl const *impl = umemPoolImpl_of(ctx);
  umemPoolCore *core = impl->core;
  if (!umemPoolBlock_has_pool(ctx)) return umem_null_of(ctx);
  if (size > PTRDIFF_MAX / 2)
    return UMEM_FAIL_AS(umem_null_of(ctx), ctx, umemMemoryError, "%zu bytes exceed any memory",
                        size);
  if (alignment < core->alignment) alignment = core->alignment;
  Request request;
  request.list = impl->list;
  request.class = umemPoolClasses;
  request.size = size;
  request.alignment = alignment;
  request.zeros = fresh && core->knows_zeros;
  umemLock_acquire(&core->lock);
  umemPoolTransfer_mark(impl->list, false);
  bool found = find_block(&request);
  if (found && fresh) *fresh = fresh_at(core, request.entry.adr);
  umemLock_release(&core->lock);
  if (found) return request.entry.adr;
  umemPoolBlock_record_failure(ctx, &request.failure, size);
  return umem_null_of(ctx);
}

static uintptr_t alloc_large(umemVirtual *ctx, size_t size, size_t alignment) {
  return alloc_large_in(ctx, size, alignment, NULL);
}

static void free_large(umemVirtual *ctx, uintptr_t adr) {
  umemPoolImpl const *impl = umemPoolImpl_of(ctx);
  umemPoolCore *core = impl->core;
  if (!umemPoolBlock_has_pool(ctx)) return;
  umemAttempt held;
  umemPoolBlock_lock(ctx, &held);
  umemStatusType status = umemPoolLarge_free(impl->list, adr);
  if (impl->list == core->own) umemPoolChunk_release_special(core);
  umemPoolTransfer_mark(impl->list, true);
  umemPoolBlock_unlock(ctx, &held);
  if (status == umemValueError) fail_wrong(ctx, adr);
  if (status == umemMemoryError)
    umemVirtual_fail(ctx, umemMemoryError, "no memory for the records of the pool");
}

/* ---- small blocks ---- */

static uintptr_t made_live(umemPoolEntry const *entry) {
  if (entry->live) __atomic_store_n(entry->live, 1, __ATOMIC_RELAXED);
  return entry->adr;
}

static __attribute__((noinline)) uintptr_t refill_cache(umemVirtual *ctx, unsigned class,
                                                        size_t size, size_t alignment) {
  umemPoolImpl const *impl = umemPoolImpl_of(ctx);
  umemPoolCore *core = impl->core;
  if (!umemPoolBlock_has_pool(ctx)) return umem_null_of(ctx);
  umemPoolCache *cache = umemPoolCache_mine(impl->list);
  umemPoolEntry entry;
  if (cache && umemPoolCache_take(cache, impl->serial, class, &entry))
    return made_live(&entry); /* the thread has used another pool or view last */
  umemPoolSlot *slot = cache ? &cache->slots[class] : NULL;
  Request request;
  request.list = impl->list;
  request.class = class;
  request.size = size ? size : 1;
  request.alignment = alignment > core->alignment ? alignment : core->alignment;
  request.zeros = false;
  umemLock_acquire(&core->lock);
  umemPoolTransfer_mark(impl->list, false);
  request.slot = slot && umemPoolCache_prepare(core, slot, class) ? slot : NULL;
  bool found = find_block(&request);
  umemLock_release(&core->lock);
  if (found) return made_live(&request.entry);
  umemPoolBlock_record_failure(ctx, &request.failure, size);
  return umem_null_of(ctx);
}

static inline uintptr_t alloc_small(umemVirtual *ctx, umemPoolCache *cache, unsigned class,
                                    size_t size, size_t alignment) {
  umemPoolEntry entry;
  if (__builtin_expect(!umemPoolCache_take(cache, umemPoolImpl_of(ctx)->serial, class, &entry), 0))
    return refill_cache(ctx, class, size, alignment);
  return made_live(&entry);
}

void umemPoolBlock_make_room(umemPoolFreeList *list, unsigned class, umemPoolEntry entry) {
  umemPoolCore *core = list->core;
  umemPoolCache *cache = umemPoolCache_mine(list);
  if (cache && umemPoolCache_keep(cache, list->serial, class, entry)) return;
  umemPoolSlot *slot = cache ? &cache->slots[class] : NULL;
  UMEM_LOCKED(&core->lock);
  if (slot && umemPoolCache_prepare(core, slot, class)) {
    if (umemPoolSlot_count(slot) == slot->limit) umemPoolCache_hand_over(list, class, slot);
    umemPoolSlot_push(slot, entry);
  } else {
    umemPoolSpan_put(list, &entry, 1);
  }
  umemPoolTransfer_mark(list, true);
}

/* Puts a block that is not live any more into the calling thread's cache. Not inlined, so that its
 * caller has no registers to save. */
static __attribute__((noinline)) void put_block(umemVirtual *ctx, size_t class,
                                                umemPoolEntry entry) {
  umemPoolCache *cache = umemPoolCache_last();
  umemPoolImpl const *impl = umemPoolImpl_of(ctx);
  if (__builtin_expect(!umemPoolCache_keep(cache, impl->serial, class, entry), 0))
    umemPoolBlock_make_room(impl->list, (unsigned)class, entry);
}

/* ---- zeros ---- */

/* A block of so many used bytes gets other memory, as one of malloc does: to write zeros takes as
 * long as to touch new pages, and keeps the memory of arrays that are hardly touched. */
enum { replaced_least = 32 << 20 };

/* Whether the CPU can write to a new block at once, and no adaptor has to see that. */
static bool is_plain_ram(umemVirtual *ctx) {
  umemPoolFreeList const *list = umemPoolImpl_of(ctx)->list;
  unsigned const others = umemOrdered | umemDeviceShared | umemFaultable | umemOffsets;
  return umem_can(ctx, umemCpuWritable) && !(ctx->capabilities & others) &&
         list->queue == list->innermost;
}

static bool write_zeros(umemVirtual *ctx, uintptr_t begin, uintptr_t end) {
  if (end - begin > umemPoolSmall || !is_plain_ram(ctx))
    return umem_set(ctx, begin, 0, end - begin) == umemOK;
  memset((void *)begin, 0, end - begin);
  return true;
}

/* Not while queued work may write to them, and no large pages. */
static bool may_replace(umemVirtual *ctx, size_t nbytes) {
  umemPoolCore const *core = umemPoolImpl_of(ctx)->core;
  bool queues = ctx->capabilities & (umemOrdered | umemDeviceShared);
  return nbytes >= replaced_least && !queues && core->zeroing && core->orders <= 1;
}

/* Makes used bytes of a new block zero. */
static bool zero_used(umemVirtual *ctx, umemPoolSpace const *space, uintptr_t begin,
                      uintptr_t end) {
  umemPoolCore *core = umemPoolImpl_of(ctx)->core;
  size_t const mask = (space ? core->pages->page_size : umemPoolPage) - 1;
  uintptr_t first = (begin + mask) & ~mask, last = end & ~mask;
  if (last <= first || !may_replace(ctx, last - first) ||
      !core->zeroing->vptr->zero_pages(core->zeroing, first, last - first))
    return write_zeros(ctx, begin, end);
  return write_zeros(ctx, begin, first) && write_zeros(ctx, last, end);
}

/* Makes a new block zero, but for what is zero already. */
static bool zero_block(umemVirtual *ctx, Fresh const *fresh, uintptr_t adr, size_t nbytes) {
  uintptr_t begin = adr, end = adr + nbytes, used_end;
  umemPoolSpace const *space = fresh->space;
  umemPoolCore const *core = umemPoolImpl_of(ctx)->core;
  if (!space || !space->fresh) {
    if (fresh->from < end) end = fresh->from;
    return end <= adr || zero_used(ctx, space, adr, end);
  }
  for (; umemPoolSpace_next_used(core, space, &begin, end, &used_end); begin = used_end)
    if (!zero_used(ctx, space, begin, used_end)) return false;
  return true;
}

/* ---- methods ---- */

void umemPoolBlock_free(umemVirtual *ctx, uintptr_t adr) {
  umemPoolCore const *core = umemPoolImpl_of(ctx)->core;
  umemPoolLocation location;
  if (__builtin_expect(!umemPoolSpan_locate(core, adr, &location), 0))
    free_large(ctx, adr);
  else if (__builtin_expect(!umemPoolBlock_claim(core, adr, &location), 0))
    fail_wrong(ctx, adr);
  else
    put_block(ctx, location.word & umemPoolClassMask, (umemPoolEntry){adr, location.live});
}

/* The first class that may hold size bytes; umemPoolClasses for none. */
static inline unsigned class_for(umemVirtual *ctx, size_t size) {
  return umemPoolImpl_of(ctx)->core->class_of[(size + umemPoolGrain - 1) / umemPoolGrain];
}

uintptr_t umemPoolBlock_alloc(umemVirtual *ctx, size_t nbytes) {
  if (__builtin_expect(nbytes > umemPoolSmall, 0)) return alloc_large(ctx, nbytes, umemPoolUnit);
  umemPoolCache *cache = umemPoolCache_last();
  unsigned class = class_for(ctx, nbytes);
  if (__builtin_expect(class == umemPoolClasses, 0)) return alloc_large(ctx, nbytes, umemPoolUnit);
  return alloc_small(ctx, cache, class, nbytes, umemPoolUnit);
}

uintptr_t umemPoolBlock_calloc(umemVirtual *ctx, size_t nmemb, size_t size) {
  Fresh fresh;
  size_t nbytes = nmemb * size;
  bool const large = nbytes > umemPoolSmall;
  uintptr_t adr =
      large ? alloc_large_in(ctx, nbytes, umemPoolUnit, &fresh) : umemPoolBlock_alloc(ctx, nbytes);
  if (adr == umem_null_of(ctx) ||
      (large ? zero_block(ctx, &fresh, adr, nbytes) : write_zeros(ctx, adr, adr + nbytes)))
    return adr;
  umemPoolBlock_free(ctx, adr);
  return umem_null_of(ctx);
}

/* Uses the smallest class whose blocks are all at multiples of alignment: at the latest the next
 * power of two. */
uintptr_t umemPoolBlock_aligned_alloc(umemVirtual *ctx, size_t alignment, size_t size) {
  umemPoolCore const *core = umemPoolImpl_of(ctx)->core;
  if (alignment <= core->alignment) return umemPoolBlock_alloc(ctx, size);
  if (size > umemPoolSmall || alignment > umemPoolSmall) return alloc_large(ctx, size, alignment);
  umemPoolCache *cache = umemPoolCache_last();
  unsigned class = class_for(ctx, size > alignment ? size : alignment);
  while (class < umemPoolClasses && core->shapes[class].size & (alignment - 1)) class += 1;
  if (class == umemPoolClasses) return alloc_large(ctx, size, alignment);
  return alloc_small(ctx, cache, class, size, alignment);
}

/* The bytes of the live block at adr, which may be more than were requested; 0 when there is
 * none. */
static uint64_t extent_of(umemPoolCore *core, uintptr_t adr) {
  umemPoolLocation location;
  if (umemPoolSpan_locate(core, adr, &location))
    return __atomic_load_n(location.live, __ATOMIC_ACQUIRE)
               ? core->shapes[umemPoolClass_of(location.word)].size
               : 0;
  if (__atomic_load_n(&core->ended, __ATOMIC_ACQUIRE)) return 0;
  UMEM_LOCKED(&core->lock);
  return umemPoolLarge_extent(core, adr);
}

uintptr_t umemPoolBlock_aligned_origin(umemVirtual *ctx, uintptr_t adr) {
  return extent_of(umemPoolImpl_of(ctx)->core, adr) ? adr : fail_wrong(ctx, adr);
}

/* Whether a block of extent bytes may keep size bytes: unless more than half of it would be unused.
 * The smallest blocks keep any. */
static bool suits_size(umemPoolCore const *core, uint64_t extent, size_t size) {
  if (size > extent) return false;
  return size > extent / 2 || extent == core->shapes[core->class_of[1]].size;
}

uintptr_t umemPoolBlock_realloc(umemVirtual *ctx, uintptr_t adr, size_t old_size, size_t new_size) {
  umemPoolCore *core = umemPoolImpl_of(ctx)->core;
  uint64_t extent = extent_of(core, adr);
  if (!extent) return fail_wrong(ctx, adr);
  if (old_size > extent && !umem_has_size(ctx, adr, extent, old_size)) return umem_null_of(ctx);
  return suits_size(core, extent, new_size) ? adr : umem_move_block(ctx, adr, old_size, new_size);
}

static umemSearch found_at(umemFound *found, uintptr_t adr, uint64_t nbytes) {
  found->adr = adr;
  found->nbytes = (size_t)nbytes;
  return umemSearchFound;
}

static umemSearch find_large(umemPoolCore *core, uintptr_t adr, umemFound *found) {
  uintptr_t start = 0;
  if (__atomic_load_n(&core->ended, __ATOMIC_ACQUIRE)) return umemSearchNone;
  if (!umemLock_try(&core->lock)) return umemSearchBusy;
  uint64_t extent = core->ended ? 0 : umemPoolLarge_containing(core, adr, &start);
  umemLock_release(&core->lock);
  return extent ? found_at(found, start, extent) : umemSearchNone;
}

umemSearch umemPoolBlock_find(umemVirtual *ctx, uintptr_t adr, umemFound *found) {
  umemPoolCore *core = umemPoolImpl_of(ctx)->core;
  umemPoolLocation location;
  uintptr_t start;
  if (!umemPoolSpan_start(core, adr, &start)) return find_large(core, adr, found);
  if (!umemPoolSpan_locate(core, start, &location) ||
      __atomic_load_n(location.live, __ATOMIC_ACQUIRE) != 1 ||
      !umemPoolLocation_holds(core, start, &location))
    return umemSearchNone;
  return found_at(found, start, core->shapes[umemPoolClass_of(location.word)].size);
}
