/* ends.h - the two ends of a copy that passes through host memory. */
#ifndef UMEM_ENDS_H
#define UMEM_ENDS_H

#include <stddef.h>
#include <umem/base.h>

/* The genuine umemHost for a copy between src and dst: dst itself where it is one, so that its
 * failures are its own, else the one that src or dst was given. Returns NULL, and records a status, where there
 * is none. */
umemVirtual *umem_host_between(umemVirtual *src, umemVirtual *dst);

/* Reads from src to, or writes to dst from, the pointer buffer; host is a umem_host_between. */
void umem_read_run(umemVirtual *src, uintptr_t src_adr, umemVirtual *host, void *buffer, size_t n);
void umem_write_run(umemVirtual *dst, uintptr_t dst_adr, umemVirtual *host, void const *buffer,
                    size_t n);

/* The same as a leg of the copy, whose other end is a buffer of umem (core/route.h). */
void umem_read_leg(umemVirtual *src, uintptr_t src_adr, umemVirtual *host, void *buffer, size_t n);
void umem_write_leg(umemVirtual *dst, uintptr_t dst_adr, umemVirtual *host, void const *buffer,
                    size_t n);

#endif
