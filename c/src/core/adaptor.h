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
#include "core/request.h"

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
