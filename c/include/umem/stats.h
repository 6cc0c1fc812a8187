/* umem/stats.h - a context that counts what is allocated from another. */
#ifndef UMEM_STATS_H
#define UMEM_STATS_H

#include <umem/base.h>

/* Passes every call on to another context, upstream, and counts blocks and bytes. Bytes are those that
 * were asked for, without what alignment and upstream add. Calls that fail do not count. A block counts
 * until its free has returned. Blocks of upstream that were not allocated through ctx do not count.
 *
 * Threads: as many as upstream allows. */
typedef struct umemStats {
  umemVirtual super;
  void *impl; /* owned */
  uintptr_t reserved[7];
} umemStats;

/* Figures of the life of a context, or of a scope in it. In a scope all figures begin at 0: the current ones
 * are negative when more was freed than allocated. */
typedef struct umemStatsFigures {
  size_t size; /* sizeof(umemStatsFigures) as the caller was compiled; set it before the call */
  int64_t current_bytes; /* live now */
  int64_t peak_bytes;    /* the most that current_bytes has been; not less than 0 */
  int64_t total_bytes;   /* of all allocations, and of all resized blocks with their new sizes */
  int64_t current_count; /* the same three of blocks */
  int64_t peak_count;
  int64_t total_count;
} umemStatsFigures;

/* What umemStatsFigures start as. */
#define UMEM_STATS_FIGURES_INIT                                                                    \
  { sizeof(umemStatsFigures), 0, 0, 0, 0, 0, 0 }

/* upstream: any context; borrowed, it must live longer than ctx.
 * Errors: umemValueError for NULL, umemMemoryError; the status of an upstream that is not
 * constructed. */
UMEM_EXTERN umemStatusType umemStats_ctor(umemStats *ctx, void *upstream);

/* The same, but ctx owns upstream and destroys it in umem_dtor (the memory of the struct stays the
 * caller's). After a failure upstream is still the caller's. */
UMEM_EXTERN umemStatusType umemStats_adopt(umemStats *ctx, void *upstream);

/* Writes the figures since ctx was constructed, at most figures->size bytes of them.
 * Errors: umemValueError when figures is NULL or its size too small to be true; umemTypeError, here and
 * below, for a context of another kind. */
UMEM_EXTERN umemStatusType umemStats_get(umemStats *ctx, umemStatsFigures *figures);

/* Begins a scope, whose figures begin at 0. Scopes nest, and belong to ctx: calls of all threads count in
 * all open scopes.
 * Errors: umemMemoryError. */
UMEM_EXTERN umemStatusType umemStats_push(umemStats *ctx);

/* Ends the scope that was begun last and writes its figures, as umemStats_get does; NULL: nowhere.
 * Errors: umemValueError, and no scope ends, where none is open, or as umemStats_get. */
UMEM_EXTERN umemStatusType umemStats_pop(umemStats *ctx, umemStatsFigures *figures);

/* Sets peaks to the current figures and totals to 0, in open scopes too. */
UMEM_EXTERN umemStatusType umemStats_reset(umemStats *ctx);

#endif
