/* memory.c - dispatch of allocation, free, set and hints, and their defaults. */
#include "core/memory.h"
#include "base/number.h"
#include "core/hook.h"
#include "core/live.h"
#include "core/ram.h"

#include <stdlib.h>
#include <string.h>
#include <umem/advise.h>

/* ---- allocation ---- */

/* umem_check for the methods alloc and free: also contexts with umemPromptBlocks do not put
 * cancellation off. */
static inline umemVirtual *check_blocks(void *ctx) {
  umemVirtual *self = ctx;
  bool good = self && self->vptr && umem_is_in_place(self) &&
              (self->capabilities & (umemPrompt | umemPromptBlocks));
  return __builtin_expect(good, 1) ? self : umem_check_slowly(ctx);
}

__attribute__((noinline)) uintptr_t umem_alloc_in_full(void *ctx, size_t nbytes,
                                                       void const *caller) {
  UMEM_ENTER_AS("umem_alloc", caller);
  umemVirtual *self = check_blocks(ctx);
  if (!self) return umem_null(ctx);
  if (!self->vptr->alloc) return umem_lacks(self, "alloc");
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

/* The two functions whose cost shows. A context with quick functions or umemSilent is constructed,
 * or a copy of one, needs no name for messages, and null is 0; all else, and what failed, takes the
 * long way. */
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
  umemVirtual *self = umem_check(ctx);
  if (!self) return umem_null(ctx);
  size_t nbytes;
  if (__builtin_mul_overflow(nmemb, size, &nbytes))
    return UMEM_FAIL_AS(umem_null_of(self), self, umemMemoryError,
                        "%zu members of %zu bytes exceed any memory", nmemb, size);
  if (!nbytes) nmemb = size = 1;
  if (!umem_allows(self, umemWritable)) return umem_null_of(self);
  uintptr_t (*calloc)(umemVirtual *, size_t, size_t) = self->vptr->calloc;
  uintptr_t adr = (calloc ? calloc : umemVirtual_calloc)(self, nmemb, size);
  return adr != umem_null_of(self) ? adr : umem_refused(self, before, nbytes);
}

__attribute__((noinline)) void umem_free_in_full(void *ctx, uintptr_t adr, void const *caller) {
  UMEM_ENTER_AS("umem_free", caller);
  umemVirtual *self = check_blocks(ctx);
  if (!self || adr == umem_null_of(self)) return;
  umem_leave_block(self, adr);
  if (self->vptr->free)
    self->vptr->free(self, adr);
  else
    umem_lacks(self, "free");
}

