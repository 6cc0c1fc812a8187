/* umem_pool.c - the context of a pool. See umem_pool.h for what it is made of.
 *
 * A small block costs no lock: it comes from the calling thread's stack of its class, and goes there. */
#include "umem_pool.h"

#include "umem_adaptor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct PoolImpl {
  umemAdaptor adaptor;
  umemPoolCore *core; /* a share of it */
} PoolImpl;

static inline umemPoolCore *core_of(umemVirtual *ctx) {
  return ((PoolImpl *)((umemPool *)ctx)->impl)->core;
}

/* ---- failures; without the lock ---- */

static void tell_lack(umemVirtual *ctx, umemPoolLack const *lack, size_t nbytes) {
  umemPoolCore *core = core_of(ctx);
  uint64_t before = umem_thread.failures;
  if (lack->why == umemPoolMaximum)
    umemVirtual_fail(ctx, umemMemoryError,
                     "no room for %zu bytes: the pool holds %ju of at most %zu bytes", nbytes,
                     (uintmax_t)lack->reserved, core->maximum);
  else if (lack->why == umemPoolBooks)
    umemVirtual_fail(ctx, umemMemoryError, "no memory for the books of the pool");
  else if (umemAttempt_record(&lack->attempt) != umemOK)
    umemVirtual_adopt(ctx, before);
}

/* Records what was held while the lock was. */
static void tell_held(umemVirtual *ctx, umemAttempt const *held) {
  uint64_t before = umem_thread.failures;
  if (umemAttempt_record(held) != umemOK) umemVirtual_adopt(ctx, before);
}

static uintptr_t fail_wrong(umemVirtual *ctx, uintptr_t adr) {
  umemVirtual_fail(ctx, umemValueError, "%#" PRIxPTR " is not a live block of the pool", adr);
  return umem_null_of(ctx);
}

/* ---- what is given back ---- */

/* Makes room for a second try, where memory is what is lacking: gives back all that is not used, but what
 * other threads keep. False where a second try is useless. */
static bool reclaim(umemPoolCore *core, umemPoolLack const *lack) {
  if (lack->why == umemPoolBooks) return false;
  if (lack->why == umemPoolUpstream && lack->attempt.type != umemMemoryError) return false;
  umemAttempt forgotten;
  umemAttempt_begin(&forgotten);
  umemPool_drain(core);
  umemPool_join_waiting(core);
  umemPool_release_chunks(core, 0);
  umemAttempt_end(&forgotten);
  return true;
}

static void pool_trim(umemVirtual *ctx, size_t keep) {
  umemPoolCore *core = core_of(ctx);
  umemAttempt held;
  umemLock_acquire(&core->lock);
  umemAttempt_begin(&held);
  umemPool_drain(core);
  umemPool_join_waiting(core);
  umemPool_release_chunks(core, keep);
  umemAttempt_end(&held);
  umemLock_release(&core->lock);
  tell_held(ctx, &held);
  uint64_t before = umem_thread.failures;
  umem_trim(core->upstream, keep);
  umemAdaptor_failed(ctx, before);
}

/* ---- large blocks ---- */

static uintptr_t alloc_large(umemVirtual *ctx, size_t size, size_t alignment) {
  umemPoolCore *core = core_of(ctx);
  if (size > PTRDIFF_MAX / 2) {
    umemVirtual_fail(ctx, umemMemoryError, "%zu bytes exceed any memory", size);
    return umem_null_of(ctx);
  }
  if (alignment < core->alignment) alignment = core->alignment;
  uintptr_t adr;
  umemPoolLack lack;
  umemLock_acquire(&core->lock);
  bool found = umemPool_alloc_large(core, size, alignment, &adr, &lack);
  if (!found && reclaim(core, &lack))
    found = umemPool_alloc_large(core, size, alignment, &adr, &lack);
  umemLock_release(&core->lock);
  if (found) return adr;
  tell_lack(ctx, &lack, size);
  return umem_null_of(ctx);
}

static void free_large(umemVirtual *ctx, uintptr_t adr) {
  umemPoolCore *core = core_of(ctx);
  umemAttempt held;
  umemAttempt_begin(&held);
  umemLock_acquire(&core->lock);
  bool freed = umemPool_free_large(core, adr);
  umemPool_release_special_chunks(core);
  umemLock_release(&core->lock);
  umemAttempt_end(&held);
  tell_held(ctx, &held);
  if (!freed) fail_wrong(ctx, adr);
}

/* ---- small blocks ---- */

static bool pop(umemPoolSlot *slot, umemPoolEntry *entry) {
  if (!slot || !slot->count) return false;
  uint32_t count = slot->count - 1;
  __atomic_store_n(&slot->count, count, __ATOMIC_RELAXED);
  *entry = slot->entries[count];
  return true;
}

