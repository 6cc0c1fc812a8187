/* live.h - the live contexts of the library that keep records, and searches in them.
 *
 * The constructor of a context adds it as its last step, and its method dtor removes it as its
 * first: both take the global lock. So while a thread holds this lock, no context of the list
 * ends. An allocation never looks at the list. Under the global lock no other lock may be waited
 * for: methods find and usage try to get theirs. */
#ifndef UMEM_CORE_LIVE_H
#define UMEM_CORE_LIVE_H

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <umem/virtual.h>

#include "base/thread.h"
#include "base/table.h"

/* A context in the list, newest first. In memory of the context that it owns itself; all zero at
 * first. */
typedef struct umemLive {
  umemVirtual *ctx; /* NULL: not in the list */
  struct umemLive *newer, *older;
} umemLive;

/* Adds ctx, if it has a method find or usage. */
void umemLive_add(umemLive *live, umemVirtual *ctx);

/* Removes it. Does nothing if it is not in the list. */
void umemLive_remove(umemLive *live);

/* Under the global lock. */
umemLive *umemLive_newest(void);

/* Searches ctx, or the outermost layer below that keeps records. Sets ctx and name of *found,
 * too. */
umemSearch umemLive_search(umemVirtual *ctx, uintptr_t adr, umemFound *found);

/* Searches all contexts whose addresses are pointers, the newest first: a context is constructed
 * after what it stands on, so the first that has a block is the outermost. Takes the global
 * lock. Sets all members of *found. */
umemSearch umemLive_search_all(uintptr_t adr, umemFound *found);

/* Writes what umem_describe_contexts does, of at most `most` contexts. Under the global lock. */
size_t umemLive_describe(char *text, size_t size, unsigned most);

/* ---- what the library keeps beside a context ---- */

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

/* umemExtra_copy_label for callers that do not hold the global lock. */
static inline void umemExtra_label(umemVirtual const *ctx, char label[UMEM_LABEL_SIZE]) {
  UMEM_LOCKED(&umem_global_lock);
  umemExtra_copy_label(ctx, label);
}

#endif
