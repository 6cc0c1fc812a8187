/* pool_block.c - the methods for blocks, which pools and their views share, and the counts of a
 * pool. See pool.h.
 *
 * A small block costs no lock: it comes from the calling thread's stack of its class, and goes
 * there. */
#include "pool/pool_block.h"
#include "core/context.h"
#include "core/realloc.h"
#include "pool/pool_cache.h"
#include "pool/pool_chunk.h"
#include "pool/pool_find.h"
#include "pool/pool_span.h"
#include "pool/pool_space.h"

#include <inttypes.h>

/* ---- statistics ---- */

/* Free blocks of the class in the caches and in the depot of the list. Under the lock. */
static uint64_t kept_of(umemPoolFreeList const *list, unsigned class) {
  uint64_t count = (uint64_t)list->classes[class].depot_count * list->core->shapes[class].batch;
  for (umemPoolCache *cache = list->caches; cache; cache = cache->after)
    count += umemPoolSlot_count(&cache->slots[class]);
  return count;
}

/* The live blocks of the class. A cache may change while it is counted. */
static uint64_t live(umemPoolCore const *core, unsigned class) {
  uint64_t kept = 0, out = core->classes[class].out;
  for (umemPoolFreeList const *list = core->lists; list; list = list->next)
    kept += kept_of(list, class);
  return out > kept ? out - kept : 0;
}

static uint64_t served(umemPoolCore const *core) {
  uint64_t count = core->served;
  for (umemPoolFreeList const *list = core->lists; list; list = list->next)
    for (umemPoolCache *cache = list->caches; cache; cache = cache->after)
      for (unsigned i = 0; i < umemPoolClasses; i++) count += umemPoolSlot_served(&cache->slots[i]);
  return count;
}

/* In one list, with its quick lists coalesced. */
static uint64_t largest_free(umemPoolCore *core) {
  uint64_t largest = 0;
  for (umemPoolFreeList *list = core->lists; list; list = list->next) {
    umemPoolLarge_coalesce(list);
    uint64_t units = umemPoolRange_largest(list);
    if (units > largest) largest = units;
  }
  return largest << umemPoolUnitShift;
}

/* Spaces with memory. */
static uint64_t spaces_of(umemPoolCore const *core) {
  uint64_t count = 0;
  for (umemPoolSpace const *space = core->spaces; space; space = space->next)
    count += umemPoolSpace_next(space, 0, true) < space->count;
  return count;
}

/* Under the lock. */
static void measure(umemPoolCore *core, umemPoolStats *stats) {
  stats->blocks = core->large_count;
  stats->used = core->large_units << umemPoolUnitShift;
  for (unsigned i = 0; i < umemPoolClasses; i++) {
    uint64_t blocks = live(core, i);
    stats->blocks += blocks;
    stats->used += blocks * core->shapes[i].size;
  }
  stats->used_peak = core->used_peak;
  stats->reserved = core->reserved;
  stats->reserved_peak = core->reserved_peak;
  stats->allocations = served(core);
  stats->chunks = core->chunk_count + spaces_of(core);
  stats->factor = stats->used_peak ? (double)stats->reserved_peak / (double)stats->used_peak : 0;
}

void umemPoolCore_measure(umemPoolCore *core, umemPoolStats *stats) {
  umemLock_acquire(&core->lock);
  measure(core, stats);
  umemLock_release(&core->lock);
}

bool umemPoolCore_try_measure(umemPoolCore *core, umemPoolStats *stats) {
  if (!umemLock_try(&core->lock)) return false;
  measure(core, stats);
  umemLock_release(&core->lock);
  return true;
}

void umemPoolCore_measure_free(umemPoolCore *core, umemPoolStats *stats) {
  umemLock_acquire(&core->lock);
  measure(core, stats);
  stats->largest_free = largest_free(core);
  umemLock_release(&core->lock);
  uint64_t idle = stats->reserved > stats->used ? stats->reserved - stats->used : 0;
  stats->fragmentation = idle ? 1 - (double)stats->largest_free / (double)idle : 0;
}

/* ---- failures; without the lock ---- */

