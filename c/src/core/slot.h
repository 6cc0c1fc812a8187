/* slot.h - the methods of a context. */
#ifndef UMEM_SLOT_H
#define UMEM_SLOT_H

#include <stddef.h>
#include <umem/virtual.h>

/* The method in slot of a constructed ctx, or NULL where its table is too short or has none. */
#define UMEM_SLOT(ctx, slot)                                                                       \
  (offsetof(struct umemVtbl, slot) < (ctx)->vtbl_size ? (ctx)->vptr->slot : NULL)

/* The upstream of ctx; NULL where it has none, or is not constructed. Records nothing. */
static inline umemVirtual *umem_below(umemVirtual *ctx) {
  umemVirtual *(*upstream)(umemVirtual *) = ctx->vptr ? UMEM_SLOT(ctx, upstream) : NULL;
  return upstream ? upstream(ctx) : NULL;
}

#endif
