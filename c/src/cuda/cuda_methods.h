/* cuda_methods.h - methods of contexts that GPUs copy. */
#ifndef UMEM_CUDA_METHODS_H
#define UMEM_CUDA_METHODS_H

#include "cuda/cuda_state.h"

/* ---- cuda_copy.c: runs of bytes, and waiting ---- */

void umemCuda_synchronize(umemVirtual *ctx);
void umemCuda_set(umemVirtual *ctx, uintptr_t adr, int c, size_t nbytes);
void umemCuda_copy_to(umemVirtual *ctx, uintptr_t src_adr, umemVirtual *that, uintptr_t dst_adr,
                      size_t nbytes);
void umemCuda_copy_from(umemVirtual *ctx, uintptr_t dst_adr, umemVirtual *that, uintptr_t src_adr,
                        size_t nbytes);
void umemCuda_info(umemVirtual *ctx, umemInfo *info);
int umemCuda_dlpack_device(umemVirtual *ctx, int *id); /* of device memory */

/* ---- cuda_direct.c: routes between memories that a GPU addresses ---- */

bool umemCuda_copy_direct(umemVirtual *ctx, umemVirtual *src, uintptr_t src_adr, umemVirtual *dst,
                          uintptr_t dst_adr, umemLayout const *layout);

/* ---- cuda_pieces.c: to device memory, piece by piece ---- */

bool umemCuda_copy_pieces(umemVirtual *ctx, umemVirtual *src, umemFeed *feed);

/* ---- cuda_pages.c: device memory that is mapped page by page ---- */

umemPages const *umemCuda_pages(umemVirtual *ctx);
umemPages const *umemCuda_large_pages(umemVirtual *ctx);

/* ---- cuda_order.c: streams that wait for one another ---- */

/* What CUDA calls cudaStreamLegacy and cudaStreamPerThread. */
enum { umemCudaLegacyHandle = 1, umemCudaPerThreadHandle = 2 };

/* For contexts of a stream. */
void umemCuda_wait(umemVirtual *ctx, umemVirtual *other);

void umemCuda_stream_wait(umemVirtual *ctx, uintptr_t stream);

/* What the tables of all of them have in common. */

#define UMEM_CUDA_METHODS                                                                          \
  .is_same_device = umemCuda_is_same_device, .alloc = umemCuda_alloc, .free = umemCuda_free,       \
  .set = umemCuda_set, .copy_to = umemCuda_copy_to, .copy_from = umemCuda_copy_from,               \
  .copy_direct = umemCuda_copy_direct, .realloc = umemCuda_realloc,                                \
  .stream_wait = umemCuda_stream_wait, .find = umemCuda_find, .usage = umemCuda_usage

#endif
