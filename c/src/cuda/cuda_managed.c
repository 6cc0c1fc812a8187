/* cuda_managed.c - managed memory: one address for the CPU and all GPUs, whose pages the driver
 * moves to where they are used; and the adaptor that moves new blocks to the GPU. */
#include "core/adaptor.h"
#include "core/ram.h"
#include "cuda/cuda_methods.h"

#include <inttypes.h>
#include <umem/cuda.h>

enum {
  managed_alignment = 256,
  all_flags = UMEM_PREFER_DEVICE | UMEM_READ_MOSTLY | UMEM_ACCESSED_BY_DEVICE | UMEM_PREFETCH |
              UMEM_OVERSUBSCRIBE
};

typedef struct {
  umemCudaState state;
  unsigned flags;
} Managed;

/* Gives the driver the hints of the constructor's flags. Without concurrent access the driver
 * supports no hints. */
static int give_hints(Managed *managed, void *adr, size_t nbytes) {
  umemCudaGpu *gpu = managed->state.gpu;
  umemCudaRt const *rt = gpu->rt;
  int error = 0;
  if (!gpu->concurrent_managed) return error;
  if (managed->flags & UMEM_PREFER_DEVICE)
    error = rt->advise(adr, nbytes, umemCudaPreferDevice, gpu->device);
  if (!error && (managed->flags & UMEM_READ_MOSTLY))
    error = rt->advise(adr, nbytes, umemCudaReadMostly, gpu->device);
  if (!error && (managed->flags & UMEM_ACCESSED_BY_DEVICE))
    error = rt->advise(adr, nbytes, umemCudaAccessedByDevice, gpu->device);
  if (!error && (managed->flags & UMEM_PREFETCH))
    error = rt->prefetch(adr, nbytes, gpu->device, managed->state.stream);
  return error;
}

/* ---- room ---- */

/* The driver allocates more managed memory than the GPU has. Kernels that use all of it then wait
 * for pages all the time, so the live blocks of the process must fit on the GPU, unless the program
 * allows more. Where the pages are cannot be asked; free bytes say nothing about that, because
 * pages that are on the GPU do not count as free. */
static bool take_room(uint64_t *live, uint64_t capacity, size_t nbytes) {
  uint64_t before = __atomic_load_n(live, __ATOMIC_RELAXED);
  do
    if (before > capacity || nbytes > capacity - before) return false;
  while (!__atomic_compare_exchange_n(live, &before, before + nbytes, true, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED));
  return true;
}

static void give_room(umemCudaGpu *gpu, size_t nbytes) {
  __atomic_fetch_sub(&gpu->managed, nbytes, __ATOMIC_RELAXED);
}

/* Counts nbytes more, which managed_get gives back when it fails. */
static bool managed_allows(umemVirtual *ctx, size_t nbytes) {
  Managed *managed = (Managed *)umemCuda_state_of(ctx);
  umemCudaGpu *gpu = managed->state.gpu;
  size_t available, capacity = 0;
  if (managed->flags & UMEM_OVERSUBSCRIBE) {
    __atomic_fetch_add(&gpu->managed, nbytes, __ATOMIC_RELAXED);
    return true;
  }
  if (!nbytes) return true;
  int error = gpu->rt->memory_info(&available, &capacity);
  if (!umemCuda_check(ctx, gpu, error, "cannot allocate %zu bytes", nbytes)) return false;
  if (take_room(&gpu->managed, capacity, nbytes)) return true;
  umemVirtual_fail(ctx, umemMemoryError,
                   "cannot allocate %zu bytes: this process has %ju bytes of managed memory for "
                   "GPU %d, %s, which has %zu; UMEM_OVERSUBSCRIBE (oversubscribe=yes) allows more",
                   nbytes, (uintmax_t)__atomic_load_n(&gpu->managed, __ATOMIC_RELAXED), gpu->device,
                   gpu->name, capacity);
  return false;
}

/* ---- blocks ---- */

static int managed_get(umemCudaState *state, void **adr, size_t nbytes) {
  umemCudaGpu *gpu = state->gpu;
  int error = gpu->rt->malloc_managed(adr, nbytes);
  if (!error) {
    error = give_hints((Managed *)state, *adr, nbytes);
    if (error) gpu->rt->free(*adr);
  }
  if (error) give_room(gpu, nbytes);
  return error;
}

