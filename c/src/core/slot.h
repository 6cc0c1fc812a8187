/* slot.h - the methods of a context. */
#ifndef UMEM_SLOT_H
#define UMEM_SLOT_H

#include <stddef.h>
#include <umem/virtual.h>

/* The method in slot of a constructed ctx, or NULL where its table is too short or has none. */
#define UMEM_SLOT(ctx, slot)                                                                       \
  (offsetof(struct umemVtbl, slot) < (ctx)->vtbl_size ? (ctx)->vptr->slot : NULL)

#endif
