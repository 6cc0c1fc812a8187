/* order.c - waits for queued work, makes bytes durable, and gives unused storage back. */
#include "core/order.h"
#include "base/thread.h"
#include "core/context.h"
#include "core/status.h"

umemStatusType umem_synchronize(void *ctx) {
  UMEM_ENTER();
  uint64_t before = umem_thread.failures;
  umemVirtual *self = umem_check(ctx);
  umemVirtual *layer = self ? UMEM_LAYER_WITH(self, synchronize) : NULL;
  if (layer) layer->vptr->synchronize(layer);
  return umem_adopt_from(layer, self, before);
}

umemStatusType umem_finish_work(umemVirtual *ctx) {
  umemStatusType status = umem_synchronize(ctx);
  if (status == umemOK) return umemOK;
  umemAttempt forgotten;
  umemAttempt_begin(&forgotten);
  umem_synchronize(ctx);
  umemAttempt_end(&forgotten);
  return status;
}

umemStatusType umem_wait(void *ctx, void *other) {
  UMEM_ENTER();
  uint64_t before = umem_thread.failures;
  umemVirtual *self = umem_check(ctx);
  umemVirtual *that = umem_check(other);
  if (!self || !that) return umem_result(before);
  if (!(that->capabilities & (umemOrdered | umemDeviceShared))) return umemOK;
  bool one = umem_innermost(self) == umem_innermost(that);
  if (one || umem_thread.failures != before) return umem_result(before);
  void (*slot)(umemVirtual *, umemVirtual *) = UMEM_SLOT(self, wait);
  if (slot)
    slot(self, that);
  else
    umem_synchronize(that);
  return umem_result(before);
}

/* Until the end of the block, also when an exception of a hook passes. */
static void end_apart(bool const *outer) { umem_thread.apart = *outer; }
#define APART()                                                                                    \
  __attribute__((cleanup(end_apart), unused)) bool const outer_ = umem_thread.apart;               \
  umem_thread.apart = true

umemStatusType umem_wait_apart(umemVirtual *ctx, umemVirtual *other) {
  APART();
  return umem_wait(ctx, other);
}

umemStatusType umem_synchronize_apart(umemVirtual *ctx) {
  APART();
  return umem_synchronize(ctx);
}

bool umem_ask_captured(umemVirtual *ctx) {
  umem_defer_cancel();   /* pools ask here beside the public functions */
  umemAttempt forgotten; /* a device that is lost reports that in the next call that needs it */
  umemAttempt_begin(&forgotten);
  umemVirtual *layer = UMEM_LAYER_WITH(ctx, is_captured);
  bool captured = layer && layer->vptr->is_captured(layer);
  umemAttempt_end(&forgotten);
  return captured;
}

umemStatusType umem_flush(void *ctx) {
  UMEM_ENTER();
  uint64_t before = umem_thread.failures;
  umemVirtual *self = umem_check(ctx);
  umemVirtual *layer = self ? UMEM_LAYER_WITH(self, flush) : NULL;
  if (layer) layer->vptr->flush(layer);
  return umem_adopt_from(layer, self, before);
}

umemStatusType umem_trim(void *ctx, size_t keep) {
  UMEM_ENTER();
  uint64_t before = umem_thread.failures;
  umemVirtual *self = umem_check(ctx);
  umemVirtual *layer = self ? UMEM_LAYER_WITH(self, trim) : NULL;
  if (layer) layer->vptr->trim(layer, keep);
  return umem_adopt_from(layer, self, before);
}
