/* cuda_async.c - device memory with allocations, frees, sets and copies in the order of a stream.
 *
 * Blocks come from a pool of the driver that belongs to the context, so the settings of the default
 * pool do not change. If the driver has no pools, blocks come from cudaMalloc, and a free waits for
 * the stream. */
#include "base/number.h"
#include "core/context.h"
#include "cuda/cuda_methods.h"

#include <fcntl.h>
#include <string.h>
#include <umem/cuda.h>
#include <unistd.h>

enum { async_alignment = 256 };

typedef struct {
  umemCudaState state;
  void *pool; /* NULL: the driver has none */
  bool owns_stream;
  size_t maximum_size; /* of the pool; 0: none */
  uint64_t allowed;    /* bit d: device d may use the pool's blocks; atomic */
  bool shares;         /* other processes may attach blocks */
  int fd;              /* owned: of the pool, for other processes; -1: none */
  uint64_t number;     /* of the pool, for other processes */
} Async;

static Async *async_of(umemVirtual *ctx) { return (Async *)umemCuda_state_of(ctx); }

/* ---- blocks ---- */

/* The address that an allocation in a graph returns is valid only while the graph runs. */
static bool async_allows(umemVirtual *ctx, size_t nbytes) {
  (void)nbytes;
  return !umemCuda_refuse_capture(ctx, "allocate and free before or after it");
}

/* While the stream is captured, a block can neither be freed in its order, nor after the work
 * before the capture. So the free fails, also at the end of the context; the driver then frees the
 * block at the end of the process. */
static int async_bar(umemCudaState *state) {
  return umemCudaState_is_captured(state) ? umemCudaCaptureUnsupported : umemCudaSuccess;
}

static int pool_get(umemCudaState *state, void **adr, size_t nbytes) {
  return state->gpu->rt->pool_malloc(adr, nbytes, ((Async *)state)->pool, state->stream);
}

static int pool_give(umemCudaState *state, void *adr, size_t nbytes) {
  (void)nbytes;
  return state->gpu->rt->pool_free(adr, state->stream);
}

static int plain_get(umemCudaState *state, void **adr, size_t nbytes) {
  return state->gpu->rt->malloc(adr, nbytes);
}

static int plain_give(umemCudaState *state, void *adr, size_t nbytes) {
  (void)nbytes;
  int error =
      async_bar(state); /* a capture of another thread by now: nothing could be waited for */
  if (error) return error;
  error = umemCudaState_finish(state);
  int freed = state->gpu->rt->free(adr);
  return error ? error : freed;
}

static void async_trim(umemVirtual *ctx, size_t keep) {
  Async *async = async_of(ctx);
  umem_synchronize(ctx); /* blocks whose free is still queued could not go */
  if (!async->pool) return;
  UMEM_CUDA_SCOPE(ctx, async->state.gpu);
  int error = async->state.gpu->rt->pool_trim(async->pool, keep);
  umemCuda_check(ctx, async->state.gpu, error, "cannot trim the pool to %zu bytes", keep);
}

/* Unused memory of the pool counts as available, too, but no more than the pool may hold. */
static void async_info(umemVirtual *ctx, umemInfo *info) {
  Async *async = async_of(ctx);
  info->stream = (uintptr_t)async->state.stream;
  umemCuda_info(ctx, info);
  uint64_t reserved = 0, used = 0;
  if (!async->pool) return;
  UMEM_CUDA_SCOPE(ctx, async->state.gpu);
  int error = async->state.gpu->rt->pool_sizes(async->pool, &reserved, &used);
  if (!umemCuda_check(ctx, async->state.gpu, error, "cannot ask how much the pool holds") ||
      info->available == UMEM_UNKNOWN)
    return;
  uint64_t most = async->maximum_size ? async->maximum_size : UINT64_MAX;
  uint64_t rest = most > used ? most - used : 0;
  info->available = umem_lesser(info->available + reserved - used, rest);
  info->capacity = umem_lesser(info->capacity, most);
}

