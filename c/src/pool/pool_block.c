/* pool_block.c - blocks: the methods that pools and their views share. See umem_pool.h.
 *
 * A small block costs no lock: it comes from the calling thread's stack of its class, and goes there. */
#include "pool/pool.h"

#include <inttypes.h>

/* ---- failures; without the lock ---- */

bool umemPool_still_is(umemVirtual *ctx) {
  if (!__atomic_load_n(&umemPoolImpl_of(ctx)->core->ended, __ATOMIC_ACQUIRE)) return true;
  umemVirtual_fail(ctx, umemValueError, "the pool of this view was destructed before it");
  return false;
}

/* A view does not stand on what fails below its pool, or is another's queue: the failure is its own
 * then. */
void umemPool_tell_held(umemVirtual *ctx, umemAttempt const *held) {
  umemPoolImpl const *impl = umemPoolImpl_of(ctx);
  if (impl->lane == impl->core->own) {
    umemAdaptor_tell_held(ctx, held);
  } else if (umemAttempt_failed(held)) {
    umemAttempt mine = *held;
    mine.ctx = ctx;
    mine.adopter = NULL;
    umemAttempt_record(&mine);
  }
}

void umemPool_tell_lack(umemVirtual *ctx, umemPoolLack const *lack, size_t nbytes) {
  switch (lack->why) {
  case umemPoolMaximum:
    umemVirtual_fail(ctx, umemMemoryError,
                     "no room for %zu bytes: the pool holds %ju of at most %zu bytes", nbytes,
                     (uintmax_t)lack->reserved, umemPoolImpl_of(ctx)->core->maximum);
    break;
  case umemPoolBooks:
    umemVirtual_fail(ctx, umemMemoryError, "no memory for the books of the pool");
    break;
  case umemPoolCapture:
    umemVirtual_fail(ctx, umemNotSupportedError,
                     "no %zu bytes are free in the order of this stream, which is being captured "
                     "into a graph: others cannot be waited for",
                     nbytes);
    break;
  case umemPoolLanded: /* is looked for again */
  case umemPoolUpstream:
  case umemPoolOrder:
    umemPool_tell_held(ctx, &lack->attempt);
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
  if (!umemPool_still_is(ctx)) return umem_null_of(ctx);
  if (size > PTRDIFF_MAX / 2) {
    umemVirtual_fail(ctx, umemMemoryError, "%zu bytes exceed any memory", size);
    return umem_null_of(ctx);
  }
  if (alignment < core->alignment) alignment = core->alignment;
  umemPoolRequest request;
  request.lane = impl->lane;
  request.class = umemPoolClasses;
  request.size = size;
  request.alignment = alignment;
  umemLock_acquire(&core->lock);
  bool found = umemPool_find(&request);
  umemLock_release(&core->lock);
  if (found) return request.entry.adr;
  umemPool_tell_lack(ctx, &request.lack, size);
  return umem_null_of(ctx);
}

static void free_large(umemVirtual *ctx, uintptr_t adr) {
  umemPoolImpl const *impl = umemPoolImpl_of(ctx);
  umemPoolCore *core = impl->core;
  if (!umemPool_still_is(ctx)) return;
  umemAttempt held;
  umemAttempt_begin(&held);
  umemLock_acquire(&core->lock);
  umemStatusType status = umemPool_free_large(impl->lane, adr);
  if (impl->lane == core->own) umemPool_release_special_chunks(core);
  umemLock_release(&core->lock);
  umemAttempt_end(&held);
  umemPool_tell_held(ctx, &held);
  if (status == umemValueError) fail_wrong(ctx, adr);
  if (status == umemMemoryError)
    umemVirtual_fail(ctx, umemMemoryError, "no memory for the books of the pool");
}

/* ---- small blocks ---- */

static __attribute__((noinline)) uintptr_t refill(umemVirtual *ctx, unsigned class) {
  umemPoolImpl const *impl = umemPoolImpl_of(ctx);
  umemPoolCore *core = impl->core;
  if (!umemPool_still_is(ctx)) return umem_null_of(ctx);
  umemPoolCache *cache = umemPoolCache_mine(impl->lane);
  umemPoolSlot *slot = cache ? &cache->slots[class] : NULL;
  umemPoolEntry entry;
  if (slot && umemPoolSlot_pop(slot, &entry)) { /* the thread had used another pool or view last */
    __atomic_store_n(&slot->served, slot->served + 1, __ATOMIC_RELAXED);
    __atomic_store_n(entry.live, 1, __ATOMIC_RELAXED);
    return entry.adr;
  }
  size_t size = core->shapes[class].size;
  umemPoolRequest request;
  request.lane = impl->lane;
  request.class = class;
  request.slot = slot && umemPoolCache_prepare(core, slot, class) ? slot : NULL;
  request.size = size;
  request.alignment = size & -size; /* what the blocks of a span are multiples of */
  umemLock_acquire(&core->lock);
  bool found = umemPool_find(&request);
  if (found && request.entry.live) core->served++;
  umemLock_release(&core->lock);
  if (!found) {
    umemPool_tell_lack(ctx, &request.lack, size);
    return umem_null_of(ctx);
  }
  if (request.entry.live) __atomic_store_n(request.entry.live, 1, __ATOMIC_RELAXED);
  return request.entry.adr;
}

static inline uintptr_t alloc_small(umemVirtual *ctx, umemPoolImpl const *impl, unsigned class) {
  umemPoolCache *cache = umem_pool_last_cache;
  umemPoolSlot *slot = &cache->slots[class];
  uint32_t count = __atomic_load_n(&slot->count, __ATOMIC_RELAXED);
  if (__builtin_expect(cache->serial != impl->serial || !count, 0)) return refill(ctx, class);
  umemPoolEntry entry = slot->entries[count - 1];
  __atomic_store_n(&slot->count, count - 1, __ATOMIC_RELAXED);
  __atomic_store_n(&slot->served, slot->served + 1, __ATOMIC_RELAXED);
  __atomic_store_n(entry.live, 1, __ATOMIC_RELAXED);
  return entry.adr;
}

static __attribute__((noinline)) void make_room(umemPoolLane *lane, unsigned class,
                                                umemPoolEntry entry) {
  umemPoolCore *core = lane->core;
  umemPoolCache *cache = umemPoolCache_mine(lane);
  umemPoolSlot *slot = cache ? &cache->slots[class] : NULL;
  if (slot && !umemPoolCache_prepare(core, slot, class)) slot = NULL;
  if (slot && slot->count < slot->limit) {
    umemPoolSlot_push(slot, entry);
    return;
  }
  umemLock_acquire(&core->lock);
  if (slot)
    umemPool_hand_over(lane, class, slot);
  else
    umemPool_put(lane, &entry, 1);
  umemLock_release(&core->lock);
  if (slot) umemPoolSlot_push(slot, entry);
}

/* Makes the block at place no longer live. False when it was not, or place was overtaken by what other
 * threads have done to the span since: then nothing is changed. */
static inline bool claim(umemPoolPlace const *place) {
  unsigned char live = 1;
  if (!__atomic_compare_exchange_n(place->live, &live, 0, false, __ATOMIC_ACQ_REL,
                                   __ATOMIC_RELAXED))
    return false;
  if (__builtin_expect(umemPool_is_still(place), 1)) return true;
  __atomic_store_n(place->live, 1, __ATOMIC_RELEASE);
  return false;
}

/* ---- methods ---- */

void umemPoolBlock_free(umemVirtual *ctx, uintptr_t adr) {
  umemPoolImpl const *impl = umemPoolImpl_of(ctx);
  umemPoolPlace place;
  if (__builtin_expect(!umemPool_locate(impl->core, adr, &place), 0)) {
    free_large(ctx, adr);
    return;
  }
  if (__builtin_expect(!claim(&place), 0)) {
    fail_wrong(ctx, adr);
    return;
  }
  umemPoolEntry entry = {adr, place.live};
  umemPoolCache *cache = umem_pool_last_cache;
  umemPoolSlot *slot = &cache->slots[umemPoolClass_of(place.word)];
  if (__builtin_expect(cache->serial == impl->serial && slot->count < slot->limit, 1))
    umemPoolSlot_push(slot, entry);
  else
    make_room(impl->lane, umemPoolClass_of(place.word), entry);
}

uintptr_t umemPoolBlock_alloc(umemVirtual *ctx, size_t nbytes) {
  umemPoolImpl const *impl = umemPoolImpl_of(ctx);
  umemPoolCore const *core = impl->core;
  if (__builtin_expect(nbytes > umemPoolSmall, 0)) return alloc_large(ctx, nbytes, umemPoolUnit);
  unsigned class = core->class_of[(nbytes + umemPoolGrain - 1) / umemPoolGrain];
  if (__builtin_expect(class == umemPoolClasses, 0)) return alloc_large(ctx, nbytes, umemPoolUnit);
  return alloc_small(ctx, impl, class);
}

/* The smallest class whose blocks are all at multiples of alignment: one of the next powers of two at
 * the latest. */
uintptr_t umemPoolBlock_aligned_alloc(umemVirtual *ctx, size_t alignment, size_t size) {
  umemPoolImpl const *impl = umemPoolImpl_of(ctx);
  umemPoolCore const *core = impl->core;
  if (alignment <= core->alignment) return umemPoolBlock_alloc(ctx, size);
  if (size > umemPoolSmall || alignment > umemPoolSmall) return alloc_large(ctx, size, alignment);
  size_t least = size > alignment ? size : alignment;
  unsigned class = core->class_of[(least + umemPoolGrain - 1) / umemPoolGrain];
  while (class < umemPoolClasses && core->shapes[class].size % alignment) class += 1;
  if (class == umemPoolClasses) return alloc_large(ctx, size, alignment);
  return alloc_small(ctx, impl, class);
}

/* The bytes that the live block at adr has, more or less than were asked for; 0 when there is none. */
static uint64_t extent_of(umemPoolCore *core, uintptr_t adr) {
  umemPoolPlace place;
  if (umemPool_locate(core, adr, &place))
    return __atomic_load_n(place.live, __ATOMIC_ACQUIRE)
               ? core->shapes[umemPoolClass_of(place.word)].size
               : 0;
  if (__atomic_load_n(&core->ended, __ATOMIC_ACQUIRE)) return 0;
  umemLock_acquire(&core->lock);
  uint64_t extent = umemPool_large_extent(core, adr);
  umemLock_release(&core->lock);
  return extent;
}

uintptr_t umemPoolBlock_aligned_origin(umemVirtual *ctx, uintptr_t adr) {
  return extent_of(umemPoolImpl_of(ctx)->core, adr) ? adr : fail_wrong(ctx, adr);
}

/* In place unless more than half of the block would lie idle. */
uintptr_t umemPoolBlock_realloc(umemVirtual *ctx, uintptr_t adr, size_t old_size, size_t new_size) {
  umemPoolCore *core = umemPoolImpl_of(ctx)->core;
  uint64_t extent = extent_of(core, adr), least = core->shapes[core->class_of[1]].size;
  if (!extent) return fail_wrong(ctx, adr);
  if (!umem_has_size(ctx, adr, extent, old_size)) return umem_null_of(ctx);
  if (new_size <= extent && (new_size > extent / 2 || extent == least)) return adr;
  return umem_move_block(ctx, adr, old_size, new_size);
}

/* The stream of the queue that a view was constructed with, which may be another than the pool's. */
static uint64_t stream_of(umemVirtual *queue) {
  umemInfo info = UMEM_INFO_INIT;
  umem_get_info(queue, &info);
  return info.stream;
}

/* The upstream's, as far as the pool lets it be used. */
void umemPoolBlock_info(umemVirtual *ctx, umemInfo *info) {
  umemPoolCore *core = umemPoolImpl_of(ctx)->core;
  if (!umemPool_still_is(ctx)) return;
  umemAttempt held;
  uint64_t alignment = info->alignment;
  umemAttempt_begin(&held);
  umem_get_info(core->upstream, info);
  if (umemAdaptor_upstream(ctx) != core->upstream)
    info->stream = stream_of(umemAdaptor_upstream(ctx));
  umemAttempt_end(&held);
  info->alignment = alignment;
  umemPool_tell_held(ctx, &held);
  if (umemAttempt_failed(&held)) return;
  umemPoolStats stats = UMEM_POOL_STATS_INIT;
  umemPool_measure(core, &stats);
  if (info->available != UMEM_UNKNOWN) info->available += stats.reserved - stats.used;
  if (!core->maximum) return;
  if (info->capacity > core->maximum) info->capacity = core->maximum;
  uint64_t left = core->maximum - stats.used;
  if (info->available > left) info->available = left;
}
