/* adaptor.c - constructs and ends adaptors, and passes calls on to their upstreams. */
#include "core/adaptor.h"
#include "core/copy.h"

#include <stdlib.h>
#include <string.h>

/* ---- construction and end ---- */

/* What the public structs of all adaptors look like. */
typedef struct Adaptor {
  umemVirtual super;
  void *impl; /* owned; begins with a umemAdaptor */
  uintptr_t reserved[7];
} Adaptor;
_Static_assert(offsetof(Adaptor, impl) == sizeof(umemVirtual), "impl follows the base");

/* What holds for upstream holds for ctx too; but its alloc, free and plan_copy are its own. */
static void inherit(umemVirtual *ctx, umemVirtual const *upstream) {
  ctx->capabilities =
      upstream->capabilities & ~(uint32_t)(umemSilent | umemPromptBlocks | umemPlansAlike);
  ctx->alignment = upstream->alignment;
  ctx->host = upstream->host;
  memcpy(ctx->space, upstream->space, sizeof ctx->space);
}

/* Makes *ctx an adaptor that lacks only what start adds. False with a status. */
static bool begin(umemVirtual *ctx, umemVirtual *upstream, bool owns, umemKind const *kind) {
  memset(ctx, 0, sizeof(Adaptor));
  umem_construct(ctx, kind, NULL);
  ctx->type = upstream ? upstream->type : umemVirtualDevice;
  umemAdaptor *impl = calloc(1, kind->impl_size);
  *(void **)(ctx + 1) = impl;
  uint64_t before = umem_thread.failures;
  if (!impl) {
    umemVirtual_fail(ctx, umemMemoryError, "no memory for a context");
  } else if (!upstream) {
    umemVirtual_fail(ctx, umemValueError, "the upstream is NULL");
  } else {
    *impl =
        (umemAdaptor){.upstream = upstream, .owns_upstream = owns, .generation = umem_fork_count()};
    inherit(ctx, upstream);
    if (umem_check(upstream)) return true;
    umemVirtual_adopt(ctx, before);
  }
  return false;
}

static bool start(umemVirtual *ctx, umemKind const *kind, void const *given) {
  umemKindOptions full;
  if (!kind->options_type) return !kind->start || kind->start(ctx, given);
  memcpy(&full, kind->defaults, kind->options_size);
  return umem_read_sized(ctx, &full, kind->options_size, given, kind->options_type) &&
         kind->start(ctx, &full);
}

umemStatusType umemAdaptor_construct(void *ctx, void *upstream, bool owns, umemKind const *kind,
                                     void const *options) {
  if (!ctx || ctx == upstream)
    return umemVirtual_fail(NULL, umemValueError, "the context is %s",
                            ctx ? "its own upstream" : "NULL");
  uint64_t before = umem_thread.failures;
  if (begin(ctx, upstream, owns, kind) && start(ctx, kind, options)) {
    umemAdaptor *impl = umemAdaptor_impl(ctx);
    if (!kind->is_view) umemLive_add(&impl->live, ctx);
    return umemOK;
  }
  free(umemAdaptor_impl(ctx));
  *(void **)((umemVirtual *)ctx + 1) = NULL;
  umem_construct_failed(ctx);
  return umem_result(before);
}

umemStatusType umemAdaptor_open(void *ctx, void *upstream, umemOptionValue const *place,
                                umemOptionValue const *given, void *user) {
  (void)place;
  umemKind const *kind = user;
  umemKindOptions options;
  if (!umemKind_read(kind, given, &options)) return umemValueError;
  return umemAdaptor_construct(ctx, upstream, false, kind, &options);
}

void umemAdaptor_dtor(umemVirtual *ctx) {
  umemAdaptor *impl = umemAdaptor_impl(ctx);
  if (impl->owns_upstream) {
    UMEM_ADAPTOR_RECORDS(ctx);
    umem_dtor(impl->upstream);
  }
  free(impl);
}

/* ---- methods that pass on ---- */

void umemAdaptor_leave(umemVirtual *ctx, uintptr_t adr, bool aligned) {
  (void)ctx, (void)adr, (void)aligned;
}

void umemAdaptor_free(umemVirtual *ctx, uintptr_t adr) { umemAdaptor_give_back(ctx, adr, false); }

void umemAdaptor_aligned_free(umemVirtual *ctx, uintptr_t adr) {
  umemAdaptor_give_back(ctx, adr, true);
}

uintptr_t umemAdaptor_aligned_origin(umemVirtual *ctx, uintptr_t adr) {
  UMEM_ADAPTOR_RECORDS(ctx);
  return umem_aligned_origin(umemAdaptor_upstream(ctx), adr);
}

void umemAdaptor_set(umemVirtual *ctx, uintptr_t adr, int c, size_t nbytes) {
  UMEM_ADAPTOR_RECORDS(ctx);
  umem_set(umemAdaptor_upstream(ctx), adr, c, nbytes);
}

void umemAdaptor_copy_to(umemVirtual *ctx, uintptr_t src_adr, umemVirtual *that, uintptr_t dst_adr,
                         size_t nbytes) {
  umemLayout layout = {.size = sizeof layout, .item_size = nbytes};
  ctx->vptr->copy_direct(ctx, ctx, src_adr, that, dst_adr, &layout);
}

void umemAdaptor_copy_from(umemVirtual *ctx, uintptr_t dst_adr, umemVirtual *that,
                           uintptr_t src_adr, size_t nbytes) {
  umemLayout layout = {.size = sizeof layout, .item_size = nbytes};
  ctx->vptr->copy_direct(ctx, that, src_adr, ctx, dst_adr, &layout);
}

bool umemAdaptor_copy_direct(umemVirtual *ctx, umemVirtual *src, uintptr_t src_adr,
                             umemVirtual *dst, uintptr_t dst_adr, umemLayout const *layout) {
  umemVirtual *upstream = umemAdaptor_upstream(ctx);
  umemVirtual *from = src == ctx ? upstream : src, *to = dst == ctx ? upstream : dst;
  UMEM_ADAPTOR_RECORDS(ctx);
  if (layout->rank)
    umem_copy_strided(from, src_adr, to, dst_adr, layout);
  else
    umem_copy_to(from, src_adr, to, dst_adr, layout->item_size);
  return true;
}

umemVirtual *umemAdaptor_mover(umemVirtual *ctx) {
  while (ctx && UMEM_SLOT(ctx, copy_direct) == umemAdaptor_copy_direct && UMEM_SLOT(ctx, upstream))
    ctx = umem_upstream_of(ctx);
  return ctx;
}

bool umemAdaptor_copy_runs(umemVirtual *ctx, umemVirtual *src, umemVirtual *dst, umemCopyRun *runs,
                           size_t count) {
  umemVirtual *upstream = umemAdaptor_upstream(ctx);
  umemVirtual *from = src == ctx ? upstream : src, *to = dst == ctx ? upstream : dst;
  UMEM_ADAPTOR_RECORDS(ctx);
  if (umem_check(upstream)) umem_copy_runs(from, to, runs, count);
  return true;
}

void umemAdaptor_wait(umemVirtual *ctx, umemVirtual *other) {
  UMEM_ADAPTOR_RECORDS(ctx);
  umem_wait(umemAdaptor_upstream(ctx), other);
}

umemVirtual *umemAdaptor_upstream_method(umemVirtual *ctx) { return umemAdaptor_upstream(ctx); }
