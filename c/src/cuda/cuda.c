/* cuda.c - device memory of one GPU, from cudaMalloc. Calls finish before they return, in the order
 * of CUDA's legacy default stream. */
#include "core/status.h"
#include "base/thread.h"
#include "cuda/cuda_attach.h"
#include "cuda/cuda_error.h"
#include "cuda/cuda_methods.h"
#include "cuda/cuda_share.h"

#include <string.h>
#include <umem/cuda.h>

enum { cuda_alignment = 256 }; /* at least: CUDA C++ Programming Guide, "Device Memory Accesses" */

static int cuda_get(umemCudaState *state, void **adr, size_t nbytes) {
  return state->gpu->rt->malloc(adr, nbytes);
}

static int cuda_give(umemCudaState *state, void *adr, size_t nbytes) {
  (void)nbytes;
  return state->gpu->rt->free(adr);
}

bool umemCuda_describe(umemVirtual *ctx, uintptr_t base, umemHandle *handle, int *fd) {
  umemCudaState *state = umemCuda_state_of(ctx);
  umemCudaIpc memory;
  (void)fd;
  if (!umemCuda_check(ctx, state->gpu, state->gpu->rt->ipc_memory(&memory, (void *)base),
                      "cannot share the block at 0x%jx", (uintmax_t)base))
    return false;
  handle->kind = umemHandleCuda;
  memcpy(handle->memory, &memory, sizeof memory);
  return true;
}

static struct umemVtbl const cuda_vtbl = {
    UMEM_CUDA_METHODS,
    .dtor = umemCuda_dtor,
    .synchronize = umemCuda_synchronize,
    .info = umemCuda_info,
    .copy_pieces = umemCuda_copy_pieces,
    .dlpack_device = umemCuda_dlpack_device,
    .pages = umemCuda_pages,
    .large_pages = umemCuda_large_pages,
    .share = umemCuda_share,
    .attach = umemCuda_attach,
    .detach = umemCuda_detach,
};

/* "cuda:0" */
static umemStatusType open_cuda(void *ctx, void *upstream, umemOptionValue const *place,
                                umemOptionValue const *options, void *user) {
  (void)upstream, (void)options, (void)user;
  return umemCuda_ctor(ctx, (int)place->number);
}

umemKind const umem_cuda_kind = {
    .scheme = {UMEM_CUDA_KIND(umemCuda, "cuda", &cuda_vtbl), .place = &umem_cuda_device,
               .construct = open_cuda, .help = "memory of a GPU"},
    .label = "Cuda",
    .type = umemCudaDevice,
    .capabilities =
        umemDeviceAccessible | umemReadable | umemWritable | umemConcurrent | umemDeviceShared,
    .alignment = cuda_alignment,
    .impl_size = sizeof(umemCudaState),
};

umemStatusType umemCuda_ctor(umemCuda *ctx, int device) {
  UMEM_ENTER();
  static umemCudaSource const source = {
      .get = cuda_get, .give = cuda_give, .describe = umemCuda_describe};
  if (!ctx) return umemVirtual_fail(NULL, umemValueError, "the context is NULL");
  bool good = umemCuda_construct(&ctx->super, &umem_cuda_kind, &source, device);
  return good ? umemCuda_list(&ctx->super) : umem_thread.last;
}
