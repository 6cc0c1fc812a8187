/* cuda_streams.c - a pool of streams of one GPU, handed out in turn. */
#include "core/status.h"
#include "cuda/cuda_scope.h"

#include <stdlib.h>
#include <umem/cuda.h>

typedef struct Streams {
  umemCudaGpu *gpu; /* a user of it */
  unsigned count;
  unsigned next; /* atomic; wraps */
  void *streams[];
} Streams;

static Streams *streams_of(umemCudaStreams const *self) {
  if (self && self->impl) return self->impl;
  return UMEM_FAIL_NULL(NULL, umemValueError, "the streams are %s",
                        self ? "not constructed" : "NULL");
}

/* Destroys the first count of them. In a scope. */
static void destroy(Streams *streams, unsigned count) {
  umemCudaRt const *rt = streams->gpu->rt;
  for (unsigned i = 0; i < count; i++) UMEM_CUDA_TRY_TWICE(rt, stream_destroy(streams->streams[i]));
}

/* Creates all of them or none. */
static bool create(Streams *streams) {
  umemCudaGpu *gpu = streams->gpu;
  umemCudaScope scope;
  unsigned made = 0;
  if (!umemCudaScope_enter(&scope, NULL, gpu)) return false;
  for (; made < streams->count; made++) {
    int error = gpu->rt->stream_create(&streams->streams[made]);
    if (!umemCuda_check(NULL, gpu, error, "cannot create stream %u of %u", made, streams->count))
      break;
  }
  bool all = made == streams->count;
  if (!all) destroy(streams, made);
  umemCudaScope_leave(&scope);
  return all;
}

umemStatusType umemCudaStreams_open(umemCudaStreams *self, int device, unsigned count) {
  UMEM_ENTER();
  umem_defer_cancel();
  if (!self) return umemVirtual_fail(NULL, umemValueError, "the streams are NULL");
  *self = (umemCudaStreams){.impl = NULL};
  if (!count) return umemVirtual_fail(NULL, umemValueError, "0 streams are none");
  Streams *streams = calloc(1, sizeof *streams + count * sizeof *streams->streams);
  if (!streams) return umemVirtual_fail(NULL, umemMemoryError, "no memory for %u streams", count);
  streams->count = count;
  streams->gpu = umemCudaGpu_open(NULL, device);
  if (streams->gpu && create(streams)) {
    self->impl = streams;
    return UMEM_RESULT();
  }
  if (streams->gpu) umemCudaGpu_close(streams->gpu);
  free(streams);
  return UMEM_RESULT();
}

uintptr_t umemCudaStreams_next(umemCudaStreams *self) {
  UMEM_ENTER();
  Streams *streams = streams_of(self);
  if (!streams) return 0;
  unsigned turn = __atomic_fetch_add(&streams->next, 1, __ATOMIC_RELAXED);
  return (uintptr_t)streams->streams[turn % streams->count];
}

uintptr_t umemCudaStreams_at(umemCudaStreams *self, unsigned index) {
  UMEM_ENTER();
  Streams *streams = streams_of(self);
  if (!streams) return 0;
  if (index < streams->count) return (uintptr_t)streams->streams[index];
  umemVirtual_fail(NULL, umemIndexError, "there is no stream %u among %u", index, streams->count);
  return 0;
}

unsigned umemCudaStreams_count(umemCudaStreams const *self) {
  return self && self->impl ? ((Streams const *)self->impl)->count : 0;
}

void umemCudaStreams_close(umemCudaStreams *self) {
  UMEM_ENTER();
  umem_defer_cancel();
  if (!self || !self->impl) return;
  Streams *streams = self->impl;
  umemCudaScope scope;
  if (!umemCudaGpu_is_inherited(streams->gpu) && umemCudaScope_enter(&scope, NULL, streams->gpu)) {
    destroy(streams, streams->count);
    umemCudaScope_leave(&scope);
  }
  umemCudaGpu_close(streams->gpu);
  free(streams);
  self->impl = NULL;
}
