/* pool_on.c - the context of a view: a free list of a pool, and its queue. See pool.h. */
#include "pool/pool.h"
#include "base/thread.h"
#include "core/status.h"
#include "core/context.h"
#include "pool/pool_block.h"
#include "pool/pool_cache.h"
#include "pool/pool_transfer.h"
#include "pool/pool_chunk.h"
#include "pool/pool_core.h"

#include <umem/pool_on.h>

/* ---- methods ---- */

static void on_trim(umemVirtual *ctx, size_t keep) {
  umemPoolImpl const *impl = umemPoolImpl_of(ctx);
  umemPoolCore *core = impl->core;
  if (!umemPoolBlock_has_pool(ctx)) return;
  umemAttempt held;
  umemAttempt_begin(&held);
  umemLock_acquire(&core->lock);
  umemPoolCache_drain_threads(impl->list);
  umemPoolCache_drain(impl->list);
  umemPoolLarge_coalesce(impl->list);
  uint64_t units = umemRange_totals(impl->list->range).free_bytes;
  bool blocked = umemPoolQueue_is_blocked(impl->list) || umemPoolQueue_is_blocked(core->own);
  if (!blocked && units << umemPoolUnitShift > keep)
    blocked = !umemPoolTransfer_from(core->own, impl->list);
  if (blocked)
    umemVirtual_fail(ctx, umemNotSupportedError,
                     "a stream is being captured into a graph: trim before or after it");
  umemLock_release(&core->lock);
  umemAttempt_end(&held);
  umemPoolBlock_record_held(ctx, &held);
}

/* The view ends, whatever fails. */
static void on_dtor(umemVirtual *ctx) {
  umemPoolImpl const *impl = umemPoolImpl_of(ctx);
  umemPoolCore *core = impl->core;
  umemAttempt held;
  umemAttempt_begin(&held);
  umemLock_acquire(&core->lock);
  if (!core->ended) umemPoolFreeList_end(impl->list);
  umemLock_release(&core->lock);
  umemAttempt_end(&held);
  umemPoolBlock_record_held(ctx, &held);
  umemPoolCore_release(core);
  umemPoolCore_free_released();
  umemAdaptor_dtor(ctx);
}

static struct umemVtbl const on_vtbl = {
    .dtor = on_dtor,
    .trim = on_trim,
    .upstream = umemAdaptor_upstream_method,
    UMEM_POOL_BLOCKS,
    .leave = umemAdaptor_leave,
    UMEM_ADAPTOR_BYTES,
    UMEM_ADAPTOR_ORDER,
};

/* ---- construction ---- */

/* The core of pool; NULL, with a status on ctx, when that is not a constructed pool. */
static umemPoolCore *core_of(umemVirtual *ctx, umemPool *pool) {
  uint64_t before = umem_thread.failures;
  if (!umem_check(pool)) {
    umemStatusType status = umem_result(before);
    umemVirtual_fail(ctx, status, "the pool is %s", pool ? "not constructed" : "NULL");
    return NULL;
  }
  umemPoolCore *core = umemPool_core(&pool->super);
  if (!core) umemVirtual_fail(ctx, umemTypeError, "this %s is no pool", umem_get_device_name(pool));
  return core;
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
  impl->list = umemPoolFreeList_new(impl->core, queue);
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