static int managed_give(umemCudaState *state, void *adr, size_t nbytes) {
  int error = state->gpu->rt->free(adr);
  if (!error) give_room(state->gpu, nbytes);
  return error;
}

/* The runtime's error for a hint. In a scope. */
static int hint(umemCudaState *state, void const *adr, size_t nbytes, umemAdvice advice,
                int device) {
  umemCudaRt const *rt = state->gpu->rt;
  switch (advice) {
  case umemAdvicePrefetch:
    return rt->prefetch(adr, nbytes, device, state->stream);
  case umemAdvicePrefer:
    return rt->advise(adr, nbytes, umemCudaPreferDevice, device);
  case umemAdviceReadMostly:
    return rt->advise(adr, nbytes, umemCudaReadMostly, device);
  default:
    return rt->advise(adr, nbytes, umemCudaAccessedByDevice, device);
  }
}

static void managed_advise(umemVirtual *ctx, uintptr_t adr, size_t nbytes, umemAdvice advice,
                           int device) {
  umemCudaState *state = umemCuda_state_of(ctx);
  umemCudaGpu *gpu = state->gpu;
  umemCudaScope scope;
  if (advice < umemAdvicePrefetch) {
    umem_refuse_advice(ctx, advice, device);
  } else if (device >= gpu->devices) {
    umemVirtual_fail(ctx, umemValueError, "there is no GPU %d", device);
  } else if (!gpu->concurrent_managed) {
    umemVirtual_fail(ctx, umemNotSupportedError,
                     "managed memory of GPU %d, %s, follows no hints: it moves as a whole when a "
                     "kernel starts",
                     gpu->device, gpu->name);
  } else if (umemCudaScope_enter(&scope, ctx, gpu)) {
    int error = hint(state, (void const *)adr, nbytes, advice, device);
    umemCuda_check(ctx, gpu, error, "cannot follow a hint about %zu bytes at 0x%" PRIxPTR, nbytes,
                   adr);
    umemCudaScope_leave(&scope);
  }
}

static int managed_dlpack_device(umemVirtual *ctx, int *id) {
  *id = umemCuda_state_of(ctx)->gpu->device;
  return umemDLCUDAManaged;
}

static struct umemVtbl const managed_vtbl = {
    UMEM_CUDA_METHODS,     .synchronize = umemCuda_synchronize,    .dtor = umemCuda_dtor,
    .info = umemCuda_info, .dlpack_device = managed_dlpack_device, .advise = managed_advise,
};

/* "cuda-managed:0?flags=prefetch&oversubscribe=yes" */
static umemOption const options[] = {
    UMEM_OPTION_OWN("flags", umemWordsOption,
                    "prefer-device read-mostly accessed-by-device prefetch",
                    "of umemCudaManaged_ctor; default: none"),
    UMEM_OPTION_OWN("oversubscribe", umemWordOption, "no yes",
                    "yes: live blocks may exceed the memory of the GPU; default: no"),
};

static umemStatusType open_managed(void *ctx, void *upstream, umemOptionValue const *place,
                                   umemOptionValue const *given, void *user) {
  (void)upstream, (void)user;
  _Static_assert(UMEM_PREFER_DEVICE == 1 && UMEM_READ_MOSTLY == 2 && UMEM_ACCESSED_BY_DEVICE == 4 &&
                     UMEM_PREFETCH == 8,
                 "the bits of the words");
  unsigned flags = (unsigned)given[0].number | (given[1].number ? UMEM_OVERSUBSCRIBE : 0);
  return umemCudaManaged_ctor(ctx, (int)place->number, flags);
}

umemKind const umem_cuda_managed_kind = {
    .scheme = {UMEM_CUDA_KIND(umemCudaManaged, "cuda-managed", &managed_vtbl),
               .place = &umem_cuda_device, UMEM_OPTIONS(options), .construct = open_managed,
               .help = "memory that moves between the CPU and a GPU"},
    .label = "CudaManaged",
    .type = umemCudaManagedDevice,
    .capabilities =
        umemDeviceAccessible | umemReadable | umemWritable | umemConcurrent | umemDeviceShared,
    .alignment = managed_alignment,
    .impl_size = sizeof(Managed),
};