/* A block of class, whose slot is empty (NULL: cannot be had) and gets more of them. While a span is
 * added, a function that the upstream calls may have freed blocks to the slot; but a new span must not
 * stay without a live block, as it goes back when its last one is freed. */
static bool find_small(umemPoolCore *core, unsigned class, umemPoolSlot *slot, umemPoolEntry *entry,
                       umemPoolLack *lack) {
  if (slot && umemPool_fetch(core, class, slot)) return pop(slot, entry);
  if (!core->classes[class].spans && !umemPool_add_span(core, class, lack)) return false;
  if (!slot || slot->count) return umemPool_take(core, class, entry, 1) == 1;
  uint32_t count = umemPool_take(core, class, slot->entries, core->shapes[class].batch);
  __atomic_store_n(&slot->count, count, __ATOMIC_RELAXED);
  return pop(slot, entry);
}

/* Where there is no room for a span there may be some for a block alone, at what the blocks of a span
 * are multiples of. */
static bool find_any(umemPoolCore *core, unsigned class, umemPoolSlot *slot, umemPoolEntry *entry,
                     umemPoolLack *lack) {
  if (find_small(core, class, slot, entry, lack)) return true;
  entry->live = NULL;
  size_t size = core->shapes[class].size;
  return umemPool_alloc_large(core, size, size & -size, &entry->adr, lack);
}

static __attribute__((noinline)) uintptr_t refill(umemVirtual *ctx, unsigned class) {
  umemPoolCore *core = core_of(ctx);
  umemPoolCache *cache = umemPoolCache_mine(core);
  umemPoolSlot *slot = cache ? &cache->slots[class] : NULL;
  umemPoolEntry entry;
  if (pop(slot, &entry)) { /* the thread had used another pool last */
    __atomic_store_n(&slot->served, slot->served + 1, __ATOMIC_RELAXED);
    __atomic_store_n(entry.live, 1, __ATOMIC_RELAXED);
    return entry.adr;
  }
  if (slot && !umemPoolCache_prepare(core, slot, class)) slot = NULL;
  umemPoolLack lack;
  umemLock_acquire(&core->lock);
  bool found = find_any(core, class, slot, &entry, &lack);
  if (!found && reclaim(core, &lack)) found = find_any(core, class, slot, &entry, &lack);
  if (found && entry.live) core->served++;
  umemLock_release(&core->lock);
  if (!found) {
    tell_lack(ctx, &lack, core->shapes[class].size);
    return umem_null_of(ctx);
  }
  if (entry.live) __atomic_store_n(entry.live, 1, __ATOMIC_RELAXED);
  return entry.adr;
}

static inline uintptr_t alloc_small(umemVirtual *ctx, umemPoolCore *core, unsigned class) {
  umemPoolCache *cache = umem_pool_last_cache;
  umemPoolSlot *slot = &cache->slots[class];
  uint32_t count = __atomic_load_n(&slot->count, __ATOMIC_RELAXED);
  if (__builtin_expect(cache->serial != core->serial || !count, 0)) return refill(ctx, class);
  umemPoolEntry entry = slot->entries[count - 1];
  __atomic_store_n(&slot->count, count - 1, __ATOMIC_RELAXED);
  __atomic_store_n(&slot->served, slot->served + 1, __ATOMIC_RELAXED);
  __atomic_store_n(entry.live, 1, __ATOMIC_RELAXED);
  return entry.adr;
}

