/* stage.h - copies of runs through host memory. */
#ifndef UMEM_STAGE_H
#define UMEM_STAGE_H

#include <stddef.h>
#include <umem/base.h>

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