/* The maximum is that of the driver's pool, to which pages do not belong. */
static umemPages const *async_pages(umemVirtual *ctx) {
  return async_of(ctx)->maximum_size ? NULL : umemCuda_pages(ctx);
}

static umemPages const *async_large_pages(umemVirtual *ctx) {
  return async_pages(ctx) ? umemCuda_large_pages(ctx) : NULL;
}

static umemPages const *async_sized_pages(umemVirtual *ctx, size_t page_size) {
  return async_pages(ctx) ? umemCuda_sized_pages(ctx, page_size) : NULL;
}

static void async_open_to(umemCudaState *state, int device) {
  Async *async = (Async *)state;
  uint64_t bit = (uint64_t)1 << device;
  if (__atomic_load_n(&async->allowed, __ATOMIC_RELAXED) & bit) return;
  umemCudaRt const *rt = async->state.gpu->rt;
  if (rt->pool_allow(async->pool, device))
    rt->last_error(); /* copies go by way of the host */
  else
    __atomic_fetch_or(&async->allowed, bit, __ATOMIC_RELAXED);
}

/* For other processes. Without pools blocks are as those of a Cuda. */
static bool async_describe(umemVirtual *ctx, uintptr_t base, umemHandle *handle, int *fd) {
  Async *async = async_of(ctx);
  umemCudaGpu *gpu = async->state.gpu;
  umemCudaIpc memory;
  if (!async->shares)
    return UMEM_FAIL(ctx, umemNotSupportedError,
                     "this CudaAsync was constructed without the option share");
  if (!async->pool) return umemCuda_describe(ctx, base, handle, fd);
  if (!umemCuda_check(ctx, gpu, gpu->rt->pool_export_pointer(&memory, (void *)base),
                      "cannot share the block at 0x%jx", (uintmax_t)base))
    return false;
  handle->kind = umemHandleCudaPool;
  memcpy(handle->memory, &memory, sizeof memory);
  handle->identity[3] = async->number;
  *fd = async->fd;
  return true;
}

/* Blocks of the driver's pool, and of cudaMalloc. */
static umemCudaSource const of_pool = {.get = pool_get,
                                       .give = pool_give,
                                       .allows = async_allows,
                                       .open_to = async_open_to,
                                       .bar = async_bar,
                                       .describe = async_describe};
static umemCudaSource const of_device = {.get = plain_get,
                                         .give = plain_give,
                                         .allows = async_allows,
                                         .bar = async_bar,
                                         .describe = async_describe};

/* ---- captures ---- */

static bool async_is_captured(umemVirtual *ctx) {
  umemCudaState *state = umemCuda_state_of(ctx);
  UMEM_CUDA_SCOPE(ctx, state->gpu, false);
  return umemCudaState_is_captured(state);
}

/* ---- construction and destruction ---- */

static void async_dtor(umemVirtual *ctx);

static struct umemVtbl const async_vtbl = {
    UMEM_CUDA_METHODS,
    UMEM_CUDA_DEVICE_METHODS,
    .dtor = async_dtor,
    .wait = umemCuda_wait,
    .trim = async_trim,
    .info = async_info,
    .is_captured = async_is_captured,
    .mark = umemCuda_mark,
    .pages = async_pages,
    .large_pages = async_large_pages,
    .sized_pages = async_sized_pages,
};

/* Opens the stream. False, with a status, when that fails. In the scope. */
static bool open_stream(umemVirtual *ctx, Async *async, uintptr_t stream) {
  umemCudaGpu *gpu = async->state.gpu;
  int device = gpu->device;
  if (stream == umemCudaPerThreadHandle)
    return UMEM_FAIL(ctx, umemNotSupportedError,
                     "cudaStreamPerThread is another stream in each thread: give one that is made");
  if (stream == UMEM_STREAM_NEW) {
    int error = gpu->rt->stream_create(&async->state.stream);
    async->owns_stream = !error;
    return umemCuda_check(ctx, gpu, error, "cannot create a stream");
  }
  async->state.stream = stream == umemCudaLegacyHandle ? NULL : (void *)stream;
  if (async->state.stream &&
      !umemCuda_check(ctx, gpu, gpu->rt->stream_device(async->state.stream, &device),
                      "0x%jx is no stream", (uintmax_t)stream))
    return false;
  if (device == gpu->device) return true;
  return UMEM_FAIL(ctx, umemValueError, "the stream belongs to GPU %d, not %d", device,
                   gpu->device);
}

