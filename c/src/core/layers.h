/* layers.h - the way down through the layers of a stack. */
#ifndef UMEM_LAYERS_H
#define UMEM_LAYERS_H

#include <stddef.h>
#include <string.h>
#include <umem/base.h>

#include "core/guard.h"

/* The upstream of ctx. NULL where it has none; NULL, and records a status, where that was destructed. */
static inline umemVirtual *umem_upstream_of(umemVirtual *ctx) {
  umemVirtual *(*slot)(umemVirtual *) = UMEM_SLOT(ctx, upstream);
  umemVirtual *upstream = slot ? slot(ctx) : NULL;
  return upstream ? umem_guard(upstream) : NULL;
}

/* The innermost layer of ctx; ctx itself where it has no upstream. Records a failure, and stops, at an
 * upstream that is not constructed any more. */
umemVirtual *umem_innermost(umemVirtual *ctx);

/* The outermost layer of ctx whose table has a method at this offset, or NULL. An adaptor thus inherits the
 * methods that it leaves out. */
static inline umemVirtual *umem_layer_with(umemVirtual *ctx, size_t offset) {
  for (;;) {
    void (*method)(void) = NULL;
    if (offset < ctx->vtbl_size) memcpy(&method, (char const *)ctx->vptr + offset, sizeof method);
    if (method) return ctx;
    ctx = umem_upstream_of(ctx);
    if (!ctx) return NULL;
  }
}
#define UMEM_LAYER_WITH(ctx, slot) umem_layer_with((ctx), offsetof(struct umemVtbl, slot))

/* umem_is_same_device for two constructed contexts. */
bool umem_is_one_memory(umemVirtual *one, umemVirtual *other);

#endif
