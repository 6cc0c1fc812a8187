/* umem/memory.h - allocate, fill and free, on any context.
 *
 * All sizes are in bytes. A request for 0 bytes allocates 1 byte. A failed allocation records a
 * status and returns umem_null(ctx), never a block that is too small. */
#ifndef UMEM_MEMORY_H
#define UMEM_MEMORY_H

#include <umem/context.h>

/* Returns the address of nbytes of uninitialised memory: in every context of the library a multiple
 * of 16. The caller owns the block until umem_free. Errors: umemMemoryError. */
UMEM_EXTERN uintptr_t umem_alloc(void *ctx, size_t nbytes);

/* Like umem_alloc for nmemb * size bytes, which are all zero. Errors: umemMemoryError, also if the
 * product overflows; umemNotSupportedError if ctx is not writable. */
UMEM_EXTERN uintptr_t umem_calloc(void *ctx, size_t nmemb, size_t size);

/* Frees a block of umem_alloc, umem_calloc or umem_realloc. Ignores umem_null(ctx). Errors:
 * umemValueError for an address that is not a live block; nothing is freed. All contexts of the
 * library check this, except Host and adaptors that only pass the call on to a Host (Limit, Stats,
 * Retry, Fault, Log): there such a free is undefined, as with libc. */
UMEM_EXTERN void umem_free(void *ctx, uintptr_t adr);

/* Resizes the block at adr to new_size bytes and returns its new address. The first min(old_size,
 * new_size) bytes stay the same, the rest is uninitialised. adr is umem_null(ctx) or a block of
 * umem_alloc, umem_calloc or umem_realloc that was requested with old_size bytes. Free the result
 * with umem_free. The call may move the block; then the old address is no longer valid. Errors: as
 * umem_alloc and umem_copy_to; umemValueError if the block cannot have old_size bytes. After a
 * failure the old block is as it was, and the caller still owns it. All contexts of the library
 * refuse an old_size that is larger than the block, as far as they know its size: Track, Debug,
 * Limit, Stats, files and CUDA's contexts know the exact size; Host, pools and Fixed know the size
 * to which they have rounded it up. Track and Debug also refuse an old_size that is smaller; others
 * then keep only old_size bytes. */
UMEM_EXTERN uintptr_t umem_realloc(void *ctx, uintptr_t adr, size_t old_size, size_t new_size);

/* Like umem_alloc, at a multiple of alignment, which is any power of two. Free the block with
 * umem_aligned_free. Errors: umemValueError for an alignment that is not a power of two;
 * umemMemoryError, also if size and alignment together overflow. */
UMEM_EXTERN uintptr_t umem_aligned_alloc(void *ctx, size_t alignment, size_t size);

/* Returns where the allocation begins that contains the aligned block at adr: at adr itself, or
 * before it. Returns umem_null(ctx), and records umemValueError, if adr is null. */
UMEM_EXTERN uintptr_t umem_aligned_origin(void *ctx, uintptr_t adr);

/* Frees a block of umem_aligned_alloc; otherwise as umem_free. */
UMEM_EXTERN void umem_aligned_free(void *ctx, uintptr_t adr);

/* Another name of umem_aligned_free. */
UMEM_EXTERN void umem_free_aligned(void *ctx, uintptr_t adr);

/* What an object calls at its end for the block that it owned, in C++, in Python, and in a
 * umemArray: umem_free, or umem_aligned_free if aligned is true. But the block stays allocated
 * - in a child of fork, if ctx is umemShared and the parent had the block: its memory is that of
 *   the parent. generation: the umem_generation() of when the object got the block;
 * - if keeps is true and ctx is umemKeeps: what was written to a named file stays.
 * Adaptors forget a block that stays: a umemTrack does not report it as a leak. A program that
 * wants to free the block in any case calls umem_free. Returns the status of this call. Errors: as
 * umem_free. */
UMEM_EXTERN umemStatusType umem_end_block(void *ctx, uintptr_t adr, bool aligned, bool keeps,
                                          unsigned generation);

/* A number of this process that a child of fork does not have: how many forks lead to the process.
 * Costs little. */
UMEM_EXTERN unsigned umem_generation(void);

/* Sets nbytes from adr on to the byte (unsigned char)c. For 0 bytes it does nothing, at any
 * address. On an ordered context it may only queue the work. Errors: umemValueError for null, or if
 * adr + nbytes overflows; umemNotSupportedError if ctx is not writable. Contexts that check the
 * bounds of blocks, such as files and Debug, return umemIndexError outside of a live block. */
UMEM_EXTERN umemStatusType umem_set(void *ctx, uintptr_t adr, int c, size_t nbytes);

#endif