bool umemPoolBlock_has_pool(umemVirtual *ctx) {
  if (!__atomic_load_n(&umemPoolImpl_of(ctx)->core->ended, __ATOMIC_ACQUIRE)) return true;
  umemVirtual_fail(ctx, umemValueError, "the pool of this view was destructed before it");
  return false;
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

/* Names the pages if the bytes alone would fit. */
static void record_maximum(umemVirtual *ctx, umemPoolFailure const *failure, size_t nbytes) {
  size_t maximum = umemPoolImpl_of(ctx)->core->maximum;
  bool fits = nbytes <= maximum - failure->reserved;
  umemVirtual_fail(
      ctx, umemMemoryError, "no room for %zu bytes: the pool holds %ju of at most %zu bytes%s",
      nbytes, (uintmax_t)failure->reserved, maximum, fits ? ", in whole pages of 4096 bytes" : "");
}
_Static_assert(umemPoolUnit == 4096, "as the message says");

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
    umemPoolBlock_record_held(ctx, &failure->attempt);
    break;
  }
}

static uintptr_t fail_wrong(umemVirtual *ctx, uintptr_t adr) {
  umemVirtual_fail(ctx, umemValueError, "%#" PRIxPTR " is not a live block of the pool", adr);
  return umem_null_of(ctx);
}

/* ---- large blocks ---- */

static uintptr_t alloc_large(umemVirtual *ctx, size_t size, size_t alignment) {
  umemPoolImpl const *impl = umemPoolImpl_of(ctx);
  umemPoolCore *core = impl->core;
  if (!umemPoolBlock_has_pool(ctx)) return umem_null_of(ctx);
  if (size > PTRDIFF_MAX / 2) {
    umemVirtual_fail(ctx, umemMemoryError, "%zu bytes exceed any memory", size);
    return umem_null_of(ctx);
  }
  if (alignment < core->alignment) alignment = core->alignment;
  umemPoolRequest request;
  request.list = impl->list;
  request.class = umemPoolClasses;
  request.size = size;
  request.alignment = alignment;
  umemLock_acquire(&core->lock);
  bool found = umemPoolRequest_find(&request);
  umemLock_release(&core->lock);
  if (found) return request.entry.adr;
  umemPoolBlock_record_failure(ctx, &request.failure, size);
  return umem_null_of(ctx);
}

static void free_large(umemVirtual *ctx, uintptr_t adr) {
  umemPoolImpl const *impl = umemPoolImpl_of(ctx);
  umemPoolCore *core = impl->core;
  if (!umemPoolBlock_has_pool(ctx)) return;
  umemAttempt held;
  umemAttempt_begin(&held);
  umemLock_acquire(&core->lock);
  umemStatusType status = umemPoolLarge_free(impl->list, adr);
  if (impl->list == core->own) umemPoolChunk_release_special(core);
  umemLock_release(&core->lock);
  umemAttempt_end(&held);
  umemPoolBlock_record_held(ctx, &held);
  if (status == umemValueError) fail_wrong(ctx, adr);
  if (status == umemMemoryError)
    umemVirtual_fail(ctx, umemMemoryError, "no memory for the records of the pool");
}

/* ---- small blocks ---- */

static uintptr_t made_live(umemPoolEntry const *entry) {
  if (entry->live) __atomic_store_n(entry->live, 1, __ATOMIC_RELAXED);
  return entry->adr;
}

static __attribute__((noinline)) uintptr_t refill(umemVirtual *ctx, unsigned class) {
  umemPoolImpl const *impl = umemPoolImpl_of(ctx);
  umemPoolCore *core = impl->core;
  if (!umemPoolBlock_has_pool(ctx)) return umem_null_of(ctx);
  umemPoolCache *cache = umemPoolCache_mine(impl->list);
  umemPoolEntry entry;
  if (cache && umemPoolCache_take(cache, impl->serial, class, &entry))
    return made_live(&entry); /* the thread has used another pool or view last */
  umemPoolSlot *slot = cache ? &cache->slots[class] : NULL;
  size_t size = core->shapes[class].size;
  umemPoolRequest request;
  request.list = impl->list;
  request.class = class;
  request.size = size;
  request.alignment = size & -size; /* blocks of a span are at multiples of it */
  umemLock_acquire(&core->lock);
  request.slot = slot && umemPoolCache_prepare(core, slot, class) ? slot : NULL;
  bool found = umemPoolRequest_find(&request);
  umemLock_release(&core->lock);
  if (found) return made_live(&request.entry);
  umemPoolBlock_record_failure(ctx, &request.failure, size);
  return umem_null_of(ctx);
}