static bool check_sharing(umemVirtual *ctx, umemCudaGpu *gpu) {
  int can = 0;
  if (!umemCuda_check(ctx, gpu, gpu->rt->attribute(&can, umemCudaSharesPools, gpu->device),
                      "cannot ask whether memory pools can be shared"))
    return false;
  return can || UMEM_FAIL(ctx, umemNotSupportedError,
                          "the driver cannot share memory pools of GPU %d with other processes",
                          gpu->device);
}

static bool open_pool(umemVirtual *ctx, Async *async, umemCudaAsyncOptions const *options) {
  umemCudaGpu *gpu = async->state.gpu;
  umemCudaRt const *rt = gpu->rt;
  if (!gpu->has_pools) {
    UMEM_DECIDED(umemDecisionFallbacks, ctx,
                 "the driver has no memory pools for GPU %d: blocks are those of cudaMalloc, and "
                 "frees wait",
                 gpu->device);
    return true;
  }
  async->maximum_size = options->maximum_size;
  if (async->shares && !check_sharing(ctx, gpu)) return false;
  int error = rt->pool_create(&async->pool, gpu->device, async->maximum_size, async->shares);
  if (error == umemCudaNotSupported) {
    rt->last_error();
    return true;
  }
  if (!error) error = rt->pool_set_threshold(async->pool, options->release_threshold);
  if (!error && async->shares) {
    error = rt->pool_export(&async->fd, async->pool);
    if (!error) fcntl(async->fd, F_SETFD, FD_CLOEXEC);
  }
  async->state.source = &of_pool;
  return umemCuda_check(ctx, gpu, error, "cannot create a memory pool");
}

/* Destroys what the constructor has opened, also after it has failed. Failures here need no report:
 * the driver has then lost the objects already. */
static void close_all(Async *async) {
  umemCudaRt const *rt = async->state.gpu->rt;
  int error = 0;
  if (async->fd >= 0) close(async->fd);
  if (async->pool) error |= rt->pool_destroy(async->pool);
  if (async->owns_stream) error |= rt->stream_destroy(async->state.stream);
  if (error) rt->last_error();
}

static void async_dtor(umemVirtual *ctx) {
  Async *async = async_of(ctx);
  umemCudaGpu *gpu = async->state.gpu;
  umemCudaScope scope;
  umemCuda_unlist(ctx);
  if (!umemCudaGpu_is_inherited(gpu) && umemCudaScope_enter(&scope, ctx, gpu)) {
    umemCuda_give_back(ctx);
    if (!umemCudaState_is_captured(&async->state))
      umemCuda_check(ctx, gpu, umemCudaState_finish(&async->state),
                     "work on the stream has failed");
    close_all(async);
    umemCudaScope_leave(&scope);
  }
  umemCuda_dtor(ctx);
}

/* "cuda-async:1?stream=new" */
static umemOption const named_options[] = {
    UMEM_OPTION_OWN("stream", umemWordOption, "new legacy",
                    "its own, or CUDA's legacy default stream; default: new"),
    UMEM_OPTION_NOT_0(umemCudaAsyncOptions, maximum_size, "max", umemSizeOption,
                      "that its memory pool may hold; default: no bound"),
    UMEM_OPTION(umemCudaAsyncOptions, release_threshold, "keep", umemSizeOption,
                "that its memory pool keeps at a synchronisation; default: all"),
    UMEM_OPTION_WORD(umemCudaAsyncOptions, share, "share", "no yes",
                     "yes: other processes can attach blocks; default: no"),
};

