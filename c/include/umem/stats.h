/* umem/stats.h - a context that counts the blocks and bytes that are allocated from another one. */
#ifndef UMEM_STATS_H
#define UMEM_STATS_H

#include <umem/base.h>

/* A umemStats passes every call on to another context, upstream, and counts blocks and bytes. It
 * counts the requested bytes, without padding for alignment or bytes that upstream adds. Calls that
 * fail do not count. A block counts until its free has returned. Blocks that were allocated
 * directly from upstream do not count.
 *
 * If upstream maps memory page by page (umemPages in umem/virtual.h), so does ctx: a page counts as
 * a block while it has memory, also where it is moved. A umemPool over ctx counts with the pages
 * and chunks that it holds.
 *
 * Threads: as many as upstream allows. */
typedef struct umemStats {
  umemVirtual super;
  void *impl; /* owned */
  uintptr_t reserved[7];
} umemStats;

/* Figures of the life of a context, or of a scope in it. In a scope all figures begin at 0: the
 * current ones are negative when more was freed than allocated. */
typedef struct umemStatsFigures {
  size_t size; /* sizeof(umemStatsFigures) as the caller was compiled; set it before the call */
  int64_t current_bytes; /* live now */
  int64_t peak_bytes;    /* the largest value of current_bytes so far; not less than 0 */
  int64_t total_bytes;   /* of all allocations, and of all resizes with their new sizes */
  int64_t current_count; /* the same three of blocks */
  int64_t peak_count;
  int64_t total_count;
  char label[UMEM_LABEL_SIZE]; /* of the context; "" without one */
} umemStatsFigures;

/* All zero, except the size. */
#define UMEM_STATS_FIGURES_INIT                                                                    \
  { sizeof(umemStatsFigures), 0, 0, 0, 0, 0, 0, "" }

/* upstream: any context; borrowed, it must live longer than ctx.
 * Errors: umemValueError for NULL, umemMemoryError; the status of an upstream that is not
 * constructed. */
UMEM_EXTERN umemStatusType umemStats_ctor(umemStats *ctx, void *upstream);

/* Constructs ctx as umemStats_ctor does, but ctx owns upstream: umem_dtor(ctx) destructs it. The
 * caller still owns the memory of the struct. After a failure the caller still owns upstream. */
UMEM_EXTERN umemStatusType umemStats_adopt(umemStats *ctx, void *upstream);

/* Writes the figures since ctx was constructed, at most figures->size bytes of them. Errors:
 * umemValueError if figures is NULL or its size is too small; umemTypeError, here and below, if ctx
 * is not a umemStats. */
UMEM_EXTERN umemStatusType umemStats_get(umemStats *ctx, umemStatsFigures *figures);

/* Begins a scope, whose figures begin at 0. Scopes nest, and belong to ctx: calls of all threads
 * count in all open scopes. Errors: umemMemoryError. */
UMEM_EXTERN umemStatusType umemStats_push(umemStats *ctx);

/* Ends the scope that was begun last. Writes its figures as umemStats_get does, unless figures is
 * NULL. Errors: umemValueError if no scope is open; as umemStats_get. After an error no scope has
 * ended. */
UMEM_EXTERN umemStatusType umemStats_pop(umemStats *ctx, umemStatsFigures *figures);

/* Sets peaks to the current figures and totals to 0, in open scopes too. */
UMEM_EXTERN umemStatusType umemStats_reset(umemStats *ctx);

#endif
