/* adaptor.h - what all adaptors have in common.
 *
 * An adaptor is a context over another one, its upstream. Its public struct is a umemVirtual, the
 * pointer impl and seven reserved words; what impl points to begins with a umemAdaptor. Its table
 * of methods is made of the groups below and of what it does differently:
 *
 *     UMEM_ADAPTOR_ALLOCATES(mine_allocate)
 *
 *     static struct umemVtbl const vtbl = {
 *         .dtor = mine_dtor, UMEM_ADAPTOR_ALLOCATION_BY(mine_allocate), UMEM_ADAPTOR_FREE,
 *         UMEM_ADAPTOR_BYTES, UMEM_ADAPTOR_ORDER, UMEM_ADAPTOR_ALWAYS};
 *
 * What a group passes on goes through the public functions to the upstream, whose failure becomes
 * the adaptor's as well. Addresses are the upstream's: pointers or offsets, never looked into.
 */
#ifndef UMEM_ADAPTOR_H
#define UMEM_ADAPTOR_H

#include <umem/base.h>

#include "core/live.h"
#include "core/memory.h"

typedef struct umemAdaptor {
  umemVirtual *upstream; /* borrowed, or owned */
  bool owns_upstream;
  unsigned generation; /* of the process that has constructed it */
  umemLive live;
} umemAdaptor;

/* The impl of an adaptor: right behind its base, whatever its type. */
static inline void *umemAdaptor_impl(umemVirtual *ctx) { return *(void **)(ctx + 1); }

static inline umemVirtual *umemAdaptor_upstream(umemVirtual *ctx) {
  return ((umemAdaptor *)umemAdaptor_impl(ctx))->upstream;
}

/* Notes on ctx what its upstream has recorded since before. Whether there was anything. */
static inline bool umemAdaptor_failed(umemVirtual *ctx, uint64_t before) {
  return umem_thread.failures != before && umemVirtual_adopt(ctx, before) != umemOK;
}

/* What upstream records from here to the end of the block of code is a failure of ctx, too. */
#define UMEM_ADAPTOR_RECORDS(ctx)                                                                  \
  __attribute__((cleanup(umemAdaptor_end_call), unused))                                           \
  umemAdaptorCall const umem_call_ = {(ctx), umem_thread.failures}
typedef struct umemAdaptorCall {
  umemVirtual *ctx;
  uint64_t before;
} umemAdaptorCall;
static inline void umemAdaptor_end_call(umemAdaptorCall const *call) {
  umemAdaptor_failed(call->ctx, call->before);
}

/* Records on ctx what was held while its upstream was asked, if there was anything. */
static inline void umemAdaptor_record_held(umemVirtual *ctx, umemAttempt const *held) {
  uint64_t before = umem_thread.failures;
  if (umemAttempt_record(held) != umemOK) umemVirtual_adopt(ctx, before);
}

/* ---- construction and end ---- */

/* Makes *ctx an adaptor of this kind over upstream. owns: upstream ends with it. Capabilities,
 * alignment, space, host and type are upstream's; impl has impl_size bytes, all zero but for its
 * umemAdaptor. Then kind->start adds the rest: it gets the whole struct of options where the kind
 * has an options_type, and options as they are otherwise. It returns false after it has recorded a
 * failure on ctx and undone its work.
 *
 * Returns umemOK; or a failure, after which ctx answers each call with a status, and upstream is
 * as it was. */
umemStatusType umemAdaptor_construct(void *ctx, void *upstream, bool owns, umemKind const *kind,
                                     void const *options);

/* Defines the two constructors of an adaptor, with the parameters that come last: the first
 * borrows its upstream, the second takes it over. options: an expression for what start gets. */
#define UMEM_ADAPTOR_CTORS(type, kind, options, ...)                                               \
  umemStatusType type##_ctor(type *ctx, __VA_ARGS__) {                                             \
    UMEM_ENTER();                                                                                  \
    return umemAdaptor_construct(ctx, upstream, false, &(kind), options);                          \
  }                                                                                                \
  umemStatusType type##_adopt(type *ctx, __VA_ARGS__) {                                            \
    UMEM_ENTER();                                                                                  \
    return umemAdaptor_construct(ctx, upstream, true, &(kind), options);                           \
  }

/* The construct of schemes of adaptors, whose user is their umemKind. */
umemStatusType umemAdaptor_open(void *ctx, void *upstream, umemOptionValue const *place,
                                umemOptionValue const *given, void *user);

/* What the schemes of all adaptors have in common; and of those that umem_open makes with the
 * struct of options alone. */
#define UMEM_ADAPTOR_KIND(type, text, table)                                                       \
  .size = sizeof(umemScheme), .name = (text), .context_size = sizeof(type), .vtbl = (table),       \
  .decorates = true
#define UMEM_ADAPTOR_OPENS(kind) .construct = umemAdaptor_open, .user = (void *)&(kind)

/* The first step of the dtor of an adaptor with a method find or usage: from now on these
 * are not called. */
static inline void umemAdaptor_unlist(umemVirtual *ctx) {
  umemLive_remove(&((umemAdaptor *)umemAdaptor_impl(ctx))->live);
}

/* The last step of an adaptor's dtor: ends an upstream that it owns, whose failures become those of
 * ctx, and frees impl. The whole dtor for those that hold nothing else. */
void umemAdaptor_dtor(umemVirtual *ctx);

