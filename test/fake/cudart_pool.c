/* cudart_pool.c - the CUDA double: pools of device memory, in the order of streams.
 *
 * What is reused is room in a pool's records, never an address: so any use of a freed block is
 * found. */
#include "cudart_state.h"

#include <inttypes.h>

/* Room that a freed block has left. */
typedef struct Freed {
  struct Freed *next;
  uint64_t nbytes;
  Stream *stream; /* where it was freed */
  uint64_t until;
} Freed;

/* Whether work queued on stream now comes after the free. */
static bool is_over(Freed const *freed, Stream const *stream) {
  return freed->stream == stream || freed->stream->done >= freed->until;
}

/* Takes up to nbytes of the room that is free for stream, or of that free for all (NULL). */
static uint64_t room_take(Pool *pool, uint64_t nbytes, Stream const *stream) {
  uint64_t taken = 0;
  for (Freed **at = &pool->freed; *at && taken < nbytes;) {
    Freed *freed = *at;
    if (is_over(freed, stream)) {
      uint64_t part = freed->nbytes < nbytes - taken ? freed->nbytes : nbytes - taken;
      taken += part;
      freed->nbytes -= part;
    }
    if (freed->nbytes) {
      at = &freed->next;
    } else {
      *at = freed->next;
      free(freed);
    }
  }
  return taken;
}

static void shrink(Pool *pool, uint64_t keep) {
  if (pool->reserved > keep) pool->reserved -= room_take(pool, pool->reserved - keep, NULL);
}

/* So that all of the room is free for all. */
static void demand_frees(Pool *pool) {
  for (Freed *freed = pool->freed; freed; freed = freed->next)
    cudart_demand(freed->stream, freed->until);
}

void cudart_pools_shrink(int device) {
  for (Pool *p = cudart_state.pools; p; p = p->next)
    if (p->device == device) shrink(p, p->destroyed ? 0 : p->threshold);
}

void cudart_pool_leave(Pool *pool, uint64_t nbytes, Stream *stream) {
  Freed *freed = stream && !pool->destroyed ? malloc(sizeof *freed) : NULL;
  pool->used -= nbytes;
  if (freed) {
    *freed = (Freed){pool->freed, nbytes, stream, stream->queued};
    pool->freed = freed;
  } else {
    pool->reserved -= nbytes;
  }
}

void cudart_pools_destroy(void) {
  for (Pool *pool = cudart_state.pools, *next; pool; pool = next) {
    next = pool->next;
    for (Freed *freed = pool->freed, *after; freed; freed = after) {
      after = freed->next;
      free(freed);
    }
    cudart_shared_end(pool->shared);
    free(pool);
  }
}

/* ---- pools ---- */

Pool *cudart_pool(void *handle, int *error) {
  Pool *pool = cudart_state.pools;
  while (pool && pool != handle) pool = pool->next;
  if (!pool || pool->destroyed) {
    cudart_misuse(pool ? "a pool that is destroyed" : "a pool that is none");
    *error = umemCudaInvalidValue;
    return NULL;
  }
  *error = cudart_state.device[pool->device].broken;
  return *error ? NULL : pool;
}

int cudart_pool_make(void **pool, int device, size_t most) {
  if (device < 0 || device >= cudart_state.machine.devices) return umemCudaInvalidOrdinal;
  if (cudart_state.machine.device[device].no_pools) return umemCudaNotSupported;
  Pool *one = calloc(1, sizeof *one);
  if (!one) return umemCudaOutOfMemory;
  one->device = device;
  one->most = most ? most : UINT64_MAX;
  one->allowed = 1U << device;
  one->next = cudart_state.pools;
  *pool = cudart_state.pools = one;
  return umemCudaSuccess;
}

int cudart_pool_create(void **pool, int device, size_t most, bool shared) {
  bool known = device >= 0 && device < fakeCudartMost;
  if (shared && known && cudart_state.machine.device[device].no_shared_pools)
    return umemCudaNotSupported;
  int error = cudart_pool_make(pool, device, most);
  return !error && shared ? cudart_pool_make_shared(*pool) : error;
}

/* Blocks that live stay until they are freed. */
int cudart_pool_destroy(void *pool) {
  int error = umemCudaSuccess;
  Pool *one = cudart_pool(pool, &error);
  if (one) {
    one->destroyed = true;
    shrink(one, 0);
  }
  return error;
}

