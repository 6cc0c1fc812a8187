/* cuda_staging.c - see cuda_staging.h. */
#include "cuda/cuda_staging.h"
#include "base/thread.h"
#include "core/status.h"
#include "cuda/cuda_pin.h"
#include "cuda/cuda_scope.h"

#include <stdlib.h>
#include <umem/cuda.h>

/* Guards all that follows. Made when the library is loaded, so that it is older than every lock
 * under which a chunk may be wanted. It is held while a chunk is released: nobody must close the
 * GPU, whose context that needs, meanwhile. */
static umemLock lock;
static umemCudaChunk *first; /* those returned last come first: they may still be in a cache */
static unsigned count;       /* of chunks, those that are being pinned included */
static size_t size_now = umemStagingChunk;
static unsigned most = umemStagingChunks;

__attribute__((constructor(101))) static void make_lock(void) { umemLock_init(&lock); }

/* ---- the list; the lock is held ---- */

static void insert(umemCudaChunk *chunk) {
  chunk->next = first;
  first = chunk;
}

static void unlink_chunk(umemCudaChunk *chunk) {
  umemCudaChunk **link = &first;
  while (*link != chunk) link = &(*link)->next;
  *link = chunk->next;
}

/* Unpins a chunk and forgets it. What fails is nobody's failure: no copy needs the chunk any more,
 * and an error that matters will meet the next call. In a child of fork the pages are left to the
 * end of the process. */
static void release(umemCudaChunk *chunk) {
  unlink_chunk(chunk);
  count--;
  umemCudaGpu *gpu = chunk->gpu;
  umemAttempt forgotten;
  umemAttempt_begin(&forgotten);
  umemCudaScope scope;
  if (umemCudaScope_enter(&scope, NULL, gpu)) {
    if (umemCuda_unpin(gpu->rt, chunk->memory, chunk->nbytes, umemCudaPortable))
      gpu->rt->last_error();
    umemCudaScope_leave(&scope);
  }
  umemAttempt_end(&forgotten);
  free(chunk);
}

static bool is_welcome(umemCudaChunk const *chunk) {
  return chunk->nbytes == size_now && count <= most;
}

/* Releases the idle chunks of another size or beyond the bound. */
static void tidy(void) {
  umemCudaChunk *next;
  for (umemCudaChunk *chunk = first; chunk; chunk = next) {
    next = chunk->next;
    if (!chunk->lent && !is_welcome(chunk)) release(chunk);
  }
}

/* An idle chunk of gpu, or, with others, of any GPU but this one. */
static umemCudaChunk *find_idle(umemCudaGpu *gpu, bool others) {
  umemCudaChunk *chunk = first;
  while (chunk && (chunk->lent || (chunk->gpu == gpu) == others)) chunk = chunk->next;
  return chunk;
}

/* Makes room for one more chunk, if need be at the cost of another GPU's. */
static bool reserve(umemCudaGpu *gpu) {
  umemCudaChunk *other = count < most ? NULL : find_idle(gpu, true);
  if (other) release(other);
  if (count >= most) return false;
  count++;
  return true;
}

/* ---- lending ---- */

/* A new chunk in the room that was reserved for it. */
static umemCudaChunk *pin_chunk(umemCudaGpu *gpu, size_t nbytes) {
  umemCudaChunk *chunk = calloc(1, sizeof *chunk);
  void *memory = NULL;
  if (!chunk) return NULL;
  if (umemCuda_pin(gpu->rt, &memory, nbytes, umemCudaPortable)) {
    gpu->rt->last_error();
    free(chunk);
    return NULL;
  }
  *chunk = (umemCudaChunk){.gpu = gpu, .memory = memory, .nbytes = nbytes, .lent = true};
  return chunk;
}

umemCudaChunk *umemCudaChunk_take(umemCudaGpu *gpu) {
  umemLock_acquire(&lock);
  umemCudaChunk *chunk = find_idle(gpu, false);
  if (chunk) chunk->lent = true;
  bool reserved = !chunk && reserve(gpu);
  size_t nbytes = size_now;
  umemLock_release(&lock);
  if (!reserved) return chunk;

  chunk = pin_chunk(gpu, nbytes); /* takes its time: others need not wait */
  umemLock_acquire(&lock);
  if (chunk)
    insert(chunk);
  else
    count--;
  umemLock_release(&lock);
  return chunk;
}

umemCudaChunk *umemCudaChunk_at(umemCudaGpu *gpu, void const *adr) {
  umemLock_acquire(&lock);
  umemCudaChunk *chunk = first;
  while (chunk && !(chunk->lent && chunk->memory == adr && chunk->gpu == gpu)) chunk = chunk->next;
  umemLock_release(&lock);
  return chunk;
}

void umemCudaChunk_give(umemCudaChunk *chunk) {
  umemLock_acquire(&lock);
  if (is_welcome(chunk)) {
    unlink_chunk(chunk);
    insert(chunk);
    chunk->lent = false;
  } else {
    release(chunk);
  }
  umemLock_release(&lock);
}

size_t umemCudaChunks_size(void) {
  umemLock_acquire(&lock);
  size_t nbytes = size_now;
  umemLock_release(&lock);
  return nbytes;
}

void umemCudaChunks_release(umemCudaGpu *gpu) {
  umemLock_acquire(&lock);
  umemCudaChunk *next;
  for (umemCudaChunk *chunk = first; chunk; chunk = next) {
    next = chunk->next;
    if (chunk->gpu == gpu) release(chunk);
  }
  umemLock_release(&lock);
}

/* ---- tuning ---- */

static size_t const least_chunk = 64 << 10, largest_chunk = 64 << 20, chunk_step = 4096;
static unsigned const most_chunks = 256;

umemStatusType umemCuda_set_staging(size_t chunk_bytes, unsigned chunks) {
  UMEM_ENTER();
  if (!chunk_bytes) chunk_bytes = umemStagingChunk;
  if (!chunks) chunks = umemStagingChunks;
  if (chunk_bytes < least_chunk || chunk_bytes > largest_chunk || chunk_bytes % chunk_step)
    return umemVirtual_fail(NULL, umemValueError,
                            "chunks of %zu bytes: must be a multiple of %zu from %zu to %zu",
                            chunk_bytes, chunk_step, least_chunk, largest_chunk);
  if (chunks > most_chunks)
    return umemVirtual_fail(NULL, umemValueError, "%u chunks: at most %u are possible", chunks,
                            most_chunks);
  umem_defer_cancel();
  umemLock_acquire(&lock);
  size_now = chunk_bytes;
  most = chunks;
  tidy();
  umemLock_release(&lock);
  return umemOK;
}