void umem_free(void *ctx, uintptr_t adr) {
  umemVirtual *self = ctx;
  if (__builtin_expect(self && adr && umem_is_in_place(self) && !umem_has_transfers(), 1)) {
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
  umemVirtual *self = umem_check(ctx);
  if (!self || !nbytes || !umem_validate(self, adr, nbytes, umemWritable)) return UMEM_RESULT();
  void (*slot)(umemVirtual *, uintptr_t, int, size_t) = self->vptr->set;
  (slot ? slot : umemVirtual_set)(self, adr, c, nbytes);
  return UMEM_RESULT();
}

/* ---- alignment ---- */

/* Whether the origin of aligned could be kept. */
static bool keep_origin(umemVirtual *ctx, uintptr_t aligned, uintptr_t origin) {
  UMEM_LOCKED(&umem_global_lock);
  umemExtra *extra = umemExtra_make(ctx);
  return extra && umemTable_insert(&extra->origins, aligned, origin);
}

/* The origin of aligned, which leaves the table when taken; aligned itself when it is not there. */
static uintptr_t origin_of(umemVirtual *ctx, uintptr_t aligned, bool take) {
  uintptr_t origin = aligned;
  UMEM_LOCKED(&umem_global_lock);
  umemExtra *extra = ctx->base;
  umemTableCell *cell = extra ? umemTable_find(&extra->origins, aligned) : NULL;
  if (cell) {
    origin = cell->value;
    if (take) umemTable_remove(&extra->origins, cell);
  }
  return origin;
}

uintptr_t umemVirtual_aligned_alloc(umemVirtual *ctx, size_t alignment, size_t size) {
  if (alignment <= ctx->alignment) return umem_alloc(ctx, size);
  uintptr_t null = umem_null_of(ctx);
  uintptr_t origin = umem_alloc(ctx, size + alignment - 1);
  if (origin == null) return null;
  uintptr_t aligned = (origin + alignment - 1) & ~(uintptr_t)(alignment - 1);
  if (keep_origin(ctx, aligned, origin)) return aligned;
  umemVirtual_fail(ctx, umemMemoryError, "no memory to remember an aligned block");
  umem_free(ctx, origin);
  return null;
}

uintptr_t umemVirtual_aligned_origin(umemVirtual *ctx, uintptr_t adr) {
  return origin_of(ctx, adr, false);
}

/* A block whose free is refused lives on, and can be freed again. */
void umemVirtual_aligned_free(umemVirtual *ctx, uintptr_t adr) {
  uint64_t before = umem_thread.failures;
  uintptr_t origin = origin_of(ctx, adr, true);
  umem_free(ctx, origin);
  if (umem_thread.failures != before && origin != adr) keep_origin(ctx, adr, origin);
}

/* A large alignment takes addresses, and on some contexts memory. */
static uintptr_t refused(umemVirtual *ctx, uint64_t before, size_t alignment, size_t size) {
  if (umem_thread.failures == before && alignment > ctx->alignment)
    umemVirtual_fail(ctx, umemMemoryError, "%s cannot allocate %zu bytes at a multiple of %zu",
                     umem_get_device_name(ctx), size, alignment);
  return umem_refused(ctx, before, size);
}

uintptr_t umem_aligned_alloc(void *ctx, size_t alignment, size_t size) {
  UMEM_ENTER();
  uint64_t before = umem_thread.failures;
  umemVirtual *self = umem_check(ctx);
  if (!self) return umem_null(ctx);
  if (!umem_is_power_of_two(alignment))
    return UMEM_FAIL_AS(umem_null_of(self), self, umemValueError,
                        "alignment %zu is not a power of two", alignment);
  if (size > SIZE_MAX - alignment)
    return UMEM_FAIL_AS(umem_null_of(self), self, umemMemoryError,
                        "%zu bytes at alignment %zu exceed any memory", size, alignment);
  uintptr_t (*slot)(umemVirtual *, size_t, size_t) = self->vptr->aligned_alloc;
  uintptr_t adr = (slot ? slot : umemVirtual_aligned_alloc)(self, alignment, size + !size);
  return adr != umem_null_of(self) ? adr : refused(self, before, alignment, size);
}

uintptr_t umem_aligned_origin(void *ctx, uintptr_t adr) {
  UMEM_ENTER();
  umemVirtual *self = umem_check(ctx);
  if (!self) return umem_null(ctx);
  if (adr == umem_null_of(self))
    return UMEM_FAIL_AS(adr, self, umemValueError, "the address is null");
  uintptr_t (*slot)(umemVirtual *, uintptr_t) = self->vptr->aligned_origin;
  return (slot ? slot : umemVirtual_aligned_origin)(self, adr);
}

void umem_aligned_free(void *ctx, uintptr_t adr) {
  UMEM_ENTER();
  umemVirtual *self = umem_check(ctx);
  if (!self || adr == umem_null_of(self)) return;
  umem_leave_block(self, adr);
  void (*slot)(umemVirtual *, uintptr_t) = self->vptr->aligned_free;
  (slot ? slot : umemVirtual_aligned_free)(self, adr);
}

void umem_free_aligned(void *ctx, uintptr_t adr) {
  UMEM_ENTER();
  umem_aligned_free(ctx, adr);
}

/* ---- hints ---- */

umemStatusType umem_advise(void *ctx, uintptr_t adr, size_t nbytes, umemAdvice advice, int device) {
  UMEM_ENTER();
  uint64_t before = umem_thread.failures;
  umemVirtual *self = umem_check(ctx);
  if (!self || !nbytes || !umem_validate(self, adr, nbytes, 0)) return umem_result(before);
  if ((unsigned)advice > umemAdviceAccessedBy || device < UMEM_CPU)
    return umemVirtual_fail(self, umemValueError, "there is no advice %d for device %d",
                            (int)advice, device);
  umemVirtual *layer = UMEM_LAYER_WITH(self, advise);
  if (layer)
    layer->vptr->advise(layer, adr, nbytes, advice, device);
  else
    umem_refuse_advice(self, advice, device);
  return umem_record_on_layers(layer, self, before);
}

/* ---- blocks of objects that end ---- */

unsigned umem_generation(void) { return umem_fork_count(); }

void umemVirtual_leave(umemVirtual *ctx, uintptr_t adr, bool aligned) {
  while (ctx && ctx->vptr) {
    void (*leave)(umemVirtual *, uintptr_t, bool) = UMEM_SLOT(ctx, leave);
    if (leave) {
      leave(ctx, adr, aligned);
      return;
    }
    ctx = umem_below(ctx);
  }
}

umemStatusType umem_end_block(void *ctx, uintptr_t adr, bool aligned, bool keeps,
                              unsigned generation) {
  UMEM_ENTER_AS(aligned ? "umem_aligned_free" : "umem_free", __builtin_return_address(0));
  umemVirtual *self = ctx;
  bool kept = self && (umem_is_of_parent(self, generation) || (keeps && umem_can(self, umemKeeps)));
  if (!kept)
    umem_free_as(ctx, adr, aligned);
  else if (umem_is_in_place(self) && adr != umem_null_of(self))
    umemVirtual_leave(self, adr, aligned);
  return umem_result_of(&umem_entry_);
}
