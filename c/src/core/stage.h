/* stage.h - copies of runs through host memory. */
#ifndef UMEM_STAGE_H
#define UMEM_STAGE_H

#include <stddef.h>
#include <umem/base.h>

/* Copies a validated run of nbytes in chunks through host memory: neither end can read or write the other. */
void umem_stage(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                size_t nbytes);

#endif
