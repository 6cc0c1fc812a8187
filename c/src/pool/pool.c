/* pool.c - the contexts of a pool and of a view: options, trim, and how their free lists begin
 * and end.
 *
 * A view is a free list of a pool and its queue. A list whose view has ended is kept, because
 * live blocks may be ranges of it, and serves the next view. */
#include "pool/pool_cache.h"
#include "pool/pool_grow.h"

#include <umem/pool_on.h>

#include <stdlib.h>

/* ---- free lists; under the lock ---- */

/* A number that no other list has, as long as there is one. */
static unsigned new_number(umemPoolCore const *core, uint64_t serial) {
  uint64_t taken = 0;
  for (umemPoolFreeList *list = core->lists; list; list = list->next)
    if (list->in_use || list->unusable) taken |= umemPoolQueue_bit(list);
  return ~taken ? (unsigned)__builtin_ctzll(~taken) : (unsigned)(serial % 64);
}

/* Whether the list can serve another view. One that has ended holds nothing but ranges of live
 * blocks; when no RAM was left, it may hold more. */
static bool is_vacant(umemPoolFreeList const *list) {
  return !list->in_use && !list->unusable && !umemPoolQueue_has_users(list) && !list->quick_units &&
         !umemRange_totals(list->range).free_count;
}

static umemPoolFreeList *add_list(umemPoolCore *core) {
  umemPoolFreeList *list = calloc(1, sizeof *list);
  if (list) list->range = umemRange_create(1);
  if (list && list->range) umemRange_fit_tightly(list->range, 0);
  if (!list || !list->range) {
    free(list);
    return NULL;
  }
  list->core = core;
  list->next = core->lists;
  core->lists = list;
  return list;
}

/* A free list in the order of queue, for view, or NULL for the pool. Returns NULL without memory,
 * or when queue is not constructed. */
static umemPoolFreeList *new_list(umemPoolCore *core, umemVirtual *queue, umemVirtual const *view) {
  static uint64_t last_serial;
  uint64_t before = umem_thread.failures;
  umemVirtual *innermost = umem_innermost(queue);
  if (umem_thread.failures != before) return NULL;
  umemPoolFreeList *list = core->lists;
  while (list && !is_vacant(list)) list = list->next;
  if (!list) list = add_list(core);
  if (!list) return NULL;
  list->serial = __atomic_add_fetch(&last_serial, 1, __ATOMIC_RELAXED);
  list->number = new_number(core, list->serial);
  list->queue = queue;
  list->innermost = innermost;
  list->view = view;
  list->in_use = true;
  list->ending = false;
  umemPoolMark_begin(list);
  return list;
}

/* Whether another list that blocks may belong to has this bit. */
static bool shares_bit(umemPoolFreeList const *list) {
  for (umemPoolFreeList *other = list->core->lists; other; other = other->next)
    if (other != list && (other->in_use || other->unusable) && other->number == list->number)
      return true;
  return false;
}

/* In mixed spans: what was freed in the order of list is now in the order of the pool's own. */
static void replace_bit(umemPoolFreeList *list) {
  uint64_t bit = umemPoolQueue_bit(list), kept = shares_bit(list) ? bit : 0;
  for (unsigned i = 0; i < umemPoolClasses; i++)
    for (umemPoolSpan *span = list->core->classes[i].mixed; span; span = span->after)
      if (span->queues & bit)
        span->queues = (span->queues & ~bit) | kept | umemPoolQueue_bit(list->core->own);
}

/* Orders the pool's own list after this one. If the upstream cannot wait, that is needless once the
 * work is complete. That is tried twice: work that has failed is complete as well, and reports its
 * failure once. */
static bool finish_list(umemPoolFreeList *list) {
  umemPoolFreeList *own = list->core->own;
  if (umemPoolQueue_is_blocked(list))
    return UMEM_FAIL(NULL, umemNotSupportedError,
                     "the stream is being captured into a graph: what is free in its order is "
                     "out of use until the pool ends");
  if (umemPoolQueue_is_ordered(own) && !umemPoolQueue_is_blocked(own)) {
    UMEM_FORGETTING();
    if (umemPoolMark_set(list) && umemPoolQueue_follow(own, list)) return true;
  }
  umemLock_release(&list->core->lock);
  bool finished = umem_synchronize_uncaptured(list->queue) == umemOK;
  if (!finished) finished = umem_synchronize_uncaptured(list->queue) == umemOK;
  umemLock_acquire(&list->core->lock);
  return finished;
}

