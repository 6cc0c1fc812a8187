/* pools.c - opens pools over any row of the table. */
#include "pools.h"

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

void close_pool(umemVirtual *ctx) {
  OpenPool *self = (OpenPool *)ctx;
  umem_dtor(ctx);
  self->inner->close(self->upstream);
  free(self);
}

BackendBooks pool_books(umemVirtual *ctx) {
  OpenPool *self = (OpenPool *)ctx;
  umemPoolStats stats = UMEM_POOL_STATS_INIT;
  umemPool_stats(&self->pool, &stats);
  return (BackendBooks){stats.blocks, backend_moves(self->inner, self->upstream)};
}
