/* memory.c - dispatch of allocation, free and set, and their defaults. */
#include "base/thread.h"
#include "core/access.h"
#include "core/enter.h"
#include "core/guard.h"
#include "core/order.h"
#include "core/refused.h"

#include <string.h>

static uintptr_t lacks(umemVirtual *ctx, char const *method) {
  umemVirtual_fail(ctx, umemNotImplementedError, "%s has no method %s", umem_get_device_name(ctx),
                   method);
  return umem_null_of(ctx);
}

/* ---- allocation ---- */

static __attribute__((noinline)) uintptr_t alloc_in_full(void *ctx, size_t nbytes,
                                                         char const *function, void const *caller) {
  UMEM_ENTER_AS(function, caller);
  umemVirtual *self = umem_guard_blocks(ctx);
  if (!self) return umem_null(ctx);
  if (!self->vptr->alloc) return lacks(self, "alloc");
  uintptr_t adr = self->vptr->alloc(self, nbytes + !nbytes);
  return adr != umem_null_of(self) ? adr : umem_refused(self, umem_entry_.failures, nbytes);
}

/* The two functions whose cost shows. A context that has umemSilent is constructed, or a copy of
 * one, needs no name for messages, and null is 0; all else, and what failed, takes the long way. */
uintptr_t umem_alloc(void *ctx, size_t nbytes) {
  umemVirtual *self = ctx;
  if (__builtin_expect(self && umem_can(self, umemSilent) && umem_is_in_place(self), 1)) {
    uintptr_t adr = self->vptr->alloc(self, nbytes + !nbytes);
    if (__builtin_expect(adr != 0, 1)) return adr;
  }
  return alloc_in_full(ctx, nbytes, __func__, __builtin_return_address(0));
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

static __attribute__((noinline)) void free_in_full(void *ctx, uintptr_t adr, char const *function,
                                                   void const *caller) {
  UMEM_ENTER_AS(function, caller);
  umemVirtual *self = umem_guard_blocks(ctx);
  if (!self || adr == umem_null_of(self)) return;
  if (self->vptr->free)
    self->vptr->free(self, adr);
  else
    lacks(self, "free");
}

void umem_free(void *ctx, uintptr_t adr) {
  umemVirtual *self = ctx;
  if (__builtin_expect(self && umem_can(self, umemSilent) && umem_is_in_place(self) && adr, 1))
    self->vptr->free(self, adr);
  else
    free_in_full(ctx, adr, __func__, __builtin_return_address(0));
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
