/* umem/limit.h - a context that gives out no more than so many bytes of another. */
#ifndef UMEM_LIMIT_H
#define UMEM_LIMIT_H

#include <umem/base.h>

/* Passes every call on to another context, upstream, but keeps at most maximum bytes live. A request
 * beyond that fails with umemMemoryError and never reaches upstream.
 *
 * A block counts with the bytes that were asked for, without what alignment and upstream add. A block that
 * is resized counts with its new size, also while the old one exists. Blocks of upstream that were not
 * allocated through ctx do not count. A request counts from its beginning: when several threads together
 * ask for more than is left, some of them fail, even if upstream then refuses another one.
 *
 * umem_get_info returns the lesser of upstream's figures and what the limit leaves.
 *
 * Threads: as many as upstream allows. */
typedef struct umemLimit {
  umemVirtual super;
  void *impl; /* owned */
  uintptr_t reserved[7];
} umemLimit;

/* upstream: any context; borrowed, it must live longer than ctx. maximum: in bytes; 0 allows no
 * block.
 * Errors: umemValueError for NULL, umemMemoryError; the status of an upstream that is not
 * constructed. */
UMEM_EXTERN umemStatusType umemLimit_ctor(umemLimit *ctx, void *upstream, size_t maximum);

/* The same, but ctx owns upstream and destroys it in umem_dtor (the memory of the struct stays the
 * caller's). After a failure upstream is still the caller's. */
UMEM_EXTERN umemStatusType umemLimit_adopt(umemLimit *ctx, void *upstream, size_t maximum);

/* The bytes that are live now. 0 with a status for a context that is not
 * constructed, or of another kind: umemTypeError. */
UMEM_EXTERN size_t umemLimit_used(umemLimit *ctx);

#endif
