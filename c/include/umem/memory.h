/* umem/memory.h - allocate, fill and free, on any context.
 *
 * All sizes are bytes. A request for 0 bytes is a request for 1. A failed allocation returns
 * umem_null(ctx), never a short block, and records a status.
 */
#ifndef UMEM_MEMORY_H
#define UMEM_MEMORY_H

#include <umem/context.h>

/* Returns the address of nbytes of uninitialised memory, aligned to at least 16 bytes in every
 * context of the library. The caller owns it until umem_free.
 * Errors: umemMemoryError. */
UMEM_EXTERN uintptr_t umem_alloc(void *ctx, size_t nbytes);

/* Like umem_alloc for nmemb * size bytes, all of which read as zero.
 * Errors: umemMemoryError, also when the product overflows; umemNotSupportedError where ctx is not
 * writable. */
UMEM_EXTERN uintptr_t umem_calloc(void *ctx, size_t nmemb, size_t size);

/* Frees a block of umem_alloc, umem_calloc or umem_realloc. Ignores umem_null(ctx).
 * Errors: umemValueError, and nothing is freed, for an address that is not a live block, where the
 * context has a table of its blocks (File, MMap; not Host, which leaves that to libc). */
UMEM_EXTERN void umem_free(void *ctx, uintptr_t adr);

/* Makes the block at adr new_size bytes long and returns its new address; the first
 * min(old_size, new_size) bytes are kept, the rest is uninitialised. adr is umem_null(ctx) or a
 * block of umem_alloc, umem_calloc or umem_realloc that was requested with old_size bytes. Free the result with
 * umem_free. The call may move the block; then the old address is no longer valid.
 * Errors: as umem_alloc and umem_copy_to; umemValueError when the block cannot have old_size bytes. Then
 * the old block is as it was, and the caller still owns it. All contexts of the library refuse an old_size that is
 * larger than the block, as far as they know its size: Track, Debug, Limit, Stats, files and CUDA's contexts
 * know it to the byte; Host, pools and Fixed know to what size they have rounded it. Track and Debug also
 * refuse an old_size that is smaller; others keep only that many bytes. */
UMEM_EXTERN uintptr_t umem_realloc(void *ctx, uintptr_t adr, size_t old_size, size_t new_size);

/* Like umem_alloc, at a multiple of alignment, any power of two.
 * Free it with umem_aligned_free.
 * Errors: umemValueError for an alignment that is no power of two; umemMemoryError, also when size
 * and alignment together overflow. */
UMEM_EXTERN uintptr_t umem_aligned_alloc(void *ctx, size_t alignment, size_t size);

/* The start of the underlying allocation that holds the aligned block at adr: adr itself, or less.
 * umem_null(ctx), and umemValueError, for null. */
UMEM_EXTERN uintptr_t umem_aligned_origin(void *ctx, uintptr_t adr);

/* Frees a block of umem_aligned_alloc; otherwise as umem_free. */
UMEM_EXTERN void umem_aligned_free(void *ctx, uintptr_t adr);

/* Another name of umem_aligned_free. */
UMEM_EXTERN void umem_free_aligned(void *ctx, uintptr_t adr);

/* Sets nbytes from adr on to the byte (unsigned char)c. 0 bytes are a no-op at any address.
 * Ordered on an ordered context.
 * Errors: umemValueError for null, or when adr + nbytes overflows; umemNotSupportedError where ctx
 * is not writable; umemIndexError outside of a live block, where the context has a table of its blocks. */
UMEM_EXTERN umemStatusType umem_set(void *ctx, uintptr_t adr, int c, size_t nbytes);

#endif