/* When a view ends: moves the free memory of its list to the pool's own list. If no queue can wait
 * for the queue of the view, it records a failure, and this memory is not used again. Releases the
 * lock for some time. An attempt must be open. */
static void end_list(umemPoolFreeList *list) {
  umemPoolCore *core = list->core;
  list->ending = true;
  umemPoolCache_end_all(list);
  umemPoolCache_drain(list);
  umemPoolLarge_coalesce(list);
  bool finished = finish_list(list);
  umemPoolQueue_await_users(list);
  umemPoolMark_end(list);
  list->view = NULL;
  list->in_use = false;
  list->unusable = !finished;
  list->queue = core->own->queue;
  list->innermost = core->own->innermost;
  if (!finished) return;
  list->ending = false;
  replace_bit(list);
  umemPoolTransfer_at_end(core->own, list);
}

/* When the pool ends. The lists themselves go with the core: views that have outlived the pool hold
 * them. */
static void end_all_lists(umemPoolCore *core) {
  for (umemPoolFreeList *list = core->lists; list; list = list->next) {
    umemPoolCache_end_all(list);
    umemPoolQueue_await_users(list);
    umemPoolMark_end(list);
  }
  umemPoolCache_free_batches(core);
  for (umemPoolFreeList *list = core->lists; list; list = list->next) {
    umemRange_destroy(list->range);
    list->range = NULL;
  }
}

/* ---- what both contexts say ---- */

/* The stream of the queue that a view was constructed with, which may be another than the
 * pool's. */
static uint64_t stream_of(umemVirtual *queue) {
  umemInfo info = UMEM_INFO_INIT;
  umem_get_info(queue, &info);
  return info.stream;
}

/* The upstream's figures, bounded by the maximum of the pool. */
static void pool_info(umemVirtual *ctx, umemInfo *info) {
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
  umemLock_acquire(&core->lock);
  umemPoolReport_measure(core, &stats);
  umemLock_release(&core->lock);
  if (info->available != UMEM_UNKNOWN) info->available += stats.reserved - stats.used;
  if (!core->maximum) return;
  if (info->capacity > core->maximum) info->capacity = core->maximum;
  uint64_t left = core->maximum - stats.used;
  if (info->available > left) info->available = left;
}

/* ---- trim of a pool ---- */

/* First what is free for other queues moves to the pool's own list, if any chunk can go back. */
static void pool_trim(umemVirtual *ctx, size_t keep) {
  umemPoolCore *core = umemPoolImpl_of(ctx)->core;
  umemPoolFreeList *own = core->own;
  umemAttempt held;
  umemPoolBlock_lock(ctx, &held);
  umemPoolCache_drain(own);
  if (core->reserved > keep) umemPoolCache_drain_threads(core, NULL);
  umemPoolLarge_coalesce(own);
  if (umemPoolFreeList_has_others(own) && core->reserved > keep && !umemPoolQueue_is_blocked(own))
    umemPoolTransfer_all(own);
  if (core->reserved > keep) umemPoolMark_want(own, umemPoolWantThreads);
  umemPoolChunk_release(core, keep);
  umemPoolPages_release(core, keep);
  umemPoolBlock_unlock(ctx, &held);
  UMEM_ADAPTOR_RECORDS(ctx);
  umem_trim(core->upstream, keep);
}

/* ---- construction and end of a pool ---- */

/* Views that outlive the pool find no block in the map, and then that the pool has ended. */
static void end_core(umemPoolCore *core) {
  umemLock_acquire(&core->lock);
  __atomic_store_n(&core->ended, true, __ATOMIC_RELEASE);
  end_all_lists(core);
  umemLock_release(&core->lock);
  umemPoolCore_free_slabs(core);
  umemPoolPages_end(core);
  umemPoolChunk_end_all(core);
  if (core->map.leaves) umemPageMap_clear(&core->map);
  umemPoolCore_release(core);
  umemPoolCore_free_released();
}

static void pool_dtor(umemVirtual *ctx) {
  uint64_t before = umem_thread.failures;
  umemAdaptor_unlist(ctx);
  end_core(umemPoolImpl_of(ctx)->core);
  umemAdaptor_failed(ctx, before);
  umemAdaptor_dtor(ctx);
}

static bool pool_usage(umemVirtual *ctx, umemUsage *usage) {
  umemPoolCore *core = umemPoolImpl_of(ctx)->core;
  umemPoolStats stats = UMEM_POOL_STATS_INIT;
  if (!umemLock_try(&core->lock)) return false;
  umemPoolReport_measure(core, &stats);
  umemLock_release(&core->lock);
  usage->nbytes = stats.used;
  usage->peak = stats.used_peak;
  return true;
}

