/* memory.h - what contexts use of the dispatch of allocation. */
#ifndef UMEM_CORE_MEMORY_H
#define UMEM_CORE_MEMORY_H

#include <stddef.h>
#include <umem/base.h>
#include <umem/context.h>

#include "core/context.h"

/* ---- quick functions ---- */

/* Allocates nbytes, which may be 0, for a context whose null is 0. caller: where umem_alloc returns
 * to. */
typedef uintptr_t umemQuickAlloc(umemVirtual *ctx, size_t nbytes, void const *caller);

/* Frees the block at adr, which is not 0. */
typedef void umemQuickFree(umemVirtual *ctx, uintptr_t adr, void const *caller);

/* How the library uses umemVirtual.reserved; 0 where there is nothing. */
enum {
  umemQuickAllocAt,
  umemQuickFreeAt,
  umemQuickOwnAt /* this and the next are the context's own */
};

/* For constructors. */
static inline void umemQuick_set(umemVirtual *ctx, umemQuickAlloc *alloc, umemQuickFree *free) {
  ctx->reserved[umemQuickAllocAt] = (uintptr_t)alloc;
  ctx->reserved[umemQuickFreeAt] = (uintptr_t)free;
}

static inline umemQuickAlloc *umemQuick_alloc_of(umemVirtual const *ctx) {
  return (umemQuickAlloc *)ctx->reserved[umemQuickAllocAt];
}

static inline umemQuickFree *umemQuick_free_of(umemVirtual const *ctx) {
  return (umemQuickFree *)ctx->reserved[umemQuickFreeAt];
}

/* What umem_alloc and umem_free do for contexts without quick functions. */
uintptr_t umem_alloc_in_full(void *ctx, size_t nbytes, void const *caller);
void umem_free_in_full(void *ctx, uintptr_t adr, void const *caller);

/* ---- failed allocations ---- */

/* Returns the null of ctx. Makes sure that the method has recorded a failure since before, which
 * old methods may forget. */
static inline uintptr_t umem_refused(umemVirtual *ctx, uint64_t before, size_t nbytes) {
  if (umem_thread.failures == before)
    umemVirtual_fail(ctx, umemMemoryError, "%s cannot allocate %zu bytes",
                     umem_get_device_name(ctx), nbytes);
  return umem_null_of(ctx);
}

/* ---- realloc ---- */

/* Whether a block at adr of at least size bytes may have the old_size that realloc was given. If
 * not, records umemValueError on ctx. */
bool umem_has_size(umemVirtual *ctx, uintptr_t adr, uint64_t size, size_t old_size);

/* The default of the method realloc. */
uintptr_t umem_move_unknown(umemVirtual *ctx, uintptr_t adr, size_t old_size, size_t new_size);

/* realloc by a new block, a copy and a free, for contexts that know that adr is a block of old_size
 * bytes. */
uintptr_t umem_move_block(umemVirtual *ctx, uintptr_t adr, size_t old_size, size_t new_size);

/* ---- free ---- */

static inline void umem_free_as(umemVirtual *ctx, uintptr_t adr, bool aligned) {
  if (aligned)
    umem_aligned_free(ctx, adr);
  else
    umem_free(ctx, adr);
}

#endif
