/* context.c - questions that any context answers. */
#include "core/enter.h"
#include "base/thread.h"
#include "core/guard.h"
#include "core/layers.h"
#include "core/sized.h"
#include "core/status.h"

char const *umem_version(void) { return UMEM_VERSION; }

bool umem_is_same_device(void *one, void *other) {
  UMEM_ENTER();
  umemVirtual *a = umem_guard(one);
  umemVirtual *b = umem_guard(other);
  return a && b && umem_is_one_memory(a, b);
}

umemStatusType umem_get_info(void *ctx, umemInfo *info) {
  UMEM_ENTER();
  umem_defer_cancel(); /* contexts in RAM ask the kernel, too */
  uint64_t before = umem_thread.failures;
  umemVirtual *self = umem_guard(ctx);
  if (!self || !umem_can_write_sized(self, info, offsetof(umemInfo, available), "info", "umemInfo"))
    return umem_result(before);
  umemInfo known = UMEM_INFO_INIT;
  known.alignment = self->alignment;
  umemVirtual *layer = UMEM_LAYER_WITH(self, info);
  if (layer) layer->vptr->info(layer, &known);
  umem_write_sized(info, &known, sizeof known);
  return umem_adopt_from(layer, self, before);
}
