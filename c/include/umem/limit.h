/* umem/limit.h - a context that limits how many bytes of another context are live at the same
 * time. */
#ifndef UMEM_LIMIT_H
#define UMEM_LIMIT_H

#include <umem/base.h>

/* A umemLimit passes every call on to another context, upstream. At most maximum bytes are live at
 * the same time. A request beyond the limit fails with umemMemoryError and does not reach upstream.
 *
 * A block counts with the requested bytes, without padding for alignment or bytes that upstream
 * adds. A resized block counts with its new size, also while the old block still exists. Blocks
 * that were allocated directly from upstream do not count. A request counts from its beginning: if
 * several threads together request more than is left, some requests fail, even if upstream refuses
 * another one of them later.
 *
 * If upstream maps memory page by page (umemPages in umem/virtual.h), so does ctx: a page counts as
 * a block while it has memory. A umemPool over ctx counts with the pages and chunks that it holds.
 *
 * umem_get_info returns how many bytes are left, or the figure of upstream if this is less.
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

/* Constructs ctx as umemLimit_ctor does, but ctx owns upstream: umem_dtor(ctx) destructs it. The
 * caller still owns the memory of the struct. After a failure the caller still owns upstream. */
UMEM_EXTERN umemStatusType umemLimit_adopt(umemLimit *ctx, void *upstream, size_t maximum);

/* Returns how many bytes are live now. Returns 0, and records a status, for a context that is not
 * constructed or is not a umemLimit (umemTypeError). */
UMEM_EXTERN size_t umemLimit_used(umemLimit *ctx);

#endif