static struct umemVtbl const pool_vtbl = {
    .usage = pool_usage,
    .dtor = pool_dtor,
    .trim = pool_trim,
    .info = pool_info,
    UMEM_POOL_METHODS,
};

/* NULL without memory. */
static umemPoolCore *new_core(umemVirtual *upstream, umemPoolOptions const *options) {
  umemPoolCore *core = calloc(1, sizeof *core);
  if (!core) return NULL;
  umemLock_init(&core->lock);
  pthread_cond_init(&core->no_users, NULL);
  core->condition_lineage = umem_fork_count();
  umemGrowth_init(&core->growing);
  core->references = 1;
  core->upstream = upstream;
  core->alignment = upstream->alignment > umemPoolGrain ? upstream->alignment : umemPoolGrain;
  core->initial = options->initial;
  core->growth = options->growth;
  core->maximum = options->maximum;
  core->spare = options->spare;
  core->zeroing = UMEM_LAYER_WITH(upstream, zero_pages);
  if (options->memory == umemPoolPages) umemPoolPages_init(core);
  umemPoolChunk_init(core);
  umemPoolSpan_init_classes(core);
  core->mark_time = 2;
  core->own = new_list(core, upstream, NULL);
  if (core->own && umemPageMap_init(&core->map)) return core;
  end_core(core);
  return NULL;
}

static bool take_initial(umemVirtual *ctx, umemPoolCore *core, umemPoolOptions const *options) {
  if (!options->initial) return true;
  umemPoolFailure failure = {.reason = umemPoolAtMaximum, .reserved = 0};
  size_t most = core->maximum ? core->maximum & ~(size_t)(umemPoolUnit - 1) : PTRDIFF_MAX / 2;
  size_t rounded = (size_t)umemPoolUnits_of(options->initial) << umemPoolUnitShift;
  size_t size = options->initial < most ? rounded : most;
  umemLock_acquire(&core->lock);
  bool taken =
      size && umemPoolPages_suit(core->own, umemPoolPage) &&
      umemPoolPages_grow(core->own, size, umemPoolPage, (umemPoolExtra){0, 0, false}, &failure);
  if (!taken && size)
    taken =
        umemPoolChunk_add(core->own, size, umemPoolPage, (umemPoolChunkUse){true, false}, &failure);
  umemLock_release(&core->lock);
  if (!taken) umemPoolBlock_record_failure(ctx, &failure, options->initial);
  return taken;
}

static bool check_options(umemVirtual *ctx, umemPoolOptions const *options) {
  if (options->memory != umemPoolPages && options->memory != umemPoolChunks)
    return UMEM_FAIL(ctx, umemValueError,
                     "memory is %d: it must be umemPoolPages or umemPoolChunks",
                     (int)options->memory);
  if (options->spare > umemPoolSpareMost)
    return UMEM_FAIL(ctx, umemValueError, "spare is %zu percent: at most %d are possible",
                     options->spare, umemPoolSpareMost);
  if (!options->maximum || options->initial <= options->maximum) return true;
  return UMEM_FAIL(ctx, umemValueError, "initial bytes (%zu) exceed the maximum (%zu)",
                   options->initial, options->maximum);
}

static bool pool_start(umemVirtual *ctx, void const *options) {
  umemPoolImpl *impl = umemPoolImpl_of(ctx);
  if (!check_options(ctx, options)) return false;
  impl->core = new_core(umemAdaptor_upstream(ctx), options);
  if (!impl->core) return UMEM_FAIL(ctx, umemMemoryError, "no memory for the records of the pool");
  impl->list = impl->core->own;
  impl->serial = impl->list->serial;
  ctx->alignment = impl->core->alignment;
  ctx->capabilities |= umemPromptBlocks;
  bool taken = take_initial(ctx, impl->core, options);
  if (taken)
    umemPoolQuick_set(ctx);
  else
    end_core(impl->core);
  return taken;
}

static umemPoolOptions const defaults = UMEM_POOL_OPTIONS_INIT;

