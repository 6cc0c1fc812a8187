/* pool.c - the context of a pool. See pool.h. */
#include "pool/pool.h"
#include "base/thread.h"
#include "core/status.h"
#include "core/live.h"
#include "core/context.h"
#include "pool/pool_block.h"
#include "pool/pool_cache.h"
#include "pool/pool_chunk.h"
#include "pool/pool_transfer.h"
#include "pool/pool_pages.h"
#include "pool/pool_core.h"
#include "pool/pool_span.h"

#include <stdlib.h>
#include <string.h>

/* ---- trim ---- */

/* First what is free for other queues moves to the pool's own list, if any chunk can go back. */
static void pool_trim(umemVirtual *ctx, size_t keep) {
  umemPoolCore *core = umemPoolImpl_of(ctx)->core;
  umemPoolFreeList *own = core->own;
  umemAttempt held;
  umemLock_acquire(&core->lock);
  umemAttempt_begin(&held);
  umemPoolCache_drain(own);
  if (core->reserved > keep) umemPoolCache_drain_all_threads(core);
  umemPoolLarge_coalesce(own);
  if (umemPoolFreeList_has_others(own) && core->reserved > keep && !umemPoolQueue_is_blocked(own))
    umemPoolTransfer_all(own);
  umemPoolChunk_release(core, keep);
  umemPoolPages_release(core, keep);
  umemAttempt_end(&held);
  umemLock_release(&core->lock);
  umemPoolBlock_record_held(ctx, &held);
  uint64_t before = umem_thread.failures;
  umem_trim(core->upstream, keep);
  umemAdaptor_failed(ctx, before);
}

/* ---- construction and end ---- */

/* Views that outlive the pool find no block in the map, and then that the pool has ended. */
static void end_core(umemPoolCore *core) {
  umemLock_acquire(&core->lock);
  __atomic_store_n(&core->ended, true, __ATOMIC_RELEASE);
  umemPoolFreeList_end_all(core);
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
  umemPoolStats stats = UMEM_POOL_STATS_INIT;
  if (!umemPoolCore_try_measure(umemPoolImpl_of(ctx)->core, &stats)) return false;
  usage->nbytes = stats.used;
  usage->peak = stats.used_peak;
  return true;
}

static struct umemVtbl const pool_vtbl = {
    .usage = pool_usage,
    .dtor = pool_dtor,
    .trim = pool_trim,
    .upstream = umemAdaptor_upstream_method,
    UMEM_POOL_BLOCKS,
    .leave = umemAdaptor_leave,
    UMEM_ADAPTOR_BYTES,
    UMEM_ADAPTOR_ORDER,
};

umemPoolCore *umemPool_core(umemVirtual *ctx) {
  return ctx->vptr == &pool_vtbl ? umemPoolImpl_of(ctx)->core : NULL;
}

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
  if (options->memory == umemPoolPages) umemPoolPages_init(core);
  umemPoolSpan_init_classes(core);
  core->own = umemPoolFreeList_new(core, upstream);
  if (core->own && umemPageMap_init(&core->map)) return core;
  end_core(core);
  return NULL;
}

static bool take_initial(umemVirtual *ctx, umemPoolCore *core, umemPoolOptions const *options) {
  if (!options->initial) return true;
  umemPoolFailure failure = {.reason = umemPoolAtMaximum, .reserved = 0};
  size_t most = core->maximum ? core->maximum & ~(size_t)(umemPoolUnit - 1) : PTRDIFF_MAX / 2;
  size_t size = options->initial < most
                    ? (options->initial + umemPoolUnit - 1) & ~(size_t)(umemPoolUnit - 1)
                    : most;
  umemLock_acquire(&core->lock);
  bool taken = size && umemPoolPages_suit(core->own, umemPoolPage) &&
               umemPoolPages_grow(core->own, size, umemPoolPage, (umemPoolExtra){0, 0}, &failure);
  if (!taken && size) taken = umemPoolChunk_add(core->own, size, umemPoolPage, true, &failure);
  umemLock_release(&core->lock);
  if (!taken) umemPoolBlock_record_failure(ctx, &failure, options->initial);
  return taken;
}

