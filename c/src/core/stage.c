/* stage.c - copies a run between two contexts through host memory, in chunks.
 *
 * Where both sides are concurrent and the run is long, two threads share the chunks: each takes the
 * next one, reads it and writes it. So one reads while the other writes, no chunk is handed from
 * thread to thread, and each is written from the cache of the core that has read it. */
#include "core/stage.h"
#include "base/thread.h"
#include "core/ends.h"
#include "core/guard.h"
#include "core/order.h"
#include "core/parallel.h"
#include "core/route.h"

#include <pthread.h>

enum {
  chunk_bytes = 512 << 10, /* stays in the cache of a core between reading and writing */
  least_chunk = 1 << 12,
  sharing_threads = 2,
};

/* Below this a thread costs more than it saves. */
static size_t const share_from = 8 << 20;

/* One end of the copy. */
typedef struct Side {
  umemVirtual *ctx;
  uintptr_t adr;
  pthread_mutex_t turn;
} Side;

typedef struct Stage {
  Side src, dst;
  umemVirtual *host;
  size_t nbytes, chunk;
  size_t next; /* chunk that nobody has taken; atomic, as is over */
  bool over;   /* a chunk has failed: take no other */
  char *buffers;
} Stage;

/* To wait for an ordered context is to wait for all that is queued on it, so two threads would keep
 * step, both reading and then both writing. Therefore they take turns there. */
static void begin(Side *side) {
  if (umem_can(side->ctx, umemOrdered)) pthread_mutex_lock(&side->turn);
}

/* Only now is the buffer full, or free to be used again. */
static void end(Side *side) {
  if (!umem_can(side->ctx, umemOrdered)) return;
  umem_finish(side->ctx);
  pthread_mutex_unlock(&side->turn);
}

static bool copy_chunk(Stage *stage, size_t at, char *buffer, size_t nbytes) {
  uint64_t before = umem_thread.failures;
  begin(&stage->src);
  umem_read_leg(stage->src.ctx, stage->src.adr + at, stage->host, buffer, nbytes);
  end(&stage->src);
  if (umem_thread.failures != before) return false;
  begin(&stage->dst);
  umem_write_leg(stage->dst.ctx, stage->dst.adr + at, stage->host, buffer, nbytes);
  end(&stage->dst);
  return umem_thread.failures == before;
}

/* The work of one thread. */
static void copy_chunks(void *job, unsigned piece) {
  Stage *stage = job;
  char *buffer = stage->buffers + piece * stage->chunk;
  size_t count = stage->nbytes / stage->chunk + (stage->nbytes % stage->chunk != 0);
  while (!__atomic_load_n(&stage->over, __ATOMIC_RELAXED)) {
    size_t k = __atomic_fetch_add(&stage->next, 1, __ATOMIC_RELAXED);
    if (k >= count) return;
    size_t at = k * stage->chunk;
    size_t rest = stage->nbytes - at;
    if (!copy_chunk(stage, at, buffer, rest < stage->chunk ? rest : stage->chunk))
      __atomic_store_n(&stage->over, true, __ATOMIC_RELAXED);
  }
}

/* Allocates a buffer of nbytes, or of half, a quarter, ... down to least_chunk; stores its size in *nbytes. */
static char *take_buffer(umemVirtual *host, size_t *nbytes) {
  for (;; *nbytes /= 2) {
    umemAttempt attempt;
    umemAttempt_begin(&attempt);
    uintptr_t buffer = umem_alloc(host, *nbytes);
    umemAttempt_end(&attempt);
    if (!umemAttempt_failed(&attempt)) return (char *)buffer;
    if (*nbytes < 2 * least_chunk) {
      umemAttempt_record(&attempt);
      return NULL;
    }
  }
}

static umemStageBeside *asked; /* atomic */

void umem_stage_ask(umemStageBeside *beside) { __atomic_store_n(&asked, beside, __ATOMIC_RELEASE); }

static bool copy_beside(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                        size_t nbytes) {
  umemStageBeside *beside = __atomic_load_n(&asked, __ATOMIC_ACQUIRE);
  return beside && beside(src, src_adr, dst, dst_adr, nbytes);
}

void umem_stage(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                size_t nbytes) {
  if (nbytes >= umemStageBesideFrom && copy_beside(src, src_adr, dst, dst_adr, nbytes)) return;
  umemVirtual *host = umem_host_between(src, dst);
  if (!host) return;
  bool share =
      nbytes >= share_from && umem_can(src, umemConcurrent) && umem_can(dst, umemConcurrent);
  unsigned pieces = share ? sharing_threads : 1;
  size_t wanted = pieces * (size_t)chunk_bytes;
  size_t taken = nbytes < wanted ? nbytes : wanted;
  uint64_t before = umem_thread.failures;
  char *buffers = take_buffer(host, &taken);
  if (!buffers) {
    umemVirtual_adopt(src, before);
    return;
  }
  Stage stage = {.src = {src, src_adr, PTHREAD_MUTEX_INITIALIZER},
                 .dst = {dst, dst_adr, PTHREAD_MUTEX_INITIALIZER},
                 .host = host,
                 .nbytes = nbytes,
                 .chunk = taken / pieces,
                 .buffers = buffers};
  if (share)
    umem_parallel(pieces, copy_chunks, &stage);
  else
    copy_chunks(&stage, 0);
  umem_free(host, (uintptr_t)buffers);
}
