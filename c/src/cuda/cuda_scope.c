/* cuda_scope.c - see cuda_scope.h.
 *
 * A GPU's primary context is made current with the driver's stack: cudaSetDevice would create the context of a
 * device that the caller never uses, and would leave another one current than the caller had. */
#include "cuda/cuda_scope.h"
#include "cuda/cuda_error.h"

bool umemCudaScope_enter(umemCudaScope *scope, umemVirtual *ctx, umemCudaGpu *gpu) {
  umemCudaRt const *rt = gpu->rt;
  *scope = (umemCudaScope){ctx, gpu, false, 2 /* cudaStreamCaptureModeRelaxed */};
  if (umemCudaGpu_is_inherited(gpu)) {
    umemVirtual_fail(ctx, umemNotSupportedError,
                     "CUDA does not work in a child of fork, and this %s was constructed before it",
                     umem_get_device_name(ctx));
    return false;
  }
  void *current = NULL;
  int error = rt->context_current(&current);
  if (!error && current != gpu->context) {
    error = rt->context_push(gpu->context);
    scope->pushed = !error;
  }
  if (!error) error = rt->exchange_capture_mode(&scope->capture_mode);
  if (error && scope->pushed) rt->context_pop(&current);
  return UMEM_CUDA_CHECK(ctx, gpu, error, "cannot use GPU %d", gpu->device);
}

static int restore_mode(umemCudaScope *scope) {
  umemCudaRt const *rt = scope->gpu->rt;
  int error = rt->exchange_capture_mode(&scope->capture_mode);
  if (!error) return error;
  rt->last_error();
  return rt->exchange_capture_mode(&scope->capture_mode);
}

/* Tries twice: the caller must not stay here for an error that was about the call. What was done in the scope
 * has not failed by that, so only the second error is recorded. */
void umemCudaScope_leave(umemCudaScope *scope) {
  umemCudaGpu *gpu = scope->gpu;
  umemCudaRt const *rt = gpu->rt;
  void *left;
  int mode = restore_mode(scope); /* before the context goes: CUDA would make one current */
  int popped = scope->pushed ? rt->context_pop(&left) : umemCudaSuccess;
  if (popped) {
    rt->last_error();
    popped = rt->context_pop(&left);
  }
  if (!mode) mode = popped;
  if (mode) umemCuda_check(scope->ctx, gpu, mode, "cannot leave GPU %d", gpu->device);
}
