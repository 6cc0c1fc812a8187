/* cuda_prefetch.c - lets new blocks of managed memory begin on the GPU, whatever lies
 * between. */
#include "core/adaptor.h"
#include "base/thread.h"
#include "core/enter.h"
#include "core/layers.h"
#include "cuda/cuda_error.h"
#include "cuda/cuda_managed.h"
#include "cuda/cuda_scope.h"
#include "cuda/cuda_state.h"

#include <inttypes.h>
#include <umem/cuda.h>

typedef struct Prefetch {
  umemAdaptor adaptor;
  umemCudaState *managed; /* borrowed: of the innermost upstream */
} Prefetch;

/* False, with a status, when CUDA refuses. Drivers without concurrent access know no such hint. */
static bool prefetch(umemVirtual *ctx, uintptr_t adr, size_t nbytes) {
  umemCudaState *managed = ((Prefetch *)umemAdaptor_impl(ctx))->managed;
  umemCudaGpu *gpu = managed->gpu;
  umemCudaScope scope;
  if (!gpu->concurrent_managed) return true;
  if (!umemCudaScope_enter(&scope, ctx, gpu)) return false;
  int error = gpu->rt->prefetch((void const *)adr, nbytes, gpu->device, managed->stream);
  bool done =
      umemCuda_check(ctx, gpu, error, "cannot prefetch %zu bytes at 0x%" PRIxPTR, nbytes, adr);
  umemCudaScope_leave(&scope);
  return done;
}

static uintptr_t prefetch_alloc(umemVirtual *ctx, size_t nbytes) {
  uintptr_t adr = umemAdaptor_alloc(ctx, nbytes);
  if (!adr || prefetch(ctx, adr, nbytes)) return adr;
  umemAdaptor_free(ctx, adr);
  return 0;
}

static uintptr_t prefetch_aligned_alloc(umemVirtual *ctx, size_t alignment, size_t size) {
  uintptr_t adr = umemAdaptor_aligned_alloc(ctx, alignment, size);
  if (!adr || prefetch(ctx, adr, size)) return adr;
  umemAdaptor_aligned_free(ctx, adr);
  return 0;
}

/* The old block may be gone: too late to refuse for the sake of a hint. */
static uintptr_t prefetch_realloc(umemVirtual *ctx, uintptr_t adr, size_t old_size,
                                  size_t new_size) {
  uintptr_t moved = umemAdaptor_realloc(ctx, adr, old_size, new_size);
  umemAttempt forgotten;
  umemAttempt_begin(&forgotten);
  if (moved) prefetch(ctx, moved, new_size);
  umemAttempt_end(&forgotten);
  return moved;
}

/* ---- construction ---- */

static bool prefetch_start(umemVirtual *ctx, void const *options) {
  (void)options;
  umemVirtual *innermost = umem_innermost(ctx);
  ((Prefetch *)umemAdaptor_impl(ctx))->managed = umemCuda_state_of(innermost);
  if (innermost->vptr == &umemCudaManaged_vtbl) return true;
  umemVirtual_fail(ctx, umemTypeError, "below is %s memory, not managed memory of CUDA",
                   umem_get_device_name(innermost));
  return false;
}

/* calloc is the default: a new block, by way of the above, and then zeros. */
static struct umemVtbl const prefetch_vtbl = {
    .dtor = umemAdaptor_dtor,
    .alloc = prefetch_alloc,
    .aligned_alloc = prefetch_aligned_alloc,
    .realloc = prefetch_realloc,
    UMEM_ADAPTOR_FREE,
    UMEM_ADAPTOR_BYTES,
    UMEM_ADAPTOR_ORDER,
    UMEM_ADAPTOR_ALWAYS,
};

/* "cuda-prefetch+cuda-managed:" */
umemKind const umem_cuda_prefetch_kind = {
    .scheme = {UMEM_ADAPTOR_KIND(umemCudaPrefetch, "cuda-prefetch", &prefetch_vtbl),
               UMEM_ADAPTOR_OPENS(umem_cuda_prefetch_kind),
               .help = "over managed memory: new blocks begin on the GPU"},
    .label = "CudaPrefetch",
    .impl_size = sizeof(Prefetch),
    .start = prefetch_start,
};

umemStatusType umemCudaPrefetch_ctor(umemCudaPrefetch *ctx, void *upstream) {
  UMEM_ENTER();
  return umemAdaptor_construct(ctx, upstream, false, &umem_cuda_prefetch_kind, NULL);
}

umemStatusType umemCudaPrefetch_adopt(umemCudaPrefetch *ctx, void *upstream) {
  UMEM_ENTER();
  return umemAdaptor_construct(ctx, upstream, true, &umem_cuda_prefetch_kind, NULL);
}
