/* memory.h - what contexts use of the dispatch of allocation. */
#ifndef UMEM_CORE_MEMORY_H
#define UMEM_CORE_MEMORY_H

#include <stddef.h>
#include <umem/base.h>
#include <umem/context.h>

#include "base/thread.h"
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

/* ---- requests of adaptors ---- */

#define UMEM_ADAPTOR_INLINE static inline __attribute__((always_inline))

typedef enum umemHow { umemByAlloc, umemByCalloc, umemByAligned, umemByRealloc } umemHow;

typedef struct umemRequest {
  umemHow how;
  size_t nbytes;    /* of the block; at least 1 */
  size_t alignment; /* of umemByAligned; else 1 */
  uintptr_t adr;    /* of umemByRealloc: the old block, */
  size_t old_size;  /* and the bytes that the caller says it has */
} umemRequest;

/* Makes the request of ctx, by its public function. Before calloc, nmemb * size has been
 * checked. */
static inline uintptr_t umemRequest_ask(umemVirtual *ctx, umemRequest const *request) {
  switch (request->how) {
  case umemByAlloc:
    break;
  case umemByCalloc:
    return umem_calloc(ctx, 1, request->nbytes);
  case umemByAligned:
    return umem_aligned_alloc(ctx, request->alignment, request->nbytes);
  case umemByRealloc:
    return umem_realloc(ctx, request->adr, request->old_size, request->nbytes);
  }
  return umem_alloc(ctx, request->nbytes);
}

static inline void umem_free_as(umemVirtual *ctx, uintptr_t adr, bool aligned) {
  if (aligned)
    umem_aligned_free(ctx, adr);
  else
    umem_free(ctx, adr);
}

#define UMEM_ADAPTOR_ALLOCATES(ask)                                                                \
  static uintptr_t ask##_alloc(umemVirtual *ctx, size_t nbytes) {                                  \
    return ask(ctx, &(umemRequest){umemByAlloc, nbytes, 1, 0, 0});                                 \
  }                                                                                                \
  static uintptr_t ask##_calloc(umemVirtual *ctx, size_t nmemb, size_t size) {                     \
    return ask(ctx, &(umemRequest){umemByCalloc, nmemb * size, 1, 0, 0});                          \
  }                                                                                                \
  static uintptr_t ask##_aligned(umemVirtual *ctx, size_t alignment, size_t size) {                \
    return ask(ctx, &(umemRequest){umemByAligned, size, alignment, 0, 0});                         \
  }                                                                                                \
  static uintptr_t ask##_realloc(umemVirtual *ctx, uintptr_t adr, size_t old_size,                 \
                                 size_t new_size) {                                                \
    return ask(ctx, &(umemRequest){umemByRealloc, new_size, 1, adr, old_size});                    \
  }
#define UMEM_ADAPTOR_ALLOCATION_BY(ask)                                                            \
  .alloc = ask##_alloc, .calloc = ask##_calloc, .aligned_alloc = ask##_aligned,                    \
  .realloc = ask##_realloc

#define UMEM_ADAPTOR_FREES(give)                                                                   \
  static void give##_plain(umemVirtual *ctx, uintptr_t adr) { give(ctx, adr, false); }             \
  static void give##_aligned(umemVirtual *ctx, uintptr_t adr) { give(ctx, adr, true); }
#define UMEM_ADAPTOR_FREE_BY(give) .free = give##_plain, .aligned_free = give##_aligned

#endif
