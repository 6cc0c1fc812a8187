/* aligned.c - dispatch of aligned allocation and its default, and the blocks of objects that end.
 *
 * The default allocates a larger block and hands out an aligned address inside it. Where the block begins is
 * kept in a table beside the memory, which the CPU may not be able to touch: umemVirtual.base. */
#include "base/lock.h"
#include "base/number.h"
#include "base/thread.h"
#include "core/enter.h"
#include "core/extra.h"
#include "core/guard.h"
#include "core/refused.h"
#include "core/request.h"

#include <stdlib.h>

/* ---- the default ---- */

/* Whether the origin of aligned could be kept. */
static bool keep_origin(umemVirtual *ctx, uintptr_t aligned, uintptr_t origin) {
  umemLock_acquire_global();
  umemExtra *extra = umemExtra_make(ctx);
  bool kept = extra && umemTable_insert(&extra->origins, aligned, origin);
  umemLock_release_global();
  return kept;
}

/* The origin of aligned, which leaves the table when taken; aligned itself when it is not there. */
static uintptr_t origin_of(umemVirtual *ctx, uintptr_t aligned, bool take) {
  uintptr_t origin = aligned;
  umemLock_acquire_global();
  umemExtra *extra = ctx->base;
  umemTableCell *cell = extra ? umemTable_find(&extra->origins, aligned) : NULL;
  if (cell) {
    origin = cell->value;
    if (take) umemTable_remove(&extra->origins, cell);
  }
  umemLock_release_global();
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

void umemVirtual_dtor(umemVirtual *ctx) {
  if (!ctx || !ctx->base || !umem_is_in_place(ctx)) return;
  umemExtra *extra = ctx->base;
  umemTable_clear(&extra->origins);
  free(extra);
  ctx->base = NULL;
}

/* ---- dispatch ---- */

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
  umemVirtual *self = umem_guard(ctx);
  if (!self) return umem_null(ctx);
  if (!umem_is_power_of_two(alignment)) {
    umemVirtual_fail(self, umemValueError, "alignment %zu is not a power of two", alignment);
    return umem_null_of(self);
  }
  if (size > SIZE_MAX - alignment) {
    umemVirtual_fail(self, umemMemoryError, "%zu bytes at alignment %zu exceed any memory", size,
                     alignment);
    return umem_null_of(self);
  }
  uintptr_t (*slot)(umemVirtual *, size_t, size_t) = self->vptr->aligned_alloc;
  uintptr_t adr = (slot ? slot : umemVirtual_aligned_alloc)(self, alignment, size + !size);
  return adr != umem_null_of(self) ? adr : refused(self, before, alignment, size);
}

uintptr_t umem_aligned_origin(void *ctx, uintptr_t adr) {
  UMEM_ENTER();
  umemVirtual *self = umem_guard(ctx);
  if (!self) return umem_null(ctx);
  if (adr == umem_null_of(self)) {
    umemVirtual_fail(self, umemValueError, "the address is null");
    return adr;
  }
  uintptr_t (*slot)(umemVirtual *, uintptr_t) = self->vptr->aligned_origin;
  return (slot ? slot : umemVirtual_aligned_origin)(self, adr);
}

void umem_aligned_free(void *ctx, uintptr_t adr) {
  UMEM_ENTER();
  umemVirtual *self = umem_guard(ctx);
  if (!self || adr == umem_null_of(self)) return;
  void (*slot)(umemVirtual *, uintptr_t) = self->vptr->aligned_free;
  (slot ? slot : umemVirtual_aligned_free)(self, adr);
}

void umem_free_aligned(void *ctx, uintptr_t adr) {
  UMEM_ENTER();
  umem_aligned_free(ctx, adr);
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
  bool stays =
      self && (umem_is_of_parent(self, generation) || (keeps && umem_can(self, umemKeeps)));
  if (!stays)
    umem_free_as(ctx, adr, aligned);
  else if (umem_is_in_place(self) && adr != umem_null_of(self))
    umemVirtual_leave(self, adr, aligned);
  return umem_result_of(&umem_entry_);
}
