/* cuda_schemes.c - CUDA's contexts by name: "cuda:0", "cuda-async:1?stream=new", ... */
#include "open/schemes.h"

#include <umem/cuda.h>

static umemOption const device = {
    .name = "device", .kind = umemDeviceOption, .help = "the number of the GPU; default: 0"};

/* ---- device memory ---- */

static umemStatusType open_cuda(void *ctx, void *upstream, umemOptionValue const *place,
                                umemOptionValue const *options, void *user) {
  (void)upstream, (void)options, (void)user;
  return umemCuda_ctor(ctx, (int)place->number);
}

umemScheme const umem_cuda_scheme = {
    .size = sizeof(umemScheme),
    .name = "cuda",
    .context_size = sizeof(umemCuda),
    .place = &device,
    .construct = open_cuda,
    .help = "memory of a GPU",
};

/* ---- device memory in the order of a stream ---- */

enum { async_stream, async_max, async_keep };

static umemOption const async_options[] = {
    [async_stream] = {.name = "stream",
                      .kind = umemWordOption,
                      .words = "new legacy",
                      .help = "its own, or CUDA's legacy default stream; default: new"},
    [async_max] = {.name = "max",
                   .kind = umemSizeOption,
                   .help = "that its memory pool may hold; default: no bound"},
    [async_keep] = {.name = "keep",
                    .kind = umemSizeOption,
                    .help = "that its memory pool keeps at a synchronisation; default: all"},
};

static umemStatusType open_cuda_async(void *ctx, void *upstream, umemOptionValue const *place,
                                      umemOptionValue const *options, void *user) {
  (void)upstream, (void)user;
  if (!umem_not_zero(&async_options[async_max], &options[async_max])) return umemValueError;
  umemCudaAsyncOptions with = UMEM_CUDA_ASYNC_OPTIONS_INIT;
  with.maximum_size = options[async_max].number;
  if (options[async_keep].given) with.release_threshold = options[async_keep].number;
  uintptr_t stream = options[async_stream].number ? 0 : UMEM_STREAM_NEW;
  return umemCudaAsync_ctor_with(ctx, (int)place->number, stream, &with);
}

umemScheme const umem_cuda_async_scheme = {
    .size = sizeof(umemScheme),
    .name = "cuda-async",
    .context_size = sizeof(umemCudaAsync),
    .place = &device,
    .options = async_options,
    .option_count = sizeof async_options / sizeof *async_options,
    .construct = open_cuda_async,
    .help = "memory of a GPU, in the order of a stream",
};

/* ---- pinned host memory ---- */

static umemOption const host_options[] = {
    {.name = "flags",
     .kind = umemWordsOption,
     .words = "write-combined",
     .help = "of umemCudaHost_ctor; default: none"},
};

static umemStatusType open_cuda_host(void *ctx, void *upstream, umemOptionValue const *place,
                                     umemOptionValue const *options, void *user) {
  (void)upstream, (void)place, (void)user;
  _Static_assert(UMEM_WRITE_COMBINED == 1, "the bit of the word");
  return umemCudaHost_ctor(ctx, (unsigned)options[0].number);
}

umemScheme const umem_cuda_host_scheme = {
    .size = sizeof(umemScheme),
    .name = "cuda-host",
    .context_size = sizeof(umemCudaHost),
    .options = host_options,
    .option_count = sizeof host_options / sizeof *host_options,
    .construct = open_cuda_host,
    .help = "RAM that is pinned for GPUs",
};

/* ---- managed memory ---- */

static umemOption const managed_options[] = {
    {.name = "flags",
     .kind = umemWordsOption,
     .words = "prefer-device read-mostly accessed-by-device prefetch",
     .help = "of umemCudaManaged_ctor; default: none"},
};

static umemStatusType open_cuda_managed(void *ctx, void *upstream, umemOptionValue const *place,
                                        umemOptionValue const *options, void *user) {
  (void)upstream, (void)user;
  _Static_assert(UMEM_PREFER_DEVICE == 1 && UMEM_READ_MOSTLY == 2 && UMEM_ACCESSED_BY_DEVICE == 4 &&
                     UMEM_PREFETCH == 8,
                 "the bits of the words");
  return umemCudaManaged_ctor(ctx, (int)place->number, (unsigned)options[0].number);
}

umemScheme const umem_cuda_managed_scheme = {
    .size = sizeof(umemScheme),
    .name = "cuda-managed",
    .context_size = sizeof(umemCudaManaged),
    .place = &device,
    .options = managed_options,
    .option_count = sizeof managed_options / sizeof *managed_options,
    .construct = open_cuda_managed,
    .help = "memory that moves between the CPU and a GPU",
};

/* ---- managed memory that begins on the GPU ---- */

static umemStatusType open_cuda_prefetch(void *ctx, void *upstream, umemOptionValue const *place,
                                         umemOptionValue const *options, void *user) {
  (void)place, (void)options, (void)user;
  return umemCudaPrefetch_ctor(ctx, upstream);
}

umemScheme const umem_cuda_prefetch_scheme = {
    .size = sizeof(umemScheme),
    .name = "cuda-prefetch",
    .context_size = sizeof(umemCudaPrefetch),
    .decorates = true,
    .construct = open_cuda_prefetch,
    .help = "over managed memory: new blocks begin on the GPU",
};
