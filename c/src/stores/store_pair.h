/* store_pair.h - runs between two files. */
#ifndef UMEM_STORE_PAIR_H
#define UMEM_STORE_PAIR_H

#include "stores/store.h"

/* See the method copy_direct in umem/virtual.h. */
bool umemStore_copy_direct(umemVirtual *ctx, umemVirtual *src, uintptr_t src_adr, umemVirtual *dst,
                           uintptr_t dst_adr, umemLayout const *layout);

#endif
