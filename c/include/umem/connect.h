/* umem/connect.h - two addresses for one array, kept in sync.
 *
 *     uintptr_t h = umem_connect(&cuda, d, n, &host, 64);    // a host address for the array at d
 *     ...                                                    // work on (double *)h
 *     umem_sync_from(&cuda, d, &host, h, n);                 // bring d up to date
 *     umem_disconnect(&cuda, d, &host, h, 64);
 *
 * When both contexts are one memory there is one address and syncs move nothing: the same program makes no
 * copies where it needs none.
 */
#ifndef UMEM_CONNECT_H
#define UMEM_CONNECT_H

#include <umem/context.h>

/* Returns an address in dst that is paired with src_adr: src_adr itself when both are the same
 * device, or src's addresses are pointers and dst is a plain Host, and src_adr is a multiple of
 * dst_alignment; else a new block of nbytes in dst, at a multiple of dst_alignment (a power of two;
 * 0 where any will do), that holds the same bytes. End it with umem_disconnect.
 * src_adr keeps the access that it has in src: memory that is only readable there must not be written.
 * Waits for the queued work of ordered sides.
 * Errors: as umem_aligned_alloc and umem_copy_to; then umem_null(dst) is returned and nothing stays
 * allocated. */
UMEM_EXTERN uintptr_t umem_connect(void *src, uintptr_t src_adr, size_t nbytes, void *dst,
                                   size_t dst_alignment);

/* Ends a connection: waits for the queued work of ordered sides, then frees what umem_connect allocated
 * for dst_adr, and nothing else. src, src_adr and dst_alignment are those given to umem_connect; src_adr
 * may be freed only after. Moves no data. Ignores dst_adr null.
 *
 * A call with wrong arguments does nothing and does not wait: a context that is not constructed, or is
 * over one that has ended; an alignment that is no power of two; both sides one memory, and dst_adr not
 * src_adr (umemValueError). Any other call ends the connection, also if a wait fails: it then frees the
 * block and returns the status of the wait. The block stays allocated only if the context refuses to free
 * it (see umem_free); the status is then that of umem_aligned_free. */
UMEM_EXTERN umemStatusType umem_disconnect(void *src, uintptr_t src_adr, void *dst,
                                           uintptr_t dst_adr, size_t dst_alignment);

/* Copies nbytes, at most those connected, from src to dst (umem_sync_from: the destination stands
 * first). Nothing moves when both addresses are the same memory. Ordered like umem_copy_to, and with
 * its errors. */
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
