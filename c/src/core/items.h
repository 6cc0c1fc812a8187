/* items.h - copies of items that are no run. */
#ifndef UMEM_ITEMS_H
#define UMEM_ITEMS_H

#include <umem/base.h>

/* Copies a validated layout of rank > 0 in normal form that neither side copies directly. */
void umem_copy_items(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                     umemLayout const *layout);

#endif
