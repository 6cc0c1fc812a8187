/* umem/limit.h - a context that gives out no more than so many bytes of another. */
#ifndef UMEM_LIMIT_H
#define UMEM_LIMIT_H

#include <umem/base.h>

/* Everything is that of the context below, upstream, but that at most maximum bytes are live at any
 * time: a request beyond is umemMemoryError and never reaches upstream. What counts is what was
 * asked for, not what alignment and upstream add to it; a block that is resized counts with its new
 * size, also while both are there. Blocks of upstream that were not allocated through ctx do not
 * count. A request counts as soon as it is made: where several threads ask for more than there is,
 * some are refused, also when upstream then refuses another.
 *
 * umem_get_info tells the lesser of upstream's figures and what the limit leaves.
 *
 * Threads: as many as upstream allows. */
typedef struct umemLimit {
  umemVirtual super;
  void *impl; /* owned */
  uintptr_t reserved[7];
} umemLimit;

/* upstream: any context; borrowed, it must live longer than ctx. maximum: in bytes; 0 lets nothing
 * through.
 * Errors: umemValueError for NULL, umemMemoryError; the status of an upstream that is not
 * constructed. */
UMEM_EXTERN umemStatusType umemLimit_ctor(umemLimit *ctx, void *upstream, size_t maximum);

/* The same, but ctx owns upstream from now on: its end is upstream's, by umem_dtor (the struct
 * stays the caller's). After a failure upstream is still the caller's. */
UMEM_EXTERN umemStatusType umemLimit_adopt(umemLimit *ctx, void *upstream, size_t maximum);

/* The bytes that are live now. 0 with a status for a context that is not
 * constructed, or of another kind: umemTypeError. */
UMEM_EXTERN size_t umemLimit_used(umemLimit *ctx);

#endif
