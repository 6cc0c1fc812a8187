/* adaptors.c - opens the small adaptors, each over any row of the table. */
#include "adaptors.h"

#include "settings.h"

#include <stdlib.h>
#include <unistd.h>

/* The place for any context of the library, and what it goes over. */
typedef struct OpenAdaptor {
  umemLimit place; /* of the same size as all */
  Backend const *inner;
  umemVirtual *upstream;
} OpenAdaptor;

static umemVirtual *open_over(umemStatusType (*construct)(void *ctx, void *upstream),
                              char const *name) {
  OpenAdaptor *self = malloc(sizeof *self);
  if (!self) return NULL;
  self->inner = backend_by_name(name);
  self->upstream = self->inner->open();
  if (self->upstream && construct(self, self->upstream) == umemOK) return &self->place.super;
  if (self->upstream) self->inner->close(self->upstream);
  free(self);
  return NULL;
}

/* Over more of CUDA's contexts where these are real; one of the double is enough. */
static umemVirtual *open_on_gpu(umemStatusType (*construct)(void *ctx, void *upstream),
                                char const *name) {
  if (setting_gpu()) return open_over(construct, name);
  umemVirtual_fail(NULL, umemNotSupportedError, "this row is tested on a GPU only");
  return NULL;
}

void close_adaptor(umemVirtual *ctx) {
  OpenAdaptor *self = (OpenAdaptor *)ctx;
  umem_dtor(ctx);
  self->inner->close(self->upstream);
  free(self);
}

BackendRecords adaptor_records(umemVirtual *ctx) {
  OpenAdaptor *self = (OpenAdaptor *)ctx;
  return self->inner->records(self->upstream);
}

BackendRecords debug_records(umemVirtual *ctx) {
  OpenAdaptor *self = (OpenAdaptor *)ctx;
  umemDebugFigures figures = UMEM_DEBUG_FIGURES_INIT;
  umemDebug_get((umemDebug *)ctx, &figures);
  return (BackendRecords){figures.live_blocks, backend_moves(self->inner, self->upstream)};
}

/* construct: an expression of ctx and upstream. */
#define ADAPTOR(name, construct)                                                                   \
  static umemStatusType construct_##name(void *ctx, void *upstream) { return construct; }          \
  umemVirtual *open_##name##_host(void) { return open_over(construct_##name, "host"); }            \
  umemVirtual *open_##name##_file(void) { return open_over(construct_##name, "file-scratch"); }    \
  umemVirtual *open_##name##_fake(void) { return open_over(construct_##name, "fake"); }            \
  umemVirtual *open_##name##_async(void) { return open_over(construct_##name, "fake-async"); }     \
  umemVirtual *open_##name##_cuda(void) { return open_over(construct_##name, "cuda-async"); }      \
  umemVirtual *open_##name##_gpu(void) { return open_on_gpu(construct_##name, "cuda"); }           \
  umemVirtual *open_##name##_pinned(void) { return open_on_gpu(construct_##name, "cuda-host"); }   \
  umemVirtual *open_##name##_managed(void) { return open_on_gpu(construct_##name, "cuda-managed"); }

/* More than any test needs; less than what no memory has, which would leave nothing to other
 * threads while it is being asked for. */
ADAPTOR(limit, umemLimit_ctor(ctx, upstream, (size_t)1 << 40))
ADAPTOR(stats, umemStats_ctor(ctx, upstream))
ADAPTOR(track, umemTrack_ctor(ctx, upstream, NULL))
ADAPTOR(debug, umemDebug_ctor(ctx, upstream, NULL))
umemVirtual *open_debug_mmap(void) { return open_over(construct_debug, "mmap-scratch"); }
umemVirtual *open_debug_pool(void) { return open_over(construct_debug, "pool(host)"); }
umemVirtual *open_debug_pool_cuda(void) { return open_over(construct_debug, "pool(cuda)"); }

static bool give_up(void *user, void *ctx, size_t nbytes, size_t alignment, unsigned attempt) {
  (void)user, (void)ctx, (void)nbytes, (void)alignment, (void)attempt;
  return false;
}
ADAPTOR(retry, umemRetry_ctor(ctx, upstream, give_up, NULL))
ADAPTOR(fault, umemFault_ctor(ctx, upstream, NULL))
ADAPTOR(guarded, umemGuarded_ctor(ctx, upstream))

/* Of a file that vanishes with it. */
umemStatusType adaptor_log(umemStatusType (*construct)(umemLog *, void *, umemLogOptions const *),
                           void *ctx, void *upstream) {
  char path[BACKEND_PATH_SIZE];
  if (!backend_temp_file(path)) return umemIOError;
  umemLogOptions options = UMEM_LOG_OPTIONS_INIT;
  options.filename = path;
  options.max_bytes = 1 << 16;
  umemStatusType status = construct(ctx, upstream, &options);
  unlink(path);
  return status;
}
ADAPTOR(log, adaptor_log(umemLog_ctor, ctx, upstream))

static umemStatusType construct_prefetch(void *ctx, void *upstream) {
  return umemCudaPrefetch_ctor(ctx, upstream);
}
umemVirtual *open_prefetch(void) { return open_over(construct_prefetch, "cuda-managed"); }
