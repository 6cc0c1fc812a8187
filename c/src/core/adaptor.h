/* adaptor.h - what all decorators share.
 *
 * A decorator is a context over another one, its upstream. Its public struct is a umemVirtual, the
 * pointer impl and seven reserved words; what impl points to begins with a umemAdaptor. Its table
 * of methods is made of the groups below and of what it does differently:
 *
 *     static struct umemVtbl const vtbl = {
 *         .dtor = mine_dtor, .alloc = mine_alloc, ..., UMEM_ADAPTOR_BYTES, UMEM_ADAPTOR_ALWAYS};
 *
 * What a group passes on goes through the public functions to the upstream, whose failure becomes
 * the decorator's as well. Addresses are the upstream's: pointers or offsets, never looked into.
 */
#ifndef UMEM_ADAPTOR_H
#define UMEM_ADAPTOR_H

#include "core/core.h"

typedef struct umemAdaptor {
  umemVirtual *upstream; /* borrowed; owned when adopted */
  bool adopted;
} umemAdaptor;

/* The impl of a decorator: right behind its base, whatever its type. */
static inline void *umemAdaptor_impl(umemVirtual *ctx) { return *(void **)(ctx + 1); }

static inline umemVirtual *umemAdaptor_upstream(umemVirtual *ctx) {
  return ((umemAdaptor *)umemAdaptor_impl(ctx))->upstream;
}

/* Notes on ctx what its upstream has recorded since before. Whether there was anything. */
static inline bool umemAdaptor_failed(umemVirtual *ctx, uint64_t before) {
  return umem_thread.failures != before && umemVirtual_adopt(ctx, before) != umemOK;
}

/* Records on ctx what was held while its upstream was asked, if there was anything. */
static inline void umemAdaptor_tell_held(umemVirtual *ctx, umemAttempt const *held) {
  uint64_t before = umem_thread.failures;
  if (umemAttempt_record(held) != umemOK) umemVirtual_adopt(ctx, before);
}

/* ctx as a constructed context of one kind, whose table is vtbl; NULL with a status otherwise:
 * umemTypeError for another kind than the one called so, "umemLimit". First step of functions that only
 * this kind has. */
umemVirtual *umemAdaptor_of_kind(void *ctx, struct umemVtbl const *vtbl, char const *kind);

/* ---- construction and end ---- */

/* Makes *ctx a decorator of upstream, which ends with it when adopts is true: capabilities,
 * alignment, space, host and label are taken over. Returns its impl, impl_size bytes that are zero
 * but for the umemAdaptor. NULL, with a status on ctx, when ctx or upstream is NULL or not
 * constructed, or without memory; ctx then answers each call with that status. */
void *umemAdaptor_construct(void *ctx, void *upstream, bool adopts, struct umemVtbl const *vtbl,
                            char const *name, size_t impl_size);

/* Undoes umemAdaptor_construct for a constructor that has recorded a failure: ctx as above,
 * upstream as it was. */
void umemAdaptor_abandon(umemVirtual *ctx);

/* The last step of a decorator's dtor: ends an adopted upstream, whose failures become those of
 * ctx, and frees impl. The whole dtor for those that hold nothing else. */
void umemAdaptor_dtor(umemVirtual *ctx);

/* ---- requests: what the four methods that allocate have in common ---- */

typedef enum umemHow { umemByAlloc, umemByCalloc, umemByAligned, umemByRealloc } umemHow;

typedef struct umemRequest {
  umemHow how;
  size_t nbytes;    /* of the block; at least 1 */
  size_t alignment; /* of umemByAligned; else 1 */
  uintptr_t adr;    /* of umemByRealloc: the old block, */
  size_t old_size;  /* and the bytes that the caller says it has */
} umemRequest;

/* Calls the public function of ctx that the request stands for. calloc: nmemb * size has been checked. */
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

/* An adaptor writes one function that carries a request out or passes it on, and one for both kinds of
 * free if it needs one. These two macros make the methods of them:
 *
 *     static uintptr_t mine_ask(umemVirtual *ctx, umemRequest const *request) { ... }
 *     UMEM_ADAPTOR_ALLOCATES(mine_ask)
 *     static void mine_free(umemVirtual *ctx, uintptr_t adr, bool aligned) { ... }
 *     UMEM_ADAPTOR_FREES(mine_free)
 *
 * UMEM_ADAPTOR_ALLOCATION_BY(mine_ask) and UMEM_ADAPTOR_FREE_BY(mine_free) name them in the table. */
/* For a function so small that it should be a part of each of its methods. */
#define UMEM_ADAPTOR_INLINE static inline __attribute__((always_inline))

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

/* ---- methods that pass on, and the functions that do so for methods of an adaptor's own ---- */

static inline uintptr_t umemAdaptor_ask(umemVirtual *ctx, umemRequest const *request) {
  uint64_t before = umem_thread.failures;
  uintptr_t adr = umemRequest_ask(umemAdaptor_upstream(ctx), request);
  umemAdaptor_failed(ctx, before);
  return adr;
}

static inline void umemAdaptor_give_back(umemVirtual *ctx, uintptr_t adr, bool aligned) {
  uint64_t before = umem_thread.failures;
  umem_free_as(umemAdaptor_upstream(ctx), adr, aligned);
  umemAdaptor_failed(ctx, before);
}

void umemAdaptor_free(umemVirtual *ctx, uintptr_t adr);
void umemAdaptor_aligned_free(umemVirtual *ctx, uintptr_t adr);
uintptr_t umemAdaptor_aligned_origin(umemVirtual *ctx, uintptr_t adr);
void umemAdaptor_set(umemVirtual *ctx, uintptr_t adr, int c, size_t nbytes);
void umemAdaptor_copy_to(umemVirtual *ctx, uintptr_t src_adr, umemVirtual *that, uintptr_t dst_adr,
                         size_t nbytes);
void umemAdaptor_copy_from(umemVirtual *ctx, uintptr_t dst_adr, umemVirtual *that,
                           uintptr_t src_adr, size_t nbytes);
/* Always true: the router is entered again with ctx replaced by its upstream on either side, so
 * that each layer sees the copy and the bare contexts keep their routes. */
bool umemAdaptor_copy_direct(umemVirtual *ctx, umemVirtual *src, uintptr_t src_adr,
                             umemVirtual *dst, uintptr_t dst_adr, umemLayout const *layout);
void umemAdaptor_wait(umemVirtual *ctx, umemVirtual *other);
umemVirtual *umemAdaptor_upstream_method(umemVirtual *ctx);

#define UMEM_ADAPTOR_FREE .free = umemAdaptor_free, .aligned_free = umemAdaptor_aligned_free
#define UMEM_ADAPTOR_BYTES                                                                         \
  .set = umemAdaptor_set, .copy_to = umemAdaptor_copy_to, .copy_from = umemAdaptor_copy_from,      \
  .copy_direct = umemAdaptor_copy_direct
#define UMEM_ADAPTOR_ORDER .wait = umemAdaptor_wait
/* In the table of every decorator. synchronize, flush, trim and info, left NULL, are the
 * upstream's. */
#define UMEM_ADAPTOR_ALWAYS                                                                        \
  .upstream = umemAdaptor_upstream_method, .aligned_origin = umemAdaptor_aligned_origin

#endif
