/* umem_cuda_managed.c - managed memory: one address for the CPU and all GPUs, whose pages the driver
 * moves to where they are used. */
#include "umem_cuda_gpu.h"

enum {
  managed_alignment = 256,
  all_flags = UMEM_PREFER_DEVICE | UMEM_READ_MOSTLY | UMEM_ACCESSED_BY_DEVICE | UMEM_PREFETCH
};

typedef struct {
  umemCudaPlace place;
  unsigned flags;
} Managed;

/* Takes nbytes of what the GPU has free, which all blocks of managed memory share: a driver that must
 * give out more than the card holds can stop the whole machine. Blocks count in full, though pages that
 * are on the GPU already are missing from what is free. */
static int reserve(umemCudaGpu *gpu, size_t nbytes) {
  size_t available = 0, capacity = 0;
  int error = gpu->rt->memory_info(&available, &capacity);
  if (error) return error;
  uint64_t live = __atomic_load_n(&gpu->managed, __ATOMIC_RELAXED);
  do {
    if (nbytes > available || live > available - nbytes) return umemCudaOutOfMemory;
  } while (!__atomic_compare_exchange_n(&gpu->managed, &live, live + nbytes, true, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED));
  return umemCudaSuccess;
}

/* What the constructor's flags ask for; drivers without concurrent access know no such hints. */
static int give_hints(Managed *managed, void *adr, size_t nbytes) {
  umemCudaGpu *gpu = managed->place.gpu;
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
    error = rt->prefetch(adr, nbytes, gpu->device, managed->place.stream);
  return error;
}

static int managed_get(umemCudaPlace *place, void **adr, size_t nbytes) {
  umemCudaGpu *gpu = place->gpu;
  int error = reserve(gpu, nbytes);
  if (error) return error;
  error = gpu->rt->malloc_managed(adr, nbytes);
  if (!error) {
    error = give_hints((Managed *)place, *adr, nbytes);
    if (error) gpu->rt->free(*adr);
  }
  if (error) __atomic_fetch_sub(&gpu->managed, nbytes, __ATOMIC_RELAXED);
  return error;
}

static int managed_give(umemCudaPlace *place, void *adr, size_t nbytes) {
  int error = place->gpu->rt->free(adr);
  if (!error) __atomic_fetch_sub(&place->gpu->managed, nbytes, __ATOMIC_RELAXED);
  return error;
}

struct umemVtbl const umemCudaManaged_vtbl = {
    UMEM_CUDA_METHODS,
    .dtor = umemCuda_dtor,
    .info = umemCuda_info,
};

umemStatusType umemCudaManaged_ctor(umemCudaManaged *ctx, int device, unsigned flags) {
  UMEM_ENTER();
  static umemCudaSource const source = {managed_get, managed_give, NULL};
  static umemCudaKindOf const kind = {&umemCudaManaged_vtbl,
                                      &source,
                                      umemCudaManagedDevice,
                                      "CudaManaged",
                                      umemDeviceAccessible | umemReadable | umemWritable |
                                          umemConcurrent,
                                      managed_alignment,
                                      sizeof(Managed)};
  if (!ctx) return umemVirtual_fail(NULL, umemValueError, "the context is NULL");
  Managed *managed = umemCuda_construct(&ctx->super, &kind, device);
  if (!managed) return umem_thread.last;
  managed->flags = flags;
  umemCudaGpu *gpu = managed->place.gpu;
  if (flags & ~(unsigned)all_flags)
    umemVirtual_fail(ctx, umemValueError, "flags 0x%x: only 0x%x have a meaning", flags, all_flags);
  else if (!gpu->has_managed)
    umemVirtual_fail(ctx, umemNotSupportedError, "GPU %d, %s, has no managed memory", gpu->device,
                     gpu->name);
  else {
    /* Without it the CPU may touch the memory only while no kernel runs: copies are safe always. */
    if (gpu->concurrent_managed) ctx->super.capabilities |= umemCpuReadable | umemCpuWritable;
    return umemOK;
  }
  return umemCuda_construct_failed(&ctx->super);
}