/* "pool+cuda:0?max=8G" */
static umemOption const named_options[] = {
    UMEM_OPTION(umemPoolOptions, initial, "initial", umemSizeOption,
                "taken when it is opened; default: 0"),
    UMEM_OPTION_NOT_0(umemPoolOptions, growth, "growth", umemSizeOption,
                      "of each further chunk, at least; default: what it holds, or a quarter"),
    UMEM_OPTION_NOT_0(umemPoolOptions, maximum, "max", umemSizeOption,
                      "that it ever holds at once; default: no bound"),
    UMEM_OPTION_WORD(umemPoolOptions, memory, "memory", "pages chunks",
                     "pages, where there are some, take the least; default: pages"),
    UMEM_OPTION(
        umemPoolOptions, spare, "spare", umemNumberOption,
        "percent that it may have beyond what was in use, to move fewer pages; default: 10"),
};
_Static_assert(umemPoolPages == 0 && umemPoolChunks == 1, "the indices of the words of memory");

umemKind const umem_pool_kind = {
    .scheme = {UMEM_ADAPTOR_KIND(umemPool, "pool", &pool_vtbl), UMEM_ADAPTOR_OPENS(umem_pool_kind),
               UMEM_OPTIONS(named_options), .help = "many blocks out of few"},
    .label = "Pool",
    .impl_size = sizeof(umemPoolImpl),
    UMEM_KIND_OPTIONS(umemPoolOptions, defaults),
    .start = pool_start,
};

UMEM_ADAPTOR_CTORS(umemPool, umem_pool_kind, options, void *upstream,
                   umemPoolOptions const *options)

/* ---- views ---- */

static void on_trim(umemVirtual *ctx, size_t keep) {
  umemPoolImpl const *impl = umemPoolImpl_of(ctx);
  umemPoolCore *core = impl->core;
  if (!umemPoolBlock_has_pool(ctx)) return;
  umemAttempt held;
  umemPoolBlock_lock(ctx, &held);
  bool blocked = umemPoolQueue_is_blocked(impl->list) || umemPoolQueue_is_blocked(core->own);
  bool marked = umemPoolTransfer_mark_all(impl->list, blocked);
  uint64_t units = umemRange_totals(impl->list->range).free_bytes;
  if (!blocked && marked && units << umemPoolUnitShift > keep)
    blocked = !umemPoolTransfer_from(core->own, impl->list);
  if (blocked)
    umemVirtual_fail(ctx, umemNotSupportedError,
                     "a stream is being captured into a graph: trim before or after it");
  umemPoolBlock_unlock(ctx, &held);
}

/* What is free when the queue is waited for is marked, too. */
static void on_synchronize(umemVirtual *ctx) {
  umemPoolImpl const *impl = umemPoolImpl_of(ctx);
  umemPoolCore *core = impl->core;
  UMEM_ADAPTOR_RECORDS(ctx);
  if (impl->list->mark.is_needed && !__atomic_load_n(&core->ended, __ATOMIC_ACQUIRE)) {
    UMEM_FORGETTING();
    UMEM_LOCKED(&core->lock);
    if (!core->ended) umemPoolTransfer_mark_all(impl->list, false);
  }
  umem_synchronize(umemAdaptor_upstream(ctx));
}

/* The view ends, whatever fails. */
static void on_dtor(umemVirtual *ctx) {
  umemPoolImpl const *impl = umemPoolImpl_of(ctx);
  umemPoolCore *core = impl->core;
  umemAttempt held;
  umemPoolBlock_lock(ctx, &held);
  if (!core->ended) end_list(impl->list);
  umemPoolBlock_unlock(ctx, &held);
  umemPoolCore_release(core);
  umemPoolCore_free_released();
  umemAdaptor_dtor(ctx);
}

static struct umemVtbl const on_vtbl = {
    .dtor = on_dtor,
    .synchronize = on_synchronize,
    .trim = on_trim,
    .info = pool_info,
    UMEM_POOL_METHODS,
};

/* ---- construction of a view ---- */

/* The core of pool; NULL, with a status on ctx, when that is not a constructed pool. */
static umemPoolCore *core_of(umemVirtual *ctx, umemPool *pool) {
  uint64_t before = umem_thread.failures;
  if (!umem_check(pool)) {
    umemStatusType status = umem_result(before);
    return UMEM_FAIL_NULL(ctx, status, "the pool is %s", pool ? "not constructed" : "NULL");
  }
  if (pool->super.vptr != &pool_vtbl)
    return UMEM_FAIL_NULL(ctx, umemTypeError, "this %s is no pool", umem_get_device_name(pool));
  return umemPoolImpl_of(&pool->super)->core;
}

/* Whether blocks of pool can be used through queue; else a status on ctx. */
static bool is_one_memory(umemVirtual *ctx, umemPool *pool, void *queue) {
  uint64_t before = umem_thread.failures;
  if (umem_is_same_device(pool, queue)) return true;
  if (umemVirtual_adopt(ctx, before) == umemOK)
    umemVirtual_fail(
        ctx, umemValueError, "this %s is not in the memory of the pool, which stands on %s",
        umem_get_device_name(queue), umem_get_device_name(umemAdaptor_upstream(&pool->super)));
  return false;
}

