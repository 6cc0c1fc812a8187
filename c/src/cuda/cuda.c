/* cuda.c - device memory of one GPU, from cudaMalloc. Calls finish before they return, in the order
 * of CUDA's legacy default stream. */
#include "core/enter.h"
#include "base/thread.h"
#include "cuda/cuda_methods.h"

#include <umem/cuda.h>

enum { cuda_alignment = 256 }; /* at least: CUDA C++ Programming Guide, "Device Memory Accesses" */

static int cuda_get(umemCudaState *state, void **adr, size_t nbytes) {
  return state->gpu->rt->malloc(adr, nbytes);
}

static int cuda_give(umemCudaState *state, void *adr, size_t nbytes) {
  (void)nbytes;
  return state->gpu->rt->free(adr);
}

static struct umemVtbl const vtbl = {
    UMEM_CUDA_METHODS,
    .dtor = umemCuda_dtor,
    .synchronize = umemCuda_synchronize,
    .info = umemCuda_info,
};

umemStatusType umemCuda_ctor(umemCuda *ctx, int device) {
  UMEM_ENTER();
  static umemCudaSource const source = {cuda_get, cuda_give, NULL, NULL};
  static umemCudaKindOf const kind = {&vtbl,
                                      &source,
                                      umemCudaDevice,
                                      "Cuda",
                                      umemDeviceAccessible | umemReadable | umemWritable |
                                          umemConcurrent | umemDeviceShared,
                                      cuda_alignment,
                                      sizeof(umemCudaState)};
  if (!ctx) return umemVirtual_fail(NULL, umemValueError, "the context is NULL");
  return umemCuda_construct(&ctx->super, &kind, device) ? umemOK : umem_thread.last;
}
