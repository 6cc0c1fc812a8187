/* store_pair.h - runs between two files. */
#ifndef UMEM_STORE_PAIR_H
#define UMEM_STORE_PAIR_H

#include "stores/store.h"

/* Copies a cached run from one file to another, as core/run.h says of umemStageBeside. False for contexts that are
 * no File or MMap. */
bool umemStore_copy_pair(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                         size_t size);

#endif
