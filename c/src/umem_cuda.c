/* umem_cuda.c - what the CUDA constructors answer in a build without CUDA. */
#include "umem_core.h"

#include <umem/cuda.h>

static umemStatusType unsupported(umemVirtual *ctx, umemDeviceType type, char const *name) {
  if (!ctx) return umemVirtual_fail(NULL, umemValueError, "the context is NULL");
  umem_construct(ctx, NULL, type, name, 0, 1, NULL);
  return umemVirtual_fail(
      ctx, umemNotSupportedError,
      "umem %s has no CUDA support; a version built with the CUDA toolkit, 12.2 "
      "or later, is needed",
      umem_version());
}

umemStatusType umemCuda_ctor(umemCuda *ctx, int device) {
  UMEM_ENTER();
  (void)device;
  return unsupported(ctx ? &ctx->super : NULL, umemCudaDevice, "Cuda");
}

umemStatusType umemCudaHost_ctor(umemCudaHost *ctx, unsigned flags) {
  UMEM_ENTER();
  (void)flags;
  return unsupported(ctx ? &ctx->super : NULL, umemCudaHostDevice, "CudaHost");
}

umemStatusType umemCudaManaged_ctor(umemCudaManaged *ctx, int device, unsigned flags) {
  UMEM_ENTER();
  (void)device, (void)flags;
  return unsupported(ctx ? &ctx->super : NULL, umemCudaManagedDevice, "CudaManaged");
}

umemStatusType umemCudaAsync_ctor(umemCudaAsync *ctx, int device, uintptr_t stream) {
  UMEM_ENTER();
  (void)device, (void)stream;
  return unsupported(ctx ? &ctx->super : NULL, umemCudaAsyncDevice, "CudaAsync");
}
