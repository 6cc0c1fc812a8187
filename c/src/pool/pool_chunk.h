/* pool_chunk.h - chunks of the upstream, and the large blocks in them. All under the lock. */
#ifndef UMEM_POOL_CHUNK_H
#define UMEM_POOL_CHUNK_H

#include "pool/pool_core.h"

/* ---- chunks ---- */

/* Takes a chunk of this size, a multiple of units, for the list. ample: the request that it is for
 * leaves some of it to others. The lock is open while the upstream is asked: nothing that was read
 * from the pool before holds afterwards, but all of the chunk is free. False, and why in *failure,
 * otherwise. */
bool umemPoolChunk_add(umemPoolFreeList *list, size_t size, size_t alignment, bool ample,
                       umemPoolFailure *failure);

/* Gives chunks back that are all free in the pool's own list, as long as at least keep bytes stay.
 * An attempt must be open. */
void umemPoolChunk_release(umemPoolCore *core, size_t keep);

/* Gives chunks back that are all free in the pool's own list, until nbytes are released, the
 * initial bytes are left, or no chunk is free. As few as possible. An attempt must be open. */
void umemPoolChunk_release_bytes(umemPoolCore *core, uint64_t nbytes);

/* Gives all special chunks back that are free. An attempt must be open. */
void umemPoolChunk_release_special(umemPoolCore *core);

/* Describes the chunk with the lowest address from `from` on in adr, nbytes and age; if there is
 * none, does nothing. */
void umemPoolChunk_next(umemPoolCore const *core, uintptr_t from, umemPoolRegion *region);

/* Gives all chunks back, with whatever is in them. */
void umemPoolChunk_end_all(umemPoolCore *core);

/* ---- large blocks ---- */

/* Allocates a block that is not part of a span, from the free memory of the list. */
umemPoolResult umemPoolLarge_alloc(umemPoolFreeList *list, size_t size, size_t alignment,
                                   uintptr_t *adr);

/* Frees the block. Returns umemValueError if no such block begins at adr, and umemMemoryError if
 * there is no RAM for the record, which can happen if the block comes from another list. It then
 * changes nothing, and records no failure. */
umemStatusType umemPoolLarge_free(umemPoolFreeList *list, uintptr_t adr);

/* The bytes of the live block that begins at adr; 0 when there is none. */
uint64_t umemPoolLarge_extent(umemPoolCore *core, uintptr_t adr);

/* The live block that contains adr: where it begins, and its bytes; 0 when there is none. */
uint64_t umemPoolLarge_containing(umemPoolCore *core, uintptr_t adr, uintptr_t *start);

/* Frees the ranges of all blocks on the quick lists, so that they join their neighbours. */
void umemPoolLarge_coalesce(umemPoolFreeList *list);

#endif
