/* memory.c - dispatch of allocation, free and set, and their defaults. */
#include "base/thread.h"
#include "core/access.h"
#include "core/enter.h"
#include "core/guard.h"
#include "core/order.h"
#include "core/quick.h"
#include "core/refused.h"

#include <string.h>

static uintptr_t lacks(umemVirtual *ctx, char const *method) {
  umemVirtual_fail(ctx, umemNotImplementedError, "%s has no method %s", umem_get_device_name(ctx),
                   method);
  return umem_null_of(ctx);
}

/* ---- allocation ---- */

__attribute__((noinline)) uintptr_t umem_alloc_in_full(void *ctx, size_t nbytes,
                                                       void const *caller) {
  UMEM_ENTER_AS("umem_alloc", caller);
  umemVirtual *self = umem_guard_blocks(ctx);
  if (!self) return umem_null(ctx);
  if (!self->vptr->alloc) return lacks(self, "alloc");
  uintptr_t adr = self->vptr->alloc(self, nbytes + !nbytes);
  return adr != umem_null_of(self) ? adr : umem_refused(self, umem_entry_.failures, nbytes);
}

static __attribute__((noinline)) uintptr_t alloc_silently(umemVirtual *ctx, size_t nbytes,
                                                          void const *caller) {
  /* Volatile: on the stack, and not in registers, which would have to be saved first. */
  umemVirtual *volatile const kept_ctx = ctx;
  size_t volatile const kept_nbytes = nbytes;
  void const *volatile const kept_caller = caller;
  uintptr_t adr = ctx->vptr->alloc(ctx, nbytes + !nbytes);
  if (__builtin_expect(adr != 0, 1)) return adr;
  return umem_alloc_in_full(kept_ctx, kept_nbytes, kept_caller);
}

/* The two functions whose cost shows. A context with quick functions or umemSilent is constructed, or a copy of
 * one, needs no name for messages, and null is 0; all else, and what failed, takes the long way. */
uintptr_t umem_alloc(void *ctx, size_t nbytes) {
  umemVirtual *self = ctx;
  if (__builtin_expect(self && umem_is_in_place(self), 1)) {
    umemQuickAlloc *quick = umemQuick_alloc_of(self);
    if (quick) return quick(self, nbytes, __builtin_return_address(0));
    if (umem_can(self, umemSilent))
      return alloc_silently(self, nbytes, __builtin_return_address(0));
  }
  return umem_alloc_in_full(ctx, nbytes, __builtin_return_address(0));
}

uintptr_t umemVirtual_calloc(umemVirtual *ctx, size_t nmemb, size_t size) {
  uintptr_t adr = umem_alloc(ctx, nmemb * size);
  if (adr == umem_null_of(ctx) || umem_set(ctx, adr, 0, nmemb * size) == umemOK) return adr;
  umem_free(ctx, adr);
  return umem_null_of(ctx);
}

uintptr_t umem_calloc(void *ctx, size_t nmemb, size_t size) {
  UMEM_ENTER();
  uint64_t before = umem_thread.failures;
  umemVirtual *self = umem_guard(ctx);
  if (!self) return umem_null(ctx);
  size_t nbytes;
  if (__builtin_mul_overflow(nmemb, size, &nbytes)) {
    umemVirtual_fail(self, umemMemoryError, "%zu members of %zu bytes exceed any memory", nmemb,
                     size);
    return umem_null_of(self);
  }
  if (!nbytes) nmemb = size = 1;
  if (!umem_allows(self, umemWritable)) return umem_null_of(self);
  uintptr_t (*calloc)(umemVirtual *, size_t, size_t) = self->vptr->calloc;
  uintptr_t adr = (calloc ? calloc : umemVirtual_calloc)(self, nmemb, size);
  return adr != umem_null_of(self) ? adr : umem_refused(self, before, nbytes);
}

__attribute__((noinline)) void umem_free_in_full(void *ctx, uintptr_t adr, void const *caller) {
  UMEM_ENTER_AS("umem_free", caller);
  umemVirtual *self = umem_guard_blocks(ctx);
  if (!self || adr == umem_null_of(self)) return;
  if (self->vptr->free)
    self->vptr->free(self, adr);
  else
    lacks(self, "free");
}

void umem_free(void *ctx, uintptr_t adr) {
  umemVirtual *self = ctx;
  if (__builtin_expect(self && adr && umem_is_in_place(self), 1)) {
    if (umem_can(self, umemSilent)) {
      self->vptr->free(self, adr);
      return;
    }
    umemQuickFree *quick = umemQuick_free_of(self);
    if (quick) {
      quick(self, adr, __builtin_return_address(0));
      return;
    }
  }
  umem_free_in_full(ctx, adr, __builtin_return_address(0));
}

/* ---- set ---- */

enum { set_chunk = 1 << 20 };

void umemVirtual_set(umemVirtual *ctx, uintptr_t adr, int c, size_t nbytes) {
  umemVirtual *host = ctx->host;
  if (!host || !ctx->vptr->copy_from) {
    umemVirtual_fail(ctx, umemNotImplementedError, "%s has no method set, and no %s to do without",
                     umem_get_device_name(ctx), host ? "copy_from" : "host");
    return;
  }
  size_t chunk = nbytes < set_chunk ? nbytes : set_chunk;
  uint64_t before = umem_thread.failures;
  uintptr_t buffer = umem_alloc(host, chunk);
  if (buffer == umem_null_of(host)) {
    umemVirtual_adopt(ctx, before);
    return;
  }
  memset((void *)buffer, c, chunk);
  for (size_t done = 0; done < nbytes && umem_thread.failures == before; done += chunk) {
    if (chunk > nbytes - done) chunk = nbytes - done;
    ctx->vptr->copy_from(ctx, adr + done, host, buffer, chunk);
  }
  umem_finish(ctx); /* the buffer may still be read */
  umem_free(host, buffer);
}

umemStatusType umem_set(void *ctx, uintptr_t adr, int c, size_t nbytes) {
  UMEM_ENTER();
  uint64_t before = umem_thread.failures;
  umemVirtual *self = umem_guard(ctx);
  if (!self || !nbytes || !umem_validate(self, adr, nbytes, umemWritable))
    return umem_result(before);
  void (*slot)(umemVirtual *, uintptr_t, int, size_t) = self->vptr->set;
  (slot ? slot : umemVirtual_set)(self, adr, c, nbytes);
  return umem_result(before);
}
