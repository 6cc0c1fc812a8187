/* request.h - what the four methods that allocate have in common.
 *
 * An adaptor writes one function that carries a request out or passes it on, and one for both kinds of free
 * if it needs one. Two macros make the methods of these functions, two others name them in the table:
 *
 *     static uintptr_t mine_ask(umemVirtual *ctx, umemRequest const *request) { ... }
 *     UMEM_ADAPTOR_ALLOCATES(mine_ask)
 *     static void mine_free(umemVirtual *ctx, uintptr_t adr, bool aligned) { ... }
 *     UMEM_ADAPTOR_FREES(mine_free)
 *
 *     static struct umemVtbl const vtbl = {
 *         UMEM_ADAPTOR_ALLOCATION_BY(mine_ask), UMEM_ADAPTOR_FREE_BY(mine_free), ...};
 *
 * A function that does little is UMEM_ADAPTOR_INLINE instead of static: then it is compiled into each of its
 * methods, and its branches by the kind of request cost nothing. */
#ifndef UMEM_REQUEST_H
#define UMEM_REQUEST_H

#include <stddef.h>
#include <umem/base.h>

#define UMEM_ADAPTOR_INLINE static inline __attribute__((always_inline))

typedef enum umemHow { umemByAlloc, umemByCalloc, umemByAligned, umemByRealloc } umemHow;

typedef struct umemRequest {
  umemHow how;
  size_t nbytes;    /* of the block; at least 1 */
  size_t alignment; /* of umemByAligned; else 1 */
  uintptr_t adr;    /* of umemByRealloc: the old block, */
  size_t old_size;  /* and the bytes that the caller says it has */
} umemRequest;

/* Makes the request of ctx, by its public function. Before calloc, nmemb * size has been checked. */
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
