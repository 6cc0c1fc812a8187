/* umem/connect.h - a second address for an array, in another context, and copies between the two.
 *
 *     uintptr_t h = umem_connect(&cuda, d, n, &host, 64);    // a host address for the array at d
 *     ...                                                    // work on (double *)h
 *     umem_sync_from(&cuda, d, &host, h, n);                 // bring d up to date
 *     umem_disconnect(&cuda, d, &host, h, 64);
 *
 * If both contexts use the same memory, both addresses are equal, and umem_sync_to and
 * umem_sync_from copy nothing. So the same program makes no copy that it does not need. */
#ifndef UMEM_CONNECT_H
#define UMEM_CONNECT_H

#include <umem/context.h>

/* Returns an address in dst for the nbytes at src_adr. dst_alignment: a power of two, or 0 for any
 * alignment.
 *
 * - If both contexts use the same memory, or if src's addresses are pointers and dst is a plain
 *   Host, the result is src_adr itself, provided that it is a multiple of dst_alignment. What the
 *   program may not write through src, it may not write here. A umemGuarded does not share its
 *   memory with a Host.
 * - Otherwise the result is a new block of nbytes in dst, at a multiple of dst_alignment, which
 *   holds a copy of the bytes.
 *
 * Waits for the queued work of both contexts. End the connection with umem_disconnect. Errors: as
 * umem_aligned_alloc and umem_copy_to. The result is then umem_null(dst), and nothing stays
 * allocated. */
UMEM_EXTERN uintptr_t umem_connect(void *src, uintptr_t src_adr, size_t nbytes, void *dst,
                                   size_t dst_alignment);

/* Ends a connection: waits for the queued work of both contexts, then frees the block that
 * umem_connect has allocated at dst_adr, if it has. Copies nothing. src, src_adr and dst_alignment
 * are those of the call of umem_connect. Free the block at src_adr only afterwards. Does nothing if
 * dst_adr is null.
 *
 * A call with wrong arguments does nothing, does not wait, and returns a status: umemValueError for
 * a context that is not constructed, or is over one that has ended, for an alignment that is not a
 * power of two, and for a dst_adr other than src_adr where umem_connect returns src_adr. Any other
 * call ends the connection. If a wait fails, it still frees the block, and returns the status of
 * the wait. The block stays allocated only if the context refuses to free it (see umem_free); the
 * status is then that of umem_aligned_free. */
UMEM_EXTERN umemStatusType umem_disconnect(void *src, uintptr_t src_adr, void *dst,
                                           uintptr_t dst_adr, size_t dst_alignment);

/* Copies nbytes, at most those of the connection, from src to dst. For umem_sync_from the
 * destination is the first argument. Copies nothing if both addresses are the same memory. Order
 * and errors: as umem_copy_to. */
UMEM_EXTERN umemStatusType umem_sync_to(void *src, uintptr_t src_adr, void *dst, uintptr_t dst_adr,
                                        size_t nbytes);
UMEM_EXTERN umemStatusType umem_sync_from(void *dst, uintptr_t dst_adr, void *src,
                                          uintptr_t src_adr, size_t nbytes);

/* As umem_sync_to and umem_sync_from, with the bounds check of umem_copy_to_safe. */
UMEM_EXTERN umemStatusType umem_sync_to_safe(void *src, uintptr_t src_adr, size_t src_size,
                                             void *dst, uintptr_t dst_adr, size_t dst_size,
                                             size_t nbytes);
UMEM_EXTERN umemStatusType umem_sync_from_safe(void *dst, uintptr_t dst_adr, size_t dst_size,
                                               void *src, uintptr_t src_adr, size_t src_size,
                                               size_t nbytes);

#endif
