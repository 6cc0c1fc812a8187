/* cuda_prefetch.c - lets new blocks of managed memory begin on the GPU, also below other
 * adaptors. */
#include "core/adaptor.h"
#include "base/thread.h"
#include "core/status.h"
#include "core/context.h"
#include "cuda/cuda_error.h"
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

/* After realloc the old block may be gone: it is too late to refuse for the sake of a hint. */
static void prefetch_moved(umemVirtual *ctx, uintptr_t adr, size_t nbytes) {
  umemAttempt forgotten;
  umemAttempt_begin(&forgotten);
  prefetch(ctx, adr, nbytes);
  umemAttempt_end(&forgotten);
}

/* calloc is a new block, by way of this function, and then zeros. */
static uintptr_t prefetch_ask(umemVirtual *ctx, umemRequest const *request) {
  if (request->how == umemByCalloc) return umemVirtual_calloc(ctx, 1, request->nbytes);
  uintptr_t adr = umemAdaptor_ask(ctx, request);
  if (!adr) return 0;
  if (request->how == umemByRealloc) {
    prefetch_moved(ctx, adr, request->nbytes);
  } else if (!prefetch(ctx, adr, request->nbytes)) {
    umemAdaptor_give_back(ctx, adr, request->how == umemByAligned);
    return 0;
  }
  return adr;
}
UMEM_ADAPTOR_ALLOCATES(prefetch_ask)

/* ---- construction ---- */

static bool prefetch_start(umemVirtual *ctx, void const *options) {
  (void)options;
  umemVirtual *innermost = umem_innermost(ctx);
  ((Prefetch *)umemAdaptor_impl(ctx))->managed = umemCuda_state_of(innermost);
  if (innermost->vptr == umem_cuda_managed_kind.scheme.vtbl) return true;
  umemVirtual_fail(ctx, umemTypeError, "below is %s memory, not managed memory of CUDA",
                   umem_get_device_name(innermost));
  return false;
}

static struct umemVtbl const prefetch_vtbl = {
    .dtor = umemAdaptor_dtor,
    UMEM_ADAPTOR_ALLOCATION_BY(prefetch_ask),
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

UMEM_ADAPTOR_CTORS(umemCudaPrefetch, umem_cuda_prefetch_kind)
