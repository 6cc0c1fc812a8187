/* cuda_gds_copy.h - copies between files and device memory by GPUDirect Storage. */
#ifndef UMEM_CUDA_GDS_COPY_H
#define UMEM_CUDA_GDS_COPY_H

#include "cuda/cuda_state.h"

/* Bytes of the shortest copy, of which the registration of the file is a small part. */
enum { umemCudaGdsFrom = 8 << 20 };

/* Copies nbytes between device memory of ctx and other by cuFile, after the work that is queued on ctx's stream and
 * before what is queued on it later. Complete on return. direction: umemCudaToDevice or umemCudaToHost. Returns true:
 * done, or failed with a status on the context that has failed. Returns false, with nothing recorded, where cuFile has
 * no direct path between the two, other lends no file, the stream is being captured, or cuFile stops: bytes of the
 * destination may be written then. In no scope. */
bool umemCudaGds_copy(umemVirtual *ctx, uintptr_t device_adr, umemVirtual *other,
                      uintptr_t other_adr, size_t nbytes, umemCudaDirection direction);

#endif