static bool check_options(umemVirtual *ctx, umemPoolOptions const *options) {
  if (options->memory != umemPoolPages && options->memory != umemPoolChunks) {
    umemVirtual_fail(ctx, umemValueError,
                     "memory is %d: it must be umemPoolPages or umemPoolChunks",
                     (int)options->memory);
    return false;
  }
  if (options->spare > umemPoolSpareMost) {
    umemVirtual_fail(ctx, umemValueError, "spare is %zu percent: at most %d are possible",
                     options->spare, umemPoolSpareMost);
    return false;
  }
  if (!options->maximum || options->initial <= options->maximum) return true;
  umemVirtual_fail(ctx, umemValueError, "initial bytes (%zu) exceed the maximum (%zu)",
                   options->initial, options->maximum);
  return false;
}

static bool pool_start(umemVirtual *ctx, void const *options) {
  umemPoolImpl *impl = umemPoolImpl_of(ctx);
  if (!check_options(ctx, options)) return false;
  impl->core = new_core(umemAdaptor_upstream(ctx), options);
  if (!impl->core) {
    umemVirtual_fail(ctx, umemMemoryError, "no memory for the records of the pool");
    return false;
  }
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
                      "of each further chunk, at least; default: as much as it holds"),
    UMEM_OPTION_NOT_0(umemPoolOptions, maximum, "max", umemSizeOption,
                      "that it ever holds at once; default: no bound"),
    {.name = "memory",
     .kind = umemWordOption,
     .words = "pages chunks",
     .help = "pages, where there are some, take the least; default: pages",
     .reserved = {offsetof(umemPoolOptions, memory), sizeof(umemPoolMemory)}},
    UMEM_OPTION_NOT_0(
        umemPoolOptions, spare, "spare", umemNumberOption,
        "percent that it may have beyond what was in use before it moves pages; default: 1.6"),
};
_Static_assert(umemPoolPages == 0 && umemPoolChunks == 1, "the indices of the words of memory");

umemKind const umem_pool_kind = {
    .scheme = {UMEM_ADAPTOR_KIND(umemPool, "pool", &pool_vtbl), UMEM_ADAPTOR_OPENS(umem_pool_kind),
               UMEM_OPTIONS(named_options), .help = "many blocks out of few"},
    .label = "Pool",
    .impl_size = sizeof(umemPoolImpl),
    .options_type = "umemPoolOptions",
    .options_size = sizeof defaults,
    .defaults = &defaults,
    .start = pool_start,
};

UMEM_ADAPTOR_CTORS_WITH(umemPool, umem_pool_kind, options, umemPoolOptions const *options)

/* ---- questions ---- */

umemStatusType umemPool_stats(umemPool *ctx, umemPoolStats *stats) {
  UMEM_ENTER();
  uint64_t before = umem_thread.failures;
  if (!umemKind_check(ctx, &umem_pool_kind)) return umem_result(before);
  if (!umem_can_write_sized(ctx, stats, offsetof(umemPoolStats, used_peak), "stats",
                            "umemPoolStats"))
    return umem_result(before);
  umemPoolStats known = UMEM_POOL_STATS_INIT;
  umemExtra_label(&ctx->super, known.label);
  umemPoolCore_measure_free(umemPool_core(&ctx->super), &known);
  umem_write_sized(stats, &known, sizeof known);
  return umemOK;
}

bool umemPool_next_region(umemPool *ctx, uintptr_t from, umemPoolRegion *region) {
  UMEM_ENTER();
  umemPoolRegion found = {.size = sizeof found};
  if (!umemKind_check(ctx, &umem_pool_kind)) return false;
  if (!umem_can_write_sized(ctx, region, offsetof(umemPoolRegion, used), "region",
                            "umemPoolRegion"))
    return false;
  if (!umemPoolCore_next_region(umemPool_core(&ctx->super), from, &found)) return false;
  umem_write_sized(region, &found, sizeof found);
  return true;
}
