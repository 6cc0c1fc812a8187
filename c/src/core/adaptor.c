/* adaptor.c - see umem_adaptor.h. */
#include "core/adaptor.h"

#include <stdlib.h>
#include <string.h>

/* A call of the upstream, whose failure becomes ctx's as well. */
#define PASS_ON(call)                                                                              \
  do {                                                                                             \
    uint64_t before = umem_thread.failures;                                                        \
    call;                                                                                          \
    umemAdaptor_failed(ctx, before);                                                               \
  } while (0)

/* ---- construction and end ---- */

/* What the public structs of all decorators look like. */
typedef struct Decorator {
  umemVirtual super;
  void *impl; /* owned; begins with a umemAdaptor */
  uintptr_t reserved[7];
} Decorator;
_Static_assert(offsetof(Decorator, impl) == sizeof(umemVirtual), "impl follows the base");

void *umemAdaptor_construct(void *ctx, void *upstream, bool adopts, struct umemVtbl const *vtbl,
                            char const *name, size_t impl_size) {
  umemVirtual *self = ctx, *below = upstream;
  if (!ctx || ctx == upstream) {
    umemVirtual_fail(NULL, umemValueError, "the context is %s", ctx ? "its own upstream" : "NULL");
    return NULL;
  }
  memset(ctx, 0, sizeof(Decorator));
  umem_construct(self, vtbl, below ? below->type : umemVirtualDevice, name, 0, 1, NULL);
  umemAdaptor *impl = calloc(1, impl_size);
  *(void **)(self + 1) = impl;
  if (!impl) {
    umemVirtual_fail(self, umemMemoryError, "no memory for a context");
  } else if (!below) {
    umemVirtual_fail(self, umemValueError, "the upstream is NULL");
  } else {
    *impl = (umemAdaptor){below, adopts};
    /* alloc and free record, and are its own */
    self->capabilities = below->capabilities & ~(uint32_t)(umemSilent | umemPromptBlocks);
    self->alignment = below->alignment;
    self->host = below->host;
    memcpy(self->space, below->space, sizeof self->space);
    uint64_t before = umem_thread.failures;
    if (umem_guard(below)) return impl;
    umemVirtual_adopt(self, before);
  }
  umemAdaptor_abandon(self);
  return NULL;
}

void umemAdaptor_abandon(umemVirtual *ctx) {
  free(umemAdaptor_impl(ctx));
  *(void **)(ctx + 1) = NULL;
  umem_construct_failed(ctx);
}

void umemAdaptor_dtor(umemVirtual *ctx) {
  umemAdaptor *impl = umemAdaptor_impl(ctx);
  if (impl->adopted) PASS_ON(umem_dtor(impl->upstream));
  free(impl);
}

umemVirtual *umemAdaptor_of_kind(void *ctx, struct umemVtbl const *vtbl, char const *kind) {
  umemVirtual *self = umem_guard(ctx);
  if (!self || self->vptr == vtbl) return self;
  umemVirtual_fail(self, umemTypeError, "this %s is no %s", umem_get_device_name(self), kind);
  return NULL;
}

/* ---- methods that pass on ---- */

void umemAdaptor_free(umemVirtual *ctx, uintptr_t adr) { umemAdaptor_give_back(ctx, adr, false); }

void umemAdaptor_aligned_free(umemVirtual *ctx, uintptr_t adr) {
  umemAdaptor_give_back(ctx, adr, true);
}

uintptr_t umemAdaptor_aligned_origin(umemVirtual *ctx, uintptr_t adr) {
  uintptr_t origin;
  PASS_ON(origin = umem_aligned_origin(umemAdaptor_upstream(ctx), adr));
  return origin;
}

void umemAdaptor_set(umemVirtual *ctx, uintptr_t adr, int c, size_t nbytes) {
  PASS_ON(umem_set(umemAdaptor_upstream(ctx), adr, c, nbytes));
}

void umemAdaptor_copy_to(umemVirtual *ctx, uintptr_t src_adr, umemVirtual *that, uintptr_t dst_adr,
                         size_t nbytes) {
  PASS_ON(umem_copy_to(umemAdaptor_upstream(ctx), src_adr, that, dst_adr, nbytes));
}

void umemAdaptor_copy_from(umemVirtual *ctx, uintptr_t dst_adr, umemVirtual *that,
                           uintptr_t src_adr, size_t nbytes) {
  PASS_ON(umem_copy_from(umemAdaptor_upstream(ctx), dst_adr, that, src_adr, nbytes));
}

bool umemAdaptor_copy_direct(umemVirtual *ctx, umemVirtual *src, uintptr_t src_adr,
                             umemVirtual *dst, uintptr_t dst_adr, umemLayout const *layout) {
  umemVirtual *upstream = umemAdaptor_upstream(ctx);
  umemVirtual *from = src == ctx ? upstream : src, *to = dst == ctx ? upstream : dst;
  PASS_ON(umem_copy_strided(from, src_adr, to, dst_adr, layout));
  return true;
}

void umemAdaptor_wait(umemVirtual *ctx, umemVirtual *other) {
  PASS_ON(umem_wait(umemAdaptor_upstream(ctx), other));
}

umemVirtual *umemAdaptor_upstream_method(umemVirtual *ctx) { return umemAdaptor_upstream(ctx); }
