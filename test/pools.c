/* pools.c - opens pools over any row of the table. */
#include "pools.h"

#include "fake/fake.h"

#include <stdlib.h>

typedef struct OpenPool {
  umemPool pool;
  Backend const *inner;
  umemVirtual *upstream;
} OpenPool;

static umemVirtual *open_pool_over(char const *name) {
  OpenPool *self = malloc(sizeof *self);
  if (!self) return NULL;
  self->inner = backend_by_name(name);
  self->upstream = self->inner->open();
  if (self->upstream && umemPool_ctor(&self->pool, self->upstream, NULL) == umemOK)
    return &self->pool.super;
  if (self->upstream) self->inner->close(self->upstream);
  free(self);
  return NULL;
}

umemVirtual *open_pool_host(void) { return open_pool_over("host"); }
umemVirtual *open_pool_file(void) { return open_pool_over("file-scratch"); }
umemVirtual *open_pool_mmap(void) { return open_pool_over("mmap-scratch"); }
umemVirtual *open_pool_fake(void) { return open_pool_over("fake"); }
umemVirtual *open_pool_offset(void) { return open_pool_over("fake-offset"); }
umemVirtual *open_pool_async(void) { return open_pool_over("fake-async"); }
umemVirtual *open_pool_fake_managed(void) { return open_pool_over("fake-managed"); }
umemVirtual *open_pool_cuda(void) { return open_pool_over("cuda"); }
umemVirtual *open_pool_cuda_async(void) { return open_pool_over("cuda-async"); }
umemVirtual *open_pool_cuda_host(void) { return open_pool_over("cuda-host"); }
umemVirtual *open_pool_cuda_managed(void) { return open_pool_over("cuda-managed"); }

/* ---- views ---- */

/* A view of a pool: the pool stands on one context of the device, the view on another. */
typedef struct OpenPoolOn {
  umemPoolOn view;
  umemPool pool;
  umemVirtual *base, *queue;
} OpenPoolOn;

static void end_view(OpenPoolOn *self) {
  umem_dtor(&self->view);
  umem_dtor(&self->pool);
  umem_dtor(self->queue);
  umem_dtor(self->base);
  free(self->queue);
  free(self->base);
  free(self);
}

static umemVirtual *open_view(OpenPoolOn *self) {
  if (umemPool_ctor(&self->pool, self->base, NULL) == umemOK &&
      umemPoolOn_ctor(&self->view, &self->pool, self->queue) == umemOK)
    return &self->view.super;
  end_view(self);
  return NULL;
}

umemVirtual *open_pool_on_async(void) {
  OpenPoolOn *self = calloc(1, sizeof *self);
  FakeAsync *base = malloc(sizeof *base), *queue = malloc(sizeof *queue);
  if (!self || !base || !queue || fake_async_ctor(base) != umemOK ||
      fake_async_ctor_on(queue, base) != umemOK)
    abort();
  self->base = &base->super.super;
  self->queue = &queue->super.super;
  return open_view(self);
}

static umemVirtual *open_pool_on_cuda(umemVirtual *base) {
  OpenPoolOn *self = calloc(1, sizeof *self);
  umemCudaAsync *queue = calloc(1, sizeof *queue);
  if (!self || !base || !queue) abort();
  self->base = base;
  self->queue = &queue->super;
  umemCudaAsync_ctor(queue, 0, UMEM_STREAM_NEW);
  return open_view(self);
}

umemVirtual *open_pool_on_cuda_sync(void) {
  umemCuda *base = calloc(1, sizeof *base);
  if (base) umemCuda_ctor(base, 0);
  return open_pool_on_cuda(base ? &base->super : NULL);
}

umemVirtual *open_pool_on_cuda_async(void) {
  umemCudaAsync *base = calloc(1, sizeof *base);
  if (base) umemCudaAsync_ctor(base, 0, UMEM_STREAM_NEW);
  return open_pool_on_cuda(base ? &base->super : NULL);
}

void close_pool_on(umemVirtual *ctx) { end_view((OpenPoolOn *)ctx); }

BackendRecords pool_on_records(umemVirtual *ctx) {
  OpenPoolOn *self = (OpenPoolOn *)ctx;
  umemPoolStats stats = UMEM_POOL_STATS_INIT;
  umemPool_stats(&self->pool, &stats);
  bool fake = self->queue->type == umemUserDevice;
  return (BackendRecords){stats.blocks,
                          fake ? ((Fake *)self->queue)->moves : BACKEND_MOVES_UNKNOWN};
}

/* ---- pools ---- */

void close_pool(umemVirtual *ctx) {
  OpenPool *self = (OpenPool *)ctx;
  umem_dtor(ctx);
  self->inner->close(self->upstream);
  free(self);
}

BackendRecords pool_records(umemVirtual *ctx) {
  OpenPool *self = (OpenPool *)ctx;
  umemPoolStats stats = UMEM_POOL_STATS_INIT;
  umemPool_stats(&self->pool, &stats);
  return (BackendRecords){stats.blocks, backend_moves(self->inner, self->upstream)};
}