static umemStatusType open_async(void *ctx, void *upstream, umemOptionValue const *place,
                                 umemOptionValue const *given, void *user) {
  (void)upstream;
  umemCudaAsyncOptions options;
  if (!umemKind_read(user, given, &options)) return umemValueError;
  uintptr_t stream = given[0].number ? 0 : UMEM_STREAM_NEW;
  return umemCudaAsync_ctor_with(ctx, (int)place->number, stream, &options);
}

static umemCudaAsyncOptions const defaults = UMEM_CUDA_ASYNC_OPTIONS_INIT;

umemKind const umem_cuda_async_kind = {
    .scheme = {UMEM_CUDA_KIND(umemCudaAsync, "cuda-async", &async_vtbl), .place = &umem_cuda_device,
               UMEM_OPTIONS(named_options), .construct = open_async,
               .user = (void *)&umem_cuda_async_kind,
               .help = "memory of a GPU, in the order of a stream"},
    .label = "CudaAsync",
    .type = umemCudaAsyncDevice,
    .capabilities =
        umemDeviceAccessible | umemReadable | umemWritable | umemOrdered | umemConcurrent,
    .alignment = async_alignment,
    .impl_size = sizeof(Async),
    .options_size = sizeof defaults,
    .defaults = &defaults,
};

static bool check_options(umemVirtual *ctx, umemCudaAsyncOptions const *options) {
  if (options->share < 2 && !options->zero) return true;
  return UMEM_FAIL(ctx, umemValueError, "share is 0 or 1, not %u", (unsigned)options->share);
}

static umemStatusType construct(umemCudaAsync *ctx, int device, uintptr_t stream,
                                umemCudaAsyncOptions const *options) {
  Async *async = umemCuda_construct(&ctx->super, &umem_cuda_async_kind, &of_device, device);
  if (!async) return umem_thread.last;
  umemCudaGpu *gpu = async->state.gpu;
  umemVirtual *self = &ctx->super;
  async->shares = options->share;
  async->fd = -1;
  async->number = umemCudaShared_number();
  umemCudaScope scope;
  uint64_t before = umem_thread.failures;
  bool opened = false;
  if (umemCudaScope_enter(&scope, self, gpu)) {
    opened = open_stream(self, async, stream) && open_pool(self, async, options);
    if (!opened) close_all(async);
    umemCudaScope_leave(&scope);
  }
  if (umem_thread.failures == before) return umemCuda_list(self);
  if (opened && umemCudaScope_enter(&scope, self, gpu)) { /* it is leaving that has failed */
    close_all(async);
    umemCudaScope_leave(&scope);
  }
  return umemCuda_construct_failed(self);
}

umemStatusType umemCudaAsync_ctor(umemCudaAsync *ctx, int device, uintptr_t stream) {
  UMEM_ENTER();
  return umemCudaAsync_ctor_with(ctx, device, stream, NULL);
}

umemStatusType umemCudaAsync_ctor_with(umemCudaAsync *ctx, int device, uintptr_t stream,
                                       umemCudaAsyncOptions const *options) {
  UMEM_ENTER();
  umemCudaAsyncOptions full = UMEM_CUDA_ASYNC_OPTIONS_INIT;
  if (!ctx) return umemVirtual_fail(NULL, umemValueError, "the context is NULL");
  umem_construct(&ctx->super, &umem_cuda_async_kind, NULL);
  if (umem_read_sized(ctx, &full, sizeof full, options, "umemCudaAsyncOptions") &&
      check_options(&ctx->super, &full))
    return construct(ctx, device, stream, &full);
  umem_construct_failed(&ctx->super);
  return UMEM_RESULT();
}

uintptr_t umemCudaAsync_stream(void *ctx) {
  UMEM_ENTER();
  umemVirtual *self = umem_check(ctx);
  if (self) self = umem_innermost(self);
  umemCudaState *state = self ? umemCuda_state_of(self) : NULL;
  if (state) return (uintptr_t)state->stream;
  if (self)
    umemVirtual_fail(self, umemTypeError, "%s has no stream of CUDA", umem_get_device_name(self));
  return 0;
}