/* ---- requests: the four methods that allocate, as one ---- */

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
static inline uintptr_t umem_alloc_as(umemVirtual *ctx, umemRequest const *request) {
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

/* ---- methods that pass on, and the functions that do so for methods of an adaptor's own ---- */

/* Makes a request of the upstream, and gives a block back to it. Failures become those of ctx. */
static inline uintptr_t umemAdaptor_allocate(umemVirtual *ctx, umemRequest const *request) {
  UMEM_ADAPTOR_RECORDS(ctx);
  return umem_alloc_as(umemAdaptor_upstream(ctx), request);
}

static inline void umemAdaptor_give_back(umemVirtual *ctx, uintptr_t adr, bool aligned) {
  UMEM_ADAPTOR_RECORDS(ctx);
  umem_free_as(umemAdaptor_upstream(ctx), adr, aligned);
}

void umemAdaptor_free(umemVirtual *ctx, uintptr_t adr);
void umemAdaptor_aligned_free(umemVirtual *ctx, uintptr_t adr);
uintptr_t umemAdaptor_aligned_origin(umemVirtual *ctx, uintptr_t adr);
void umemAdaptor_set(umemVirtual *ctx, uintptr_t adr, int c, size_t nbytes);
/* Copies by the method copy_direct of ctx. */
void umemAdaptor_copy_to(umemVirtual *ctx, uintptr_t src_adr, umemVirtual *that, uintptr_t dst_adr,
                         size_t nbytes);
void umemAdaptor_copy_from(umemVirtual *ctx, uintptr_t dst_adr, umemVirtual *that,
                           uintptr_t src_adr, size_t nbytes);
/* Always true: the copy begins again with ctx replaced by its upstream on either side, so that each
 * layer sees the copy and contexts without an adaptor keep their plans. */
bool umemAdaptor_copy_direct(umemVirtual *ctx, umemVirtual *src, uintptr_t src_adr,
                             umemVirtual *dst, uintptr_t dst_adr, umemLayout const *layout);
/* The layer that copies of ctx reach unchanged by those above. NULL, with a failure, where one is
 * not constructed any more. */
umemVirtual *umemAdaptor_mover(umemVirtual *ctx);
/* Hands the runs to the upstream. */
bool umemAdaptor_copy_runs(umemVirtual *ctx, umemVirtual *src, umemVirtual *dst, umemCopyRun *runs,
                           size_t count);
void umemAdaptor_wait(umemVirtual *ctx, umemVirtual *other);
umemVirtual *umemAdaptor_upstream_method(umemVirtual *ctx);

/* The method leave of a pool, whose blocks are not those of its upstream: does nothing. */
void umemAdaptor_leave(umemVirtual *ctx, uintptr_t adr, bool aligned);

/* ---- groups of methods ---- */

/* For what the macros below name, where nanoseconds count: each method gets its own copy, in which
 * how, or aligned, is constant. */
#define UMEM_ADAPTOR_INLINE static inline __attribute__((always_inline))

/* Defines the methods that allocate, each by the function by(ctx, request), and names them in the
 * table: umemAdaptor_allocate in an adaptor that passes all requests on. */
#define UMEM_ADAPTOR_ALLOCATES(by)                                                                 \
  static uintptr_t by##_alloc(umemVirtual *ctx, size_t nbytes) {                                   \
    return by(ctx, &(umemRequest){umemByAlloc, nbytes, 1, 0, 0});                                  \
  }                                                                                                \
  static uintptr_t by##_calloc(umemVirtual *ctx, size_t nmemb, size_t size) {                      \
    return by(ctx, &(umemRequest){umemByCalloc, nmemb * size, 1, 0, 0});                           \
  }                                                                                                \
  static uintptr_t by##_aligned(umemVirtual *ctx, size_t alignment, size_t size) {                 \
    return by(ctx, &(umemRequest){umemByAligned, size, alignment, 0, 0});                          \
  }                                                                                                \
  static uintptr_t by##_realloc(umemVirtual *ctx, uintptr_t adr, size_t old_size,                  \
                                size_t new_size) {                                                 \
    return by(ctx, &(umemRequest){umemByRealloc, new_size, 1, adr, old_size});                     \
  }
#define UMEM_ADAPTOR_ALLOCATION_BY(by)                                                             \
  .alloc = by##_alloc, .calloc = by##_calloc, .aligned_alloc = by##_aligned, .realloc = by##_realloc

/* Defines the methods that free by give(ctx, adr, aligned), and names them in the table. An adaptor
 * that passes all frees on has UMEM_ADAPTOR_FREE instead. */
#define UMEM_ADAPTOR_FREES(give)                                                                   \
  static void give##_plain(umemVirtual *ctx, uintptr_t adr) { give(ctx, adr, false); }             \
  static void give##_aligned(umemVirtual *ctx, uintptr_t adr) { give(ctx, adr, true); }
#define UMEM_ADAPTOR_FREE_BY(give) .free = give##_plain, .aligned_free = give##_aligned

/* The methods that copy, of an adaptor with a copy_direct of its own, which copies single runs and
 * layouts in both directions, and always returns true. */
#define UMEM_ADAPTOR_COPIES_BY(method)                                                             \
  .copy_to = umemAdaptor_copy_to, .copy_from = umemAdaptor_copy_from, .copy_direct = method

/* The groups that pass on. */
#define UMEM_ADAPTOR_FREE .free = umemAdaptor_free, .aligned_free = umemAdaptor_aligned_free
#define UMEM_ADAPTOR_BYTES                                                                         \
  .set = umemAdaptor_set, UMEM_ADAPTOR_COPIES_BY(umemAdaptor_copy_direct),                         \
  .copy_runs = umemAdaptor_copy_runs
#define UMEM_ADAPTOR_ORDER .wait = umemAdaptor_wait
/* In the table of every adaptor. synchronize, flush, trim and info, left NULL, are the
 * upstream's. */
#define UMEM_ADAPTOR_ALWAYS                                                                        \
  .upstream = umemAdaptor_upstream_method, .aligned_origin = umemAdaptor_aligned_origin

#endif
