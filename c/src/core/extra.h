/* extra.h - what the library keeps of a context beside its struct, from the first time that there is something to keep.
 * All under the global lock, except that the context ends. */
#ifndef UMEM_EXTRA_H
#define UMEM_EXTRA_H

#include <stdlib.h>
#include <string.h>
#include <umem/virtual.h>

#include "base/lock.h"
#include "base/table.h"

/* What umemVirtual.base points to. */
typedef struct umemExtra {
  umemTable origins; /* of blocks of umemVirtual_aligned_alloc, by their addresses */
  char label[UMEM_LABEL_SIZE];
} umemExtra;

/* That of ctx, made if there is none yet. NULL without memory. */
static inline umemExtra *umemExtra_make(umemVirtual *ctx) {
  if (!ctx->base) ctx->base = calloc(1, sizeof(umemExtra));
  return ctx->base;
}

/* Copies the label of ctx, or "". */
static inline void umemExtra_copy_label(umemVirtual const *ctx, char label[UMEM_LABEL_SIZE]) {
  umemExtra const *extra = ctx->base;
  strcpy(label, extra ? extra->label : "");
}

/* The same for callers that do not hold the global lock. */
static inline void umemExtra_label(umemVirtual const *ctx, char label[UMEM_LABEL_SIZE]) {
  umemLock_acquire_global();
  umemExtra_copy_label(ctx, label);
  umemLock_release_global();
}

#endif
