/* layers.c - see layers.h. */
#include "core/layers.h"
#include "base/thread.h"
#include "core/enter.h"
#include "core/guard.h"

umemVirtual *umem_innermost(umemVirtual *ctx) {
  for (;;) {
    umemVirtual *upstream = umem_upstream_of(ctx);
    if (!upstream) return ctx;
    ctx = upstream;
  }
}

void *umem_get_upstream(void *ctx) {
  UMEM_ENTER();
  uint64_t before = umem_thread.failures;
  umemVirtual *self = umem_guard(ctx);
  if (!self) return NULL;
  umemVirtual *upstream = umem_upstream_of(self);
  umemVirtual_adopt(self, before);
  return upstream;
}

/* The layer whose memory it is: the innermost, or one over it that keeps its blocks apart. */
static umemVirtual *owner_of_memory(umemVirtual *ctx) {
  for (;;) {
    umemVirtual *upstream = umem_upstream_of(ctx);
    if (!upstream) return ctx;
    if (umem_can(ctx, umemSeparate) && memcmp(ctx->space, upstream->space, sizeof ctx->space) != 0)
      return ctx;
    ctx = upstream;
  }
}

bool umem_is_one_memory(umemVirtual *one, umemVirtual *other) {
  uint64_t before = umem_thread.failures;
  umemVirtual *a = owner_of_memory(one), *b = owner_of_memory(other);
  if (umem_thread.failures != before) return false;
  if (a == b) return true;
  if (a->vptr->is_same_device) return a->vptr->is_same_device(a, b);
  return a->vptr == b->vptr && a->space[0] == b->space[0] && a->space[1] == b->space[1];
}
