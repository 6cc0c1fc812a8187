/* cuda_direct.h - routes between memories that a GPU addresses. */
#ifndef UMEM_CUDA_DIRECT_H
#define UMEM_CUDA_DIRECT_H

#include <umem/base.h>

/* The method copy_direct of contexts that GPUs copy. */
bool umemCuda_copy_direct(umemVirtual *ctx, umemVirtual *src, uintptr_t src_adr, umemVirtual *dst,
                          uintptr_t dst_adr, umemLayout const *layout);

#endif
