/* pool_block.h - the methods for blocks, which pools and their views share. */
#ifndef UMEM_POOL_BLOCK_H
#define UMEM_POOL_BLOCK_H

#include "pool/pool_core.h"
#include "pool/pool_span.h"

/* ---- blocks ---- */

uintptr_t umemPoolBlock_alloc(umemVirtual *ctx, size_t nbytes);
uintptr_t umemPoolBlock_aligned_alloc(umemVirtual *ctx, size_t alignment, size_t size);
uintptr_t umemPoolBlock_aligned_origin(umemVirtual *ctx, uintptr_t adr);
uintptr_t umemPoolBlock_realloc(umemVirtual *ctx, uintptr_t adr, size_t old_size, size_t new_size);
void umemPoolBlock_free(umemVirtual *ctx, uintptr_t adr);
umemSearch umemPoolBlock_find(umemVirtual *ctx, uintptr_t adr, umemFound *found);

#define UMEM_POOL_BLOCKS                                                                           \
  .alloc = umemPoolBlock_alloc, .free = umemPoolBlock_free,                                        \
  .aligned_alloc = umemPoolBlock_aligned_alloc, .aligned_origin = umemPoolBlock_aligned_origin,    \
  .aligned_free = umemPoolBlock_free, .realloc = umemPoolBlock_realloc, .find = umemPoolBlock_find

/* Frees a block of a small class, which is not live any more, where the calling thread's cache had
 * no room for it at once. Takes the lock. */
void umemPoolBlock_make_room(umemPoolFreeList *list, unsigned class, umemPoolEntry entry);

/* Records why nbytes cannot be allocated. Call this and the functions below without the lock. */
void umemPoolBlock_record_failure(umemVirtual *ctx, umemPoolFailure const *failure, size_t nbytes);

/* Acquires the lock of the pool of ctx, and holds failures back. */
void umemPoolBlock_lock(umemVirtual *ctx, umemAttempt *held);

/* Releases it, and records what was held back. */
void umemPoolBlock_unlock(umemVirtual *ctx, umemAttempt *held);

/* Records failures that were held back under the lock. */
void umemPoolBlock_record_held(umemVirtual *ctx, umemAttempt const *held);

/* Whether the pool of ctx still exists; otherwise records a status. */
bool umemPoolBlock_has_pool(umemVirtual *ctx);

/* ---- quick functions ---- */

/* Gives a constructed pool or view its quick functions, unless its addresses are offsets. */
void umemPoolQuick_set(umemVirtual *ctx);

#endif
