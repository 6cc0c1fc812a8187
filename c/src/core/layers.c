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

bool umem_is_one_memory(umemVirtual *one, umemVirtual *other) {
  uint64_t before = umem_thread.failures;
  umemVirtual *a = umem_innermost(one), *b = umem_innermost(other);
  if (umem_thread.failures != before) return false;
  if (a == b) return true;
  if (a->vptr->is_same_device) return a->vptr->is_same_device(a, b);
  return a->vptr == b->vptr && a->space[0] == b->space[0] && a->space[1] == b->space[1];
}
