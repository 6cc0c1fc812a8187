/* quick.h - functions of a context that umem_alloc and umem_free call before they do anything else.
 *
 * A context may have one or both beside the methods alloc and free of its table. umem has neither noted which function runs
 * nor put pthread_cancel off. So a quick function serves only what needs no lock, no other context and no status;
 * everything else it passes on, as the last thing that it does, to umem_alloc_in_full or umem_free_in_full, which call
 * the method of the table. */
#ifndef UMEM_QUICK_H
#define UMEM_QUICK_H

#include <umem/context.h>

/* Allocates nbytes, which may be 0, for a context whose null is 0. caller: where umem_alloc returns to. */
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

#endif
