/* pool_large.h - large blocks of a pool. See pool.h. All under the lock. */
#ifndef UMEM_POOL_LARGE_H
#define UMEM_POOL_LARGE_H

#include "pool/pool_core.h"
#include "pool/pool_range.h"

/* A live block that is no part of a span, from what the list has free. */
umemPoolResult umemPoolLarge_alloc(umemPoolFreeList *list, size_t size, size_t alignment,
                                   uintptr_t *adr);

/* umemValueError, with nothing changed, when no such block begins at adr; umemMemoryError likewise when
 * there is no RAM for the record, which can happen when the block comes from another list. Records no
 * failure. */
umemStatusType umemPoolLarge_free(umemPoolFreeList *list, uintptr_t adr);

/* The bytes of the live block that begins at adr; 0 when there is none. */
uint64_t umemPoolLarge_extent(umemPoolCore *core, uintptr_t adr);

/* Frees the ranges of all blocks on the quick lists, so that they join their neighbours. */
void umemPoolLarge_coalesce(umemPoolFreeList *list);

#endif
