/* cuda_attach.h - blocks of other processes in the addresses of this one; see cuda_share.h. */
#ifndef UMEM_CUDA_ATTACH_H
#define UMEM_CUDA_ATTACH_H

#include "cuda/cuda_state.h"

/* Methods. */
bool umemCuda_attach(umemVirtual *ctx, umemHandle const *handle, int fd, uintptr_t *adr);
bool umemCuda_detach(umemVirtual *ctx, uintptr_t adr);

#endif
