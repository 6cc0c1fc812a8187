/* cuda_buffers.c - see cuda_buffers.h. RAM is pinned where that pays: copies through it run at the speed of the
 * link. */
#include "cuda/cuda_buffers.h"
#include "core/context.h"
#include "core/ram.h"
#include "cuda/cuda_scope.h"
#include "cuda/cuda_staging.h"

#include <stdlib.h>

enum { buffers_alignment = 16 };

static umemCudaGpu *gpu_of(umemVirtual *ctx) { return ((umemCudaBuffers *)ctx)->gpu; }

static bool buffers_is_same_device(umemVirtual *ctx, umemVirtual *other) {
  (void)ctx;
  return umem_is_plain_host(other);
}

/* Pinned memory, or 0, as in a child of fork. Nothing is recorded: malloc serves instead. */
static uintptr_t lend_chunk(umemCudaGpu *gpu, size_t nbytes) {
  if (nbytes < umemStagingBufferFrom) return 0;
  umemCudaChunk *chunk = NULL;
  umemAttempt forgotten;
  umemAttempt_begin(&forgotten);
  umemCudaScope scope;
  if (nbytes <= umemCudaChunks_size() && umemCudaScope_enter(&scope, NULL, gpu)) {
    chunk = umemCudaChunk_take(gpu);
    umemCudaScope_leave(&scope);
  }
  umemAttempt_end(&forgotten);
  if (chunk && chunk->nbytes < nbytes) { /* the size was changed meanwhile */
    umemCudaChunk_give(chunk);
    chunk = NULL;
  }
  return chunk ? (uintptr_t)chunk->memory : 0;
}

static uintptr_t buffers_alloc(umemVirtual *ctx, size_t nbytes) {
  uintptr_t adr = lend_chunk(gpu_of(ctx), nbytes);
  return adr ? adr : (uintptr_t)malloc(nbytes);
}

static void buffers_free(umemVirtual *ctx, uintptr_t adr) {
  umemCudaChunk *chunk = umemCudaChunk_at(gpu_of(ctx), (void *)adr);
  if (chunk)
    umemCudaChunk_give(chunk);
  else
    free((void *)adr);
}

static struct umemVtbl const buffers_vtbl = {
    .is_same_device = buffers_is_same_device,
    .alloc = buffers_alloc,
    .free = buffers_free,
    .set = umem_ram_set,
    .copy_to = umem_ram_copy_to,
    .copy_from = umem_ram_copy_from,
};

/* No kind that a program meets: it stands for a umemHost in copies. */
static umemKind const buffers_kind = {
    .scheme = {.vtbl = &buffers_vtbl},
    .label = "Host",
    .type = umemHostDevice,
    .capabilities = umemCpuReadable | umemCpuWritable | umemDeviceAccessible | umemReadable |
                    umemWritable | umemConcurrent | umemSilent,
    .alignment = buffers_alignment,
};

void umemCudaBuffers_ctor(umemCudaBuffers *buffers, umemCudaGpu *gpu) {
  umem_construct(&buffers->host.super, &buffers_kind, &buffers->host);
  buffers->gpu = gpu;
}
