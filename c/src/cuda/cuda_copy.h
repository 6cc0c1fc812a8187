/* cuda_copy.h - methods of contexts that GPUs copy: runs of bytes, and waiting. */
#ifndef UMEM_CUDA_COPY_H
#define UMEM_CUDA_COPY_H

#include <umem/base.h>

void umemCuda_synchronize(umemVirtual *ctx);
void umemCuda_set(umemVirtual *ctx, uintptr_t adr, int c, size_t nbytes);
void umemCuda_copy_to(umemVirtual *ctx, uintptr_t src_adr, umemVirtual *that, uintptr_t dst_adr,
                      size_t nbytes);
void umemCuda_copy_from(umemVirtual *ctx, uintptr_t dst_adr, umemVirtual *that, uintptr_t src_adr,
                        size_t nbytes);
void umemCuda_info(umemVirtual *ctx, umemInfo *info);

#endif