umemStatusType umemCudaManaged_ctor(umemCudaManaged *ctx, int device, unsigned flags) {
  UMEM_ENTER();
  static umemCudaSource const source = {
      .get = managed_get, .give = managed_give, .allows = managed_allows};
  if (!ctx) return umemVirtual_fail(NULL, umemValueError, "the context is NULL");
  Managed *managed = umemCuda_construct(&ctx->super, &umem_cuda_managed_kind, &source, device);
  if (!managed) return umem_thread.last;
  managed->flags = flags;
  umemCudaGpu *gpu = managed->state.gpu;
  if (flags & ~(unsigned)all_flags)
    umemVirtual_fail(ctx, umemValueError, "flags 0x%x: only 0x%x have a meaning", flags, all_flags);
  else if (!gpu->has_managed)
    umemVirtual_fail(ctx, umemNotSupportedError, "GPU %d, %s, has no managed memory", gpu->device,
                     gpu->name);
  else {
    /* Without it the CPU may touch the memory only while no kernel runs: copies are safe always. */
    if (gpu->concurrent_managed) ctx->super.capabilities |= umemCpuReadable | umemCpuWritable;
    return umemCuda_list(&ctx->super);
  }
  return umemCuda_construct_failed(&ctx->super);
}

/* ==== cuda-prefetch: lets new blocks begin on the GPU, also below other adaptors ==== */

typedef struct Prefetch {
  umemAdaptor adaptor;
  umemCudaState *managed; /* borrowed: of the innermost upstream */
} Prefetch;

/* False, with a status, when CUDA refuses. Drivers without concurrent access know no such hint. */
static bool prefetch(umemVirtual *ctx, uintptr_t adr, size_t nbytes) {
  umemCudaState *managed = ((Prefetch *)umemAdaptor_impl(ctx))->managed;
  umemCudaGpu *gpu = managed->gpu;
  if (!gpu->concurrent_managed) return true;
  UMEM_CUDA_SCOPE(ctx, gpu, false);
  int error = gpu->rt->prefetch((void const *)adr, nbytes, gpu->device, managed->stream);
  return umemCuda_check(ctx, gpu, error, "cannot prefetch %zu bytes at 0x%" PRIxPTR, nbytes, adr);
}

/* After realloc the old block may be gone: it is too late to refuse for the sake of a hint. */
static void prefetch_moved(umemVirtual *ctx, uintptr_t adr, size_t nbytes) {
  UMEM_FORGETTING();
  prefetch(ctx, adr, nbytes);
}

/* calloc is a new block, by way of this function, and then zeros. */
static uintptr_t prefetch_allocate(umemVirtual *ctx, umemRequest const *request) {
  if (request->how == umemByCalloc) return umemVirtual_calloc(ctx, 1, request->nbytes);
  uintptr_t adr = umemAdaptor_allocate(ctx, request);
  if (!adr) return 0;
  if (request->how == umemByRealloc) {
    prefetch_moved(ctx, adr, request->nbytes);
  } else if (!prefetch(ctx, adr, request->nbytes)) {
    umemAdaptor_give_back(ctx, adr, request->how == umemByAligned);
    return 0;
  }
  return adr;
}
UMEM_ADAPTOR_ALLOCATES(prefetch_allocate)

/* ---- construction ---- */

static bool prefetch_start(umemVirtual *ctx, void const *none) {
  (void)none;
  umemVirtual *innermost = umem_innermost(ctx);
  ((Prefetch *)umemAdaptor_impl(ctx))->managed = umemCuda_state_of(innermost);
  if (innermost->vptr == umem_cuda_managed_kind.scheme.vtbl) return true;
  return UMEM_FAIL(ctx, umemTypeError, "below is %s memory, not managed memory of CUDA",
                   umem_get_device_name(innermost));
}

static struct umemVtbl const prefetch_vtbl = {
    .dtor = umemAdaptor_dtor,
    UMEM_ADAPTOR_ALLOCATION_BY(prefetch_allocate),
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

UMEM_ADAPTOR_CTORS(umemCudaPrefetch, umem_cuda_prefetch_kind, NULL, void *upstream)