static inline uintptr_t alloc_small(umemVirtual *ctx, umemPoolCache *cache, unsigned class) {
  umemPoolEntry entry;
  if (__builtin_expect(!umemPoolCache_take(cache, umemPoolImpl_of(ctx)->serial, class, &entry), 0))
    return refill(ctx, class);
  return made_live(&entry);
}

void umemPoolBlock_make_room(umemPoolFreeList *list, unsigned class, umemPoolEntry entry) {
  umemPoolCore *core = list->core;
  umemPoolCache *cache = umemPoolCache_mine(list);
  if (cache && umemPoolCache_keep(cache, list->serial, class, entry)) return;
  umemPoolSlot *slot = cache ? &cache->slots[class] : NULL;
  umemLock_acquire(&core->lock);
  if (slot && umemPoolCache_prepare(core, slot, class)) {
    if (umemPoolSlot_count(slot) == slot->limit) umemPoolCache_hand_over(list, class, slot);
    umemPoolSlot_push(slot, entry);
  } else {
    umemPoolSpan_put(list, &entry, 1);
  }
  umemLock_release(&core->lock);
}

/* Puts a block that is not live any more into the calling thread's cache. Not inlined, so that its
 * caller has no registers to save. */
static __attribute__((noinline)) void keep(umemVirtual *ctx, size_t class, umemPoolEntry entry) {
  umemPoolCache *cache = umemPoolCache_last();
  umemPoolImpl const *impl = umemPoolImpl_of(ctx);
  if (__builtin_expect(!umemPoolCache_keep(cache, impl->serial, class, entry), 0))
    umemPoolBlock_make_room(impl->list, (unsigned)class, entry);
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
    keep(ctx, location.word & umemPoolClassMask, (umemPoolEntry){adr, location.live});
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
  return alloc_small(ctx, cache, class);
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
  return alloc_small(ctx, cache, class);
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
  umemLock_acquire(&core->lock);
  uint64_t extent = umemPoolLarge_extent(core, adr);
  umemLock_release(&core->lock);
  return extent;
}

uintptr_t umemPoolBlock_aligned_origin(umemVirtual *ctx, uintptr_t adr) {
  return extent_of(umemPoolImpl_of(ctx)->core, adr) ? adr : fail_wrong(ctx, adr);
}

/* Whether a block of extent bytes may keep size bytes: unless more than half of it would be unused.
 * The smallest blocks keep any. */
static bool suits(umemPoolCore const *core, uint64_t extent, size_t size) {
  if (size > extent) return false;
  return size > extent / 2 || extent == core->shapes[core->class_of[1]].size;
}

uintptr_t umemPoolBlock_realloc(umemVirtual *ctx, uintptr_t adr, size_t old_size, size_t new_size) {
  umemPoolCore *core = umemPoolImpl_of(ctx)->core;
  uint64_t extent = extent_of(core, adr);
  if (!extent) return fail_wrong(ctx, adr);
  if (old_size > extent && !umem_has_size(ctx, adr, extent, old_size)) return umem_null_of(ctx);
  return suits(core, extent, new_size) ? adr : umem_move_block(ctx, adr, old_size, new_size);
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

/* The stream of the queue that a view was constructed with, which may be another than the
 * pool's. */
static uint64_t stream_of(umemVirtual *queue) {
  umemInfo info = UMEM_INFO_INIT;
  umem_get_info(queue, &info);
  return info.stream;
}

/* The upstream's figures, bounded by the maximum of the pool. */
void umemPoolBlock_info(umemVirtual *ctx, umemInfo *info) {
  umemPoolCore *core = umemPoolImpl_of(ctx)->core;
  if (!umemPoolBlock_has_pool(ctx)) return;
  umemAttempt held;
  uint64_t alignment = info->alignment;
  umemAttempt_begin(&held);
  umem_get_info(core->upstream, info);
  if (umemAdaptor_upstream(ctx) != core->upstream)
    info->stream = stream_of(umemAdaptor_upstream(ctx));
  umemAttempt_end(&held);
  info->alignment = alignment;
  umemPoolBlock_record_held(ctx, &held);
  if (umemAttempt_failed(&held)) return;
  umemPoolStats stats = UMEM_POOL_STATS_INIT;
  umemPoolCore_measure(core, &stats);
  if (info->available != UMEM_UNKNOWN) info->available += stats.reserved - stats.used;
  if (!core->maximum) return;
  if (info->capacity > core->maximum) info->capacity = core->maximum;
  uint64_t left = core->maximum - stats.used;
  if (info->available > left) info->available = left;
}
