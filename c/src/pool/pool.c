/* pool.c - the context of a pool. See pool.h. */
#include "pool/pool.h"

#include "pool/pool_block.h"
#include "pool/pool_cache.h"
#include "pool/pool_chunk.h"
#include "pool/pool_free_list.h"
#include "pool/pool_large.h"
#include "pool/pool_queue.h"
#include "pool/pool_span.h"
#include "pool/pool_stats.h"
#include "pool/pool_transfer.h"

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
  umemPoolLarge_coalesce(own);
  if (umemPoolFreeList_has_others(own) && core->reserved > keep && !umemPoolQueue_is_blocked(own))
    umemPoolTransfer_all(own);
  umemPoolChunk_release(core, keep);
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
  umemPoolChunk_end_all(core);
  if (core->map.leaves) umemPageMap_clear(&core->map);
  umemPoolCore_release(core);
  umemPoolCore_free_released();
}

static void pool_dtor(umemVirtual *ctx) {
  uint64_t before = umem_thread.failures;
  end_core(umemPoolImpl_of(ctx)->core);
  umemAdaptor_failed(ctx, before);
  umemAdaptor_dtor(ctx);
}

static struct umemVtbl const pool_vtbl = {
    .dtor = pool_dtor,
    .trim = pool_trim,
    .upstream = umemAdaptor_upstream_method,
    UMEM_POOL_BLOCKS,
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
  pthread_cond_init(&core->answered, NULL);
  core->conditions_lineage = umem_fork_count();
  core->references = 1;
  core->upstream = upstream;
  core->alignment = upstream->alignment > umemPoolGrain ? upstream->alignment : umemPoolGrain;
  core->growth = options->growth;
  core->maximum = options->maximum;
  umemPoolSpan_init_classes(core);
  core->own = umemPoolFreeList_new(core, upstream);
  if (core->own && umemPageMap_init(&core->map)) return core;
  end_core(core);
  return NULL;
}

/* The caller's options in full; false, and a status on ctx, when they contradict each other. */
static bool read_options(void *ctx, umemPoolOptions const *given, umemPoolOptions *options) {
  *options = (umemPoolOptions)UMEM_POOL_OPTIONS_INIT;
  if (!umem_read_sized(ctx, options, sizeof *options, given, "umemPoolOptions")) return false;
  if (!options->maximum || options->initial <= options->maximum) return true;
  umemVirtual_fail(ctx, umemValueError, "initial bytes (%zu) exceed the maximum (%zu)",
                   options->initial, options->maximum);
  return false;
}

static bool take_initial(umemVirtual *ctx, umemPoolCore *core, umemPoolOptions const *options) {
  if (!options->initial) return true;
  umemPoolFailure failure = {.reason = umemPoolAtMaximum, .reserved = 0};
  size_t most = core->maximum ? core->maximum & ~(size_t)(umemPoolUnit - 1) : PTRDIFF_MAX / 2;
  size_t size = options->initial < most
                    ? (options->initial + umemPoolUnit - 1) & ~(size_t)(umemPoolUnit - 1)
                    : most;
  umemLock_acquire(&core->lock);
  bool taken = size && umemPoolChunk_add(core->own, size, umemPoolPage, true, &failure);
  umemLock_release(&core->lock);
  if (!taken) umemPoolBlock_record_failure(ctx, &failure, options->initial);
  return taken;
}

static umemStatusType construct(umemPool *ctx, void *upstream, umemPoolOptions const *given,
                                bool adopts) {
  uint64_t before = umem_thread.failures;
  umemPoolImpl *impl =
      umemAdaptor_construct(ctx, upstream, adopts, &pool_vtbl, "Pool", sizeof(umemPoolImpl));
  if (!impl) return umem_result(before);
  umemPoolOptions options;
  if (read_options(ctx, given, &options)) {
    impl->core = new_core(upstream, &options);
    if (!impl->core) {
      umemVirtual_fail(ctx, umemMemoryError, "no memory for the records of the pool");
    } else {
      impl->list = impl->core->own;
      impl->serial = impl->list->serial;
      ctx->super.alignment = impl->core->alignment;
      ctx->super.capabilities |= umemPromptBlocks;
      if (take_initial(&ctx->super, impl->core, &options)) return umemOK;
      end_core(impl->core);
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
  if (!umemPool_core(&ctx->super))
    return umemVirtual_fail(ctx, umemTypeError, "this %s is no pool", umem_get_device_name(ctx));
  if (!umem_can_write_sized(ctx, stats, offsetof(umemPoolStats, used_peak), "stats",
                            "umemPoolStats"))
    return umem_result(before);
  umemPoolStats known = UMEM_POOL_STATS_INIT;
  umemPoolCore_measure_free(umemPool_core(&ctx->super), &known);
  umem_write_sized(stats, &known, sizeof known);
  return umemOK;
}
