/* cuda_host.c - page-locked host memory. The CPU uses it as any RAM; what GPUs copy from and to it
 * goes at the speed of the link. */
#include "core/context.h"
#include "core/ram.h"
#include "cuda/cuda_state.h"

#include <umem/cuda.h>

enum { pinned_alignment = 256 };

typedef struct {
  umemCudaState state;
  unsigned flags; /* umemCudaPortable and so on */
} Pinned;

static int pinned_get(umemCudaState *state, void **adr, size_t nbytes) {
  return umemCuda_pin(state->gpu->rt, adr, nbytes, ((Pinned *)state)->flags);
}

static int pinned_give(umemCudaState *state, void *adr, size_t nbytes) {
  return umemCuda_unpin(state->gpu->rt, adr, nbytes, ((Pinned *)state)->flags);
}

static int pinned_dlpack_device(umemVirtual *ctx, int *id) {
  (void)ctx, (void)id; /* it belongs to no device */
  return umemDLCUDAHost;
}

static struct umemVtbl const pinned_vtbl = {
    .dtor = umemCuda_dtor,
    .is_same_device = umemCuda_is_same_device,
    .alloc = umemCuda_alloc,
    .free = umemCuda_free,
    UMEM_RAM_BYTES,
    .info = umem_ram_info, /* it belongs to no device */
    .realloc = umemCuda_realloc,
    .dlpack_device = pinned_dlpack_device,
    .find = umemCuda_find,
    .usage = umemCuda_usage,
};

/* The caller's current device, the first one where there is no choice: pinning needs the context of
 * some GPU. Returns the runtime's error. */
static int current_device(int *device) {
  umemCudaRt const *rt = umemCudaRt_get();
  int error = rt ? rt->get_device(device) : umemCudaSuccess;
  if (!error) return error;
  *device = 0;
  bool reported = error == umemCudaInsufficientDriver || error == umemCudaNoGpu ||
                  error == umemCudaStubLibrary; /* by the constructor, and better */
  if (reported) rt->last_error();
  return reported ? umemCudaSuccess : error;
}

/* ---- construction ---- */

/* "cuda-host:" */
static umemOption const options[] = {
    UMEM_OPTION_OWN("flags", umemWordsOption, "write-combined",
                    "of umemCudaHost_ctor; default: none"),
};

static umemStatusType open_host(void *ctx, void *upstream, umemOptionValue const *place,
                                umemOptionValue const *given, void *user) {
  (void)upstream, (void)place, (void)user;
  _Static_assert(UMEM_WRITE_COMBINED == 1, "the bit of the word");
  return umemCudaHost_ctor(ctx, (unsigned)given[0].number);
}

umemKind const umem_cuda_host_kind = {
    .scheme = {UMEM_CUDA_KIND(umemCudaHost, "cuda-host", &pinned_vtbl), UMEM_OPTIONS(options),
               .construct = open_host, .help = "RAM that is pinned for GPUs"},
    .label = "CudaHost",
    .type = umemCudaHostDevice,
    .capabilities = umemCpuReadable | umemCpuWritable | umemDeviceAccessible | umemReadable |
                    umemWritable | umemConcurrent,
    .alignment = pinned_alignment,
    .impl_size = sizeof(Pinned),
};

static umemStatusType fail_early(umemVirtual *ctx, int error) {
  umemCudaGpu none = {.rt = umemCudaRt_get()};
  umem_construct(ctx, &umem_cuda_host_kind, NULL);
  umemCuda_check(ctx, &none, error, "cannot ask for the current GPU");
  umem_construct_failed(ctx);
  return umem_thread.last;
}

umemStatusType umemCudaHost_ctor(umemCudaHost *ctx, unsigned flags) {
  UMEM_ENTER();
  static umemCudaSource const source = {.get = pinned_get, .give = pinned_give};
  if (!ctx) return umemVirtual_fail(NULL, umemValueError, "the context is NULL");
  int device = 0, error = current_device(&device);
  if (error) return fail_early(&ctx->super, error);
  Pinned *pinned = umemCuda_construct(&ctx->super, &umem_cuda_host_kind, &source, device);
  if (!pinned) return umem_thread.last;
  pinned->flags = umemCudaPortable | umemCudaMapped;
  if (flags & UMEM_WRITE_COMBINED) pinned->flags |= umemCudaWriteCombined;
  if (!(flags & ~UMEM_WRITE_COMBINED)) return umemCuda_list(&ctx->super);
  umemVirtual_fail(ctx, umemValueError, "flags 0x%x: there is only UMEM_WRITE_COMBINED", flags);
  return umemCuda_construct_failed(&ctx->super);
}
