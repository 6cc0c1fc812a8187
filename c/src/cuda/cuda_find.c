/* cuda_find.c - see cuda_find.h. */
#include "cuda/cuda_find.h"
#include "core/context.h"
#include "cuda/cuda_gpus.h"
#include "cuda/cuda_scope.h"

#include <umem/virtual.h>

static char const *const names[] = {
    [umemForeignPinned] = "pinned memory",
    [umemForeignGpu] = "device memory",
    [umemForeignManaged] = "managed memory",
};

_Static_assert((int)umemForeignPinned == umemCudaPinned, "numbers of CUDA");
_Static_assert((int)umemForeignGpu == umemCudaDeviceMemory, "numbers of CUDA");
_Static_assert((int)umemForeignManaged == umemCudaManagedMemory, "numbers of CUDA");

/* In the scope of a GPU. */
static bool ask(umemCudaRt const *rt, uintptr_t adr, umemFound *found) {
  umemCudaMemory kind = umemCudaUnregistered;
  uintptr_t base = 0;
  size_t nbytes = 0;
  int device = -1, error = rt->pointer((void const *)adr, &kind, &device);
  if (error) rt->last_error();
  if (error || kind == umemCudaUnregistered) return false;
  found->foreign = (umemForeign)kind;
  found->name = names[kind];
  found->device = device;
  if (rt->range((void const *)adr, &base, &nbytes)) {
    rt->last_error();
    return true;
  }
  found->adr = base;
  found->nbytes = nbytes;
  return true;
}

bool umemCuda_find_foreign(uintptr_t adr, umemFound *found) {
  umemCudaGpu *gpu = umemCudaGpu_any();
  umemCudaScope scope;
  bool known = false;
  if (!gpu) return false;
  umemAttempt forgotten;
  umemAttempt_begin(&forgotten);
  if (umemCudaScope_enter(&scope, NULL, gpu)) {
    known = ask(gpu->rt, adr, found);
    umemCudaScope_leave(&scope);
  }
  umemAttempt_end(&forgotten);
  umemCudaGpu_close(gpu);
  return known;
}