/* What pool and queue can both do. Whether the view is ordered depends on the queue alone. */
static uint32_t capabilities_of(umemVirtual const *queue, umemVirtual const *pool) {
  uint32_t both = queue->capabilities & (pool->capabilities | umemOrdered | umemDeviceShared);
  uint32_t const of_pool = umemFaultable | umemPromptBlocks | umemShared | umemKeeps | umemKeepsAll;
  return both | (pool->capabilities & of_pool);
}

static bool open_list(umemVirtual *ctx, umemPoolImpl *impl, umemVirtual *queue) {
  umemAttempt held;
  umemAttempt_begin(&held);
  umemLock_acquire(&impl->core->lock);
  impl->list = new_list(impl->core, queue, ctx);
  umemLock_release(&impl->core->lock);
  umemAttempt_end(&held);
  if (impl->list) {
    impl->serial = impl->list->serial;
    __atomic_add_fetch(&impl->core->references, 1, __ATOMIC_RELAXED);
    return true;
  }
  if (umemAttempt_record(&held) == umemOK)
    umemVirtual_fail(ctx, umemMemoryError, "no memory for the records of the pool");
  return false;
}

static bool on_start(umemVirtual *ctx, void const *given) {
  umemPool *pool = (umemPool *)(uintptr_t)given;
  umemPoolImpl *impl = umemPoolImpl_of(ctx);
  umemVirtual *queue = umemAdaptor_upstream(ctx);
  impl->core = core_of(ctx, pool);
  if (!impl->core || !is_one_memory(ctx, pool, queue) || !open_list(ctx, impl, queue)) return false;
  ctx->capabilities = capabilities_of(queue, &pool->super);
  ctx->alignment = pool->super.alignment;
  umemPoolQuick_set(ctx);
  return true;
}

umemKind const umem_pool_on_kind = {
    .scheme = {UMEM_ADAPTOR_KIND(umemPoolOn, "pool-on", &on_vtbl),
               .help = "blocks of a pool in the order of another queue"},
    .label = "PoolOn",
    .is_view = true,
    .impl_size = sizeof(umemPoolImpl),
    .start = on_start,
};

umemStatusType umemPoolOn_ctor(umemPoolOn *ctx, umemPool *pool, void *ordered) {
  UMEM_ENTER();
  if (ctx && (void *)ctx == (void *)pool)
    return umemVirtual_fail(NULL, umemValueError, "the context is its own pool");
  return umemAdaptor_construct(ctx, ordered, false, &umem_pool_on_kind, pool);
}

/* ---- questions ---- */

umemStatusType umemPool_stats(umemPool *ctx, umemPoolStats *stats) {
  UMEM_ENTER();
  if (!umemKind_check(ctx, &umem_pool_kind) ||
      !umem_can_write_sized(ctx, stats, offsetof(umemPoolStats, used_peak), "stats",
                            "umemPoolStats"))
    return UMEM_RESULT();
  umemPoolCore *core = umemPoolImpl_of(&ctx->super)->core;
  umemPoolStats known = UMEM_POOL_STATS_INIT;
  umemExtra_label(&ctx->super, known.label);
  umemLock_acquire(&core->lock);
  umemPoolReport_measure(core, &known);
  known.largest_free = umemPoolReport_largest_free(core);
  umemLock_release(&core->lock);
  uint64_t idle = known.reserved > known.used ? known.reserved - known.used : 0;
  known.fragmentation = idle ? 1 - (double)known.largest_free / (double)idle : 0;
  umem_write_sized(stats, &known, sizeof known);
  return umemOK;
}

bool umemPool_next_region(umemPool *ctx, uintptr_t from, umemPoolRegion *region) {
  UMEM_ENTER();
  umemPoolRegion found = {.size = sizeof found};
  if (!umemKind_check(ctx, &umem_pool_kind) ||
      !umem_can_write_sized(ctx, region, offsetof(umemPoolRegion, used), "region",
                            "umemPoolRegion"))
    return false;
  umemPoolCore *core = umemPoolImpl_of(&ctx->super)->core;
  umemLock_acquire(&core->lock);
  umemPoolReport_next_region(core, from, &found);
  umemLock_release(&core->lock);
  if (!found.nbytes) return false;
  umem_write_sized(region, &found, sizeof found);
  return true;
}
