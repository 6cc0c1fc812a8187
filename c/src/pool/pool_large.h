/* pool_large.h - large blocks of a pool. See pool.h. All under the lock. */
#ifndef UMEM_POOL_LARGE_H
#define UMEM_POOL_LARGE_H

#include "pool/pool_core.h"
#include "pool/pool_range.h"

/* Allocates a block that is not part of a span, from the free memory of the list. */
umemPoolResult umemPoolLarge_alloc(umemPoolFreeList *list, size_t size, size_t alignment,
                                   uintptr_t *adr);

/* Frees the block. Returns umemValueError if no such block begins at adr, and umemMemoryError if there is no RAM for
 * the record, which can happen if the block comes from another list. It then changes nothing, and records no
 * failure. */
umemStatusType umemPoolLarge_free(umemPoolFreeList *list, uintptr_t adr);

/* The bytes of the live block that begins at adr; 0 when there is none. */
uint64_t umemPoolLarge_extent(umemPoolCore *core, uintptr_t adr);

/* The live block that contains adr: where it begins, and its bytes; 0 when there is none. */
uint64_t umemPoolLarge_around(umemPoolCore *core, uintptr_t adr, uintptr_t *start);

/* Frees the ranges of all blocks on the quick lists, so that they join their neighbours. */
void umemPoolLarge_coalesce(umemPoolFreeList *list);

#endif
