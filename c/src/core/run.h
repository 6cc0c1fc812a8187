/* run.h - copies of runs, bytes without gaps. */
#ifndef UMEM_CORE_RUN_H
#define UMEM_CORE_RUN_H

#include <stddef.h>
#include <umem/base.h>

/* Lets self, which is src or dst, copy the layout by a route of its own (copy_direct in virtual.h). Returns
 * false, with nothing touched or recorded, where it has none. */
bool umem_copy_direct(umemVirtual *self, umemVirtual *src, uintptr_t src_adr, umemVirtual *dst,
                      uintptr_t dst_adr, umemLayout const *layout);

/* The same as a leg of its own, for a copy that is watched (watch.h). */
bool umem_copy_direct_watched(umemVirtual *self, umemVirtual *src, uintptr_t src_adr,
                              umemVirtual *dst, uintptr_t dst_adr, umemLayout const *layout);

/* Copies a validated run of nbytes > 0 by the best route. */
void umem_copy_run(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                   size_t nbytes);

/* ---- the two ends of a copy through host memory ---- */

/* The genuine umemHost for a copy between src and dst: dst itself where it is one, so that its
 * failures are its own, else the one that src or dst was given. Returns NULL, and records a status, where there
 * is none. */
umemVirtual *umem_host_between(umemVirtual *src, umemVirtual *dst);

/* Reads from src to, or writes to dst from, the pointer buffer; host is a umem_host_between. */
void umem_read_run(umemVirtual *src, uintptr_t src_adr, umemVirtual *host, void *buffer, size_t n);
void umem_write_run(umemVirtual *dst, uintptr_t dst_adr, umemVirtual *host, void const *buffer,
                    size_t n);

/* The same as a leg of the copy, whose other end is a buffer of umem (core/watch.h). */
void umem_read_leg(umemVirtual *src, uintptr_t src_adr, umemVirtual *host, void *buffer, size_t n);
void umem_write_leg(umemVirtual *dst, uintptr_t dst_adr, umemVirtual *host, void const *buffer,
                    size_t n);

/* ---- through a buffer ---- */

/* Copies a validated run of nbytes in chunks through host memory: neither end can read or write the other. */
void umem_stage(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                size_t nbytes);

enum { umemStageBesideFrom = 32 << 10 }; /* bytes; shorter runs go through a buffer */

/* Copies a run without a buffer where it can. Returns false, with nothing recorded, where it cannot: some of the
 * bytes may be in dst then. */
typedef bool umemStageBeside(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst,
                             uintptr_t dst_adr, size_t nbytes);

/* Lets umem_stage ask beside first, for runs from umemStageBesideFrom on. For the one family of contexts whose
 * memory neither the CPU nor a device reaches. Repeatable; from any thread. */
void umem_stage_ask(umemStageBeside *beside);

#endif