int cudart_pool_set_threshold(void *pool, uint64_t nbytes) {
  int error = umemCudaSuccess;
  Pool *one = cudart_pool(pool, &error);
  if (one) one->threshold = nbytes;
  return error;
}

int cudart_pool_trim(void *pool, size_t keep) {
  int error = umemCudaSuccess;
  Pool *one = cudart_pool(pool, &error);
  if (one) shrink(one, keep);
  return error;
}

int cudart_pool_sizes(void *pool, uint64_t *reserved, uint64_t *used) {
  int error = umemCudaSuccess;
  Pool const *one = cudart_pool(pool, &error);
  if (one) *reserved = one->reserved, *used = one->used;
  return error;
}

int cudart_pool_allow(void *pool, int device) {
  int error = umemCudaSuccess;
  Pool *one = cudart_pool(pool, &error);
  if (!one) return error;
  if (!cudart_device_of(device)) return umemCudaInvalidOrdinal;
  if (device != one->device && !cudart_are_peers(device, one->device)) return cudartPeerUnsupported;
  one->allowed |= 1U << device;
  return umemCudaSuccess;
}

/* ---- blocks ---- */

/* Makes room for nbytes in the order of stream. */
static int room_for(Pool *pool, uint64_t nbytes, Stream *stream) {
  uint64_t reused = room_take(pool, nbytes, stream), missing = nbytes - reused;
  Device const *device = &cudart_state.device[pool->device];
  bool fits = missing <= pool->most - pool->reserved && missing <= cudart_available(device);
  if (!fits) { /* the driver orders stream after other streams' frees rather than give up */
    demand_frees(pool);
    uint64_t more = room_take(pool, missing, stream);
    reused += more;
    missing -= more;
    fits = missing <= pool->most - pool->reserved && missing <= cudart_available(device);
  }
  if (fits) {
    pool->reserved += missing;
    pool->used += nbytes;
  } else {
    pool->reserved -= reused;
  }
  return fits ? umemCudaSuccess : umemCudaOutOfMemory;
}

static int pool_alloc(void **adr, size_t nbytes, Pool *pool, Stream *stream) {
  if (!nbytes || pool->opened) return umemCudaInvalidValue;
  if (stream->capture) return cudart_break_capture(stream, umemCudaCaptureUnsupported);
  int error = room_for(pool, nbytes, stream);
  if (error) return error;
  Block *block = cudart_device_block(&cudart_state.device[pool->device], nbytes);
  if (!block) {
    cudart_pool_leave(pool, nbytes, NULL);
    return umemCudaOutOfMemory;
  }
  block->pool = pool;
  block->ready = false;
  uintptr_t start = block->start;
  error = cudart_push(stream, &(Work){.kind = workReady, .to = {.adr = start}});
  if (error) {
    cudart_pool_leave(pool, nbytes, NULL);
    cudart_block_remove(block);
    return error;
  }
  *adr = (void *)start;
  return umemCudaSuccess;
}

/* A pool that grows does what captures forbid, so CUDA refuses it, although its manual does not say
 * so. The same holds for frees: in a global capture of the thread an H100 has refused one, and
 * broken the capture. */
int cudart_pool_malloc(void **adr, size_t nbytes, void *pool, void *stream) {
  int error = umemCudaSuccess;
  Pool *from = cudart_pool(pool, &error);
  Stream *on = from ? cudart_stream(stream, &error) : NULL;
  return on ? pool_alloc(adr, nbytes, from, on) : error;
}

static int free_late(uintptr_t adr, Stream *stream) {
  if (stream->capture) return cudart_break_capture(stream, umemCudaCaptureUnsupported);
  Block *block = cudart_block_at(adr);
  if (!block || block->start != adr || block->freed || !block->pool) {
    cudart_misuse("0x%" PRIxPTR " is not the start of a live block of a pool", adr);
    return umemCudaInvalidValue;
  }
  int error = cudart_push(stream, &(Work){.kind = workFree, .to = {.adr = adr}});
  if (error) return error;
  block->freed = true;
  cudart_pool_leave(block->pool, block->size, stream);
  return umemCudaSuccess;
}

int cudart_pool_free(void *adr, void *stream) {
  int error = umemCudaSuccess;
  Stream *on = cudart_stream(stream, &error);
  return on ? free_late((uintptr_t)adr, on) : error;
}
