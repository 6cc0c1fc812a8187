/* external.c - opens contexts over allocators of others: malloc, and CUDA's functions. */
#include "external.h"

#include <stdlib.h>

typedef struct OpenExternal {
  umemExternal ctx;
  Backend const *inner;
  umemVirtual *upstream;
  umemVirtual *from; /* allocates; NULL: malloc */
} OpenExternal;

/* A system that promises more memory than it has would give any block. */
static size_t const largest = (size_t)1 << 40;

static void *get_malloc(void *user, size_t nbytes, size_t alignment, uintptr_t stream) {
  (void)user, (void)stream;
  return nbytes > largest ? NULL : aligned_alloc(alignment, (nbytes + alignment - 1) & -alignment);
}

static void give_malloc(void *user, void *block, size_t nbytes, size_t alignment,
                        uintptr_t stream) {
  (void)user, (void)nbytes, (void)alignment, (void)stream;
  free(block);
}

/* The blocks of another context in the same memory. */
static void *get_from(void *user, size_t nbytes, size_t alignment, uintptr_t stream) {
  (void)stream;
  return (void *)umem_aligned_alloc(user, alignment, nbytes);
}

static void give_to(void *user, void *block, size_t nbytes, size_t alignment, uintptr_t stream) {
  (void)nbytes, (void)alignment, (void)stream;
  umem_aligned_free(user, (uintptr_t)block);
}

static void end_from(void *user) {
  umem_dtor(user);
  free(user);
}

/* from: taken over. */
static umemVirtual *open_over(char const *name, umemVirtual *from) {
  OpenExternal *self = calloc(1, sizeof *self);
  if (!self) abort();
  umemExternalOptions options = UMEM_EXTERNAL_OPTIONS_INIT;
  options.allocate = from ? get_from : get_malloc;
  options.deallocate = from ? give_to : give_malloc;
  options.release = from ? end_from : NULL;
  options.user = from;
  self->inner = backend_by_name(name);
  self->upstream = self->inner->open();
  if (self->upstream && umemExternal_ctor(&self->ctx, self->upstream, &options) == umemOK)
    return &self->ctx.super;
  if (self->upstream) self->inner->close(self->upstream);
  if (from) end_from(from);
  free(self);
  return NULL;
}

static umemVirtual *open_like(char const *name) {
  umemVirtual *from = backend_by_name(name)->open();
  return from ? open_over(name, from) : NULL;
}

umemVirtual *open_external_malloc(void) { return open_over("host", NULL); }
umemVirtual *open_external_cuda(void) { return open_like("cuda"); }
umemVirtual *open_external_managed(void) { return open_like("cuda-managed"); }

/* On one stream: the blocks of the second context are in the order of the first. */
umemVirtual *open_external_async(void) { return open_like("cuda-async-0"); }

void close_external(umemVirtual *ctx) {
  OpenExternal *self = (OpenExternal *)ctx;
  umem_dtor(ctx);
  self->inner->close(self->upstream);
  free(self);
}