static __attribute__((noinline)) void make_room(umemPoolCore *core, unsigned class,
                                                umemPoolEntry entry) {
  umemPoolCache *cache = umemPoolCache_mine(core);
  umemPoolSlot *slot = cache ? &cache->slots[class] : NULL;
  if (slot && !umemPoolCache_prepare(core, slot, class)) slot = NULL;
  if (slot && slot->count < slot->limit) {
    umemPoolSlot_push(slot, entry);
    return;
  }
  umemLock_acquire(&core->lock);
  if (slot)
    umemPool_hand_over(core, class, slot);
  else
    umemPool_put(core, &entry, 1);
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

static void pool_free(umemVirtual *ctx, uintptr_t adr) {
  umemPoolCore *core = core_of(ctx);
  umemPoolPlace place;
  if (__builtin_expect(!umemPool_locate(core, adr, &place), 0)) {
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
  if (__builtin_expect(cache->serial == core->serial && slot->count < slot->limit, 1))
    umemPoolSlot_push(slot, entry);
  else
    make_room(core, umemPoolClass_of(place.word), entry);
}

static uintptr_t pool_alloc(umemVirtual *ctx, size_t nbytes) {
  umemPoolCore *core = core_of(ctx);
  if (__builtin_expect(nbytes > umemPoolSmall, 0)) return alloc_large(ctx, nbytes, umemPoolUnit);
  unsigned class = core->class_of[(nbytes + umemPoolGrain - 1) / umemPoolGrain];
  if (__builtin_expect(class == umemPoolClasses, 0)) return alloc_large(ctx, nbytes, umemPoolUnit);
  return alloc_small(ctx, core, class);
}

/* The smallest class whose blocks are all at multiples of alignment: one of the next powers of two at
 * the latest. */
static uintptr_t pool_aligned_alloc(umemVirtual *ctx, size_t alignment, size_t size) {
  umemPoolCore *core = core_of(ctx);
  if (alignment <= core->alignment) return pool_alloc(ctx, size);
  if (size > umemPoolSmall || alignment > umemPoolSmall) return alloc_large(ctx, size, alignment);
  size_t least = size > alignment ? size : alignment;
  unsigned class = core->class_of[(least + umemPoolGrain - 1) / umemPoolGrain];
  while (class < umemPoolClasses && core->shapes[class].size % alignment) class += 1;
  if (class == umemPoolClasses) return alloc_large(ctx, size, alignment);
  return alloc_small(ctx, core, class);
}

/* The bytes that the live block at adr has, more or less than were asked for; 0 when there is none. */
static uint64_t extent_of(umemPoolCore *core, uintptr_t adr) {
  umemPoolPlace place;
  if (umemPool_locate(core, adr, &place))
    return __atomic_load_n(place.live, __ATOMIC_ACQUIRE)
               ? core->shapes[umemPoolClass_of(place.word)].size
               : 0;
  umemLock_acquire(&core->lock);
  uint64_t extent = umemPool_large_extent(core, adr);
  umemLock_release(&core->lock);
  return extent;
}

static uintptr_t pool_aligned_origin(umemVirtual *ctx, uintptr_t adr) {
  return extent_of(core_of(ctx), adr) ? adr : fail_wrong(ctx, adr);
}

/* In place unless more than half of the block would lie idle. */
static uintptr_t pool_realloc(umemVirtual *ctx, uintptr_t adr, size_t old_size, size_t new_size) {
  umemPoolCore *core = core_of(ctx);
  uint64_t extent = extent_of(core, adr), least = core->shapes[core->class_of[1]].size;
  if (!extent) return fail_wrong(ctx, adr);
  if (new_size <= extent && (new_size > extent / 2 || extent == least)) return adr;
  return umem_move_block(ctx, adr, old_size < extent ? old_size : (size_t)extent, new_size);
}

/* The upstream's, as far as the pool lets it be used. */
static void pool_info(umemVirtual *ctx, umemInfo *info) {
  umemPoolCore *core = core_of(ctx);
  uint64_t before = umem_thread.failures;
  uint64_t alignment = info->alignment;
  umem_get_info(core->upstream, info);
  info->alignment = alignment;
  if (umemAdaptor_failed(ctx, before)) return;
  umemPoolStats stats = UMEM_POOL_STATS_INIT;
  umemPool_measure(core, &stats);
  if (info->available != UMEM_UNKNOWN) info->available += stats.reserved - stats.used;
  if (!core->maximum) return;
  if (info->capacity > core->maximum) info->capacity = core->maximum;
  uint64_t left = core->maximum - stats.used;
  if (info->available > left) info->available = left;
}

/* ---- construction and end ---- */

static void free_batches(umemPoolBatch *batch) {
  while (batch) {
    umemPoolBatch *next = batch->next;
    free(batch);
    batch = next;
  }
}

static void free_core(umemPoolCore *core) {
  umemPool_end_caches(core);
  for (unsigned i = 0; i < umemPoolClasses; i++) free_batches(core->classes[i].depot);
  free_batches(core->empty_batches);
  umemPool_end_spans(core);
  umemPool_end_chunks(core);
  umemPageMap_fini(&core->map);
  umemPoolCore_drop(core);
  umemPoolCore_bury();
}

static void pool_dtor(umemVirtual *ctx) {
  uint64_t before = umem_thread.failures;
  free_core(core_of(ctx));
  umemAdaptor_failed(ctx, before);
  umemAdaptor_dtor(ctx);
}

static struct umemVtbl const pool_vtbl = {
    .dtor = pool_dtor,
    .alloc = pool_alloc,
    .free = pool_free,
    .aligned_alloc = pool_aligned_alloc,
    .aligned_origin = pool_aligned_origin,
    .aligned_free = pool_free,
    .trim = pool_trim,
    .info = pool_info,
    .realloc = pool_realloc,
    .upstream = umemAdaptor_upstream_method,
    UMEM_ADAPTOR_BYTES,
    UMEM_ADAPTOR_ORDER,
};

/* NULL without memory. */
static umemPoolCore *new_core(umemVirtual *upstream, umemPoolOptions const *options) {
  static uint64_t last_serial;
  umemPoolCore *core = calloc(1, sizeof *core);
  if (!core) return NULL;
  umemLock_init(&core->lock);
  core->serial = __atomic_add_fetch(&last_serial, 1, __ATOMIC_RELAXED);
  core->shares = 1;
  core->upstream = upstream;
  core->alignment = upstream->alignment > umemPoolGrain ? upstream->alignment : umemPoolGrain;
  core->growth = options->growth;
  core->maximum = options->maximum;
  umemPool_init_classes(core);
  core->range = umemRange_create(1);
  if (core->range && umemPageMap_init(&core->map)) return core;
  free_core(core);
  return NULL;
}

/* The caller's options in full; false, and a status on ctx, when they cannot be true. */
static bool read_options(void *ctx, umemPoolOptions const *given, umemPoolOptions *options) {
  *options = (umemPoolOptions)UMEM_POOL_OPTIONS_INIT;
  if (!given) return true;
  if (given->size < sizeof given->size) {
    umemVirtual_fail(ctx, umemValueError, "options->size is %zu: too small", given->size);
    return false;
  }
  memcpy(options, given, given->size < sizeof *options ? given->size : sizeof *options);
  if (!options->maximum || options->initial <= options->maximum) return true;
  umemVirtual_fail(ctx, umemValueError, "initial bytes (%zu) exceed the maximum (%zu)",
                   options->initial, options->maximum);
  return false;
}

static bool take_initial(umemVirtual *ctx, umemPoolCore *core, umemPoolOptions const *options) {
  if (!options->initial) return true;
  umemPoolLack lack = {.why = umemPoolMaximum, .reserved = 0};
  size_t most = core->maximum ? core->maximum & ~(size_t)(umemPoolUnit - 1) : PTRDIFF_MAX / 2;
  size_t size = options->initial < most
                    ? (options->initial + umemPoolUnit - 1) & ~(size_t)(umemPoolUnit - 1)
                    : most;
  umemLock_acquire(&core->lock);
  bool taken = size && umemPool_add_chunk(core, size, umemPoolPage, &lack);
  umemLock_release(&core->lock);
  if (!taken) tell_lack(ctx, &lack, options->initial);
  return taken;
}

static umemStatusType construct(umemPool *ctx, void *upstream, umemPoolOptions const *given,
                                bool adopts) {
  uint64_t before = umem_thread.failures;
  PoolImpl *impl =
      umemAdaptor_construct(ctx, upstream, adopts, &pool_vtbl, "Pool", sizeof(PoolImpl));
  if (!impl) return umem_result(before);
  umemPoolOptions options;
  if (read_options(ctx, given, &options)) {
    impl->core = new_core(upstream, &options);
    if (!impl->core) {
      umemVirtual_fail(ctx, umemMemoryError, "no memory for the books of the pool");
    } else {
      ctx->super.alignment = impl->core->alignment;
      if (take_initial(&ctx->super, impl->core, &options)) return umemOK;
      free_core(impl->core);
    }
  }
  umemAdaptor_abandon(&ctx->super);
  return umem_result(before);
}

umemStatusType umemPool_ctor(umemPool *ctx, void *upstream, umemPoolOptions const *options) {
  UMEM_ENTER();
  return construct(ctx, upstream, options, false);
}

umemStatusType umemPool_adopt(umemPool *ctx, void *upstream, umemPoolOptions const *options) {
  UMEM_ENTER();
  return construct(ctx, upstream, options, true);
}

/* ---- questions ---- */

umemStatusType umemPool_stats(umemPool *ctx, umemPoolStats *stats) {
  UMEM_ENTER();
  uint64_t before = umem_thread.failures;
  if (!umem_guard(ctx)) return umem_result(before);
  if (ctx->super.vptr != &pool_vtbl)
    return umemVirtual_fail(ctx, umemTypeError, "this %s is no pool", umem_get_device_name(ctx));
  if (!stats) return umemVirtual_fail(ctx, umemValueError, "stats is NULL");
  size_t size = stats->size;
  if (size < offsetof(umemPoolStats, used_peak))
    return umemVirtual_fail(ctx, umemValueError,
                            "stats->size is %zu: set it to sizeof(umemPoolStats) before the call",
                            size);
  umemPoolStats known = UMEM_POOL_STATS_INIT;
  umemPool_measure(core_of(&ctx->super), &known);
  memcpy(stats, &known, size < sizeof known ? size : sizeof known);
  stats->size = size;
  return umemOK;
}
