/* plan.h - who moves the bytes of a copy, and copies of runs: bytes without gaps. */
#ifndef UMEM_CORE_PLAN_H
#define UMEM_CORE_PLAN_H

#include <stddef.h>
#include <umem/base.h>

/* Lets the source, or else the destination, copy the layout alone, if it plans that (plan_copy and
 * copy_direct in virtual.h). Returns true if one of them has done so, or has recorded a failure.
 * Returns false, with nothing touched or recorded, if neither does. */
bool umem_copy_direct(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                      umemLayout const *layout);

/* Copies a validated run of nbytes > 0 by the best route. */
void umem_copy_run(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                   size_t nbytes);

/* Copies a validated run of nbytes > 0 in chunks through a buffer in host memory, by the methods
 * copy_to and copy_from. For two sides of which the CPU can address neither: also for a method
 * copy_direct that finds only when it copies that its own way is closed. */
void umem_copy_buffered(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                        size_t nbytes);

/* ---- many runs: many.c ---- */

/* Copies validated runs, of which none has a byte of the target of another one or of its own, from
 * src to dst in any order. Sets their states. After a failure, which is recorded, one of them is
 * umemRunFailed, unless the context that copies them cannot say which. */
void umem_copy_runs(umemVirtual *src, umemVirtual *dst, umemCopyRun *runs, size_t count);

/* Starts to read runs of src that are copied soon. Advice only. */
typedef void umemAhead(umemVirtual *src, umemCopyRun const *runs, size_t count);

/* As umem_copy_runs, one run after the other, by several threads where that is faster. Each calls
 * ahead, if it is not NULL, before it copies the part that it has taken before. */
void umem_copy_each_run(umemVirtual *src, umemVirtual *dst, umemCopyRun *runs, size_t count,
                        umemAhead *ahead);

/* ---- the two ends of a copy through host memory ---- */

/* Returns the genuine umemHost for a copy between src and dst: dst itself if it is one, so that
 * its failures are its own, else the one that src or dst was given. Returns NULL, and records a
 * status, if there is none. */
umemVirtual *umem_host_between(umemVirtual *src, umemVirtual *dst);

/* Reads from src to, or writes to dst from, the pointer buffer; host is a umem_host_between. */
void umem_read_run(umemVirtual *src, uintptr_t src_adr, umemVirtual *host, void *buffer, size_t n);
void umem_write_run(umemVirtual *dst, uintptr_t dst_adr, umemVirtual *host, void const *buffer,
                    size_t n);

/* umem_read_run and umem_write_run as a step of a copy whose other end is a buffer of umem. */
void umem_fill_buffer(umemVirtual *src, uintptr_t src_adr, umemVirtual *host, void *buffer,
                      size_t n);
void umem_empty_buffer(umemVirtual *dst, uintptr_t dst_adr, umemVirtual *host, void const *buffer,
                       size_t n);

#endif
