/* umem_stage.c - copies a run between two contexts through host memory, in chunks.
 *
 * Where both sides are concurrent and the run is long, a helper thread reads chunks ahead into a ring
 * of buffers while the caller writes them. Chunks are small enough to stay in the CPU's cache between
 * the two. */
#include "umem_core.h"

#include <pthread.h>

enum {
  chunk_bytes = 1 << 20,
  least_chunk = 1 << 12,
  ring_chunks = 4,
};

/* Below this a thread costs more than it saves. */
static size_t const pipeline_from = 8 << 20;

typedef struct Stage {
  umemVirtual *src, *dst, *host;
  uintptr_t src_adr, dst_adr;
  size_t nbytes;
  size_t chunk;
  char *buffer;

  /* The rest is for the helper thread. */
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  size_t filled, drained; /* chunks; guarded by mutex, as is over */
  bool over;              /* one of the two has failed, or all is read */
  char const *function;
  umemAttempt attempt;
} Stage;

static size_t length_of(Stage const *stage, size_t k) {
  size_t rest = stage->nbytes - k * stage->chunk;
  return rest < stage->chunk ? rest : stage->chunk;
}

/* Ordered contexts may return early, but then the buffer is not yet full, or still in use. */
static bool read_chunk(Stage *stage, size_t k, char *buffer) {
  uint64_t before = umem_thread.failures;
  umem_read_run(stage->src, stage->src_adr + k * stage->chunk, stage->host, buffer,
                length_of(stage, k));
  umem_synchronize(stage->src);
  return umem_thread.failures == before;
}

static bool write_chunk(Stage *stage, size_t k, char const *buffer) {
  uint64_t before = umem_thread.failures;
  umem_write_run(stage->dst, stage->dst_adr + k * stage->chunk, stage->host, buffer,
                 length_of(stage, k));
  umem_synchronize(stage->dst);
  return umem_thread.failures == before;
}

static size_t count_of(Stage const *stage) {
  return stage->nbytes / stage->chunk + (stage->nbytes % stage->chunk != 0);
}

static void copy_in_turns(Stage *stage) {
  for (size_t k = 0; k < count_of(stage); k++)
    if (!read_chunk(stage, k, stage->buffer) || !write_chunk(stage, k, stage->buffer)) return;
}

/* ---- the pipeline ---- */

static char *slot_of(Stage *stage, size_t k) {
  return stage->buffer + k % ring_chunks * stage->chunk;
}

/* Raises *done to k, or ends the pipeline. */
static void publish(Stage *stage, size_t *done, size_t k, bool over) {
  pthread_mutex_lock(&stage->mutex);
  *done = k;
  if (over) stage->over = true;
  pthread_cond_signal(&stage->changed);
  pthread_mutex_unlock(&stage->mutex);
}

static bool wait_for_room(Stage *stage, size_t k) {
  pthread_mutex_lock(&stage->mutex);
  while (!stage->over && k - stage->drained >= ring_chunks)
    pthread_cond_wait(&stage->changed, &stage->mutex);
  bool room = !stage->over;
  pthread_mutex_unlock(&stage->mutex);
  return room;
}

static bool wait_for_chunk(Stage *stage, size_t k) {
  pthread_mutex_lock(&stage->mutex);
  while (!stage->over && stage->filled <= k) pthread_cond_wait(&stage->changed, &stage->mutex);
  bool there = stage->filled > k;
  pthread_mutex_unlock(&stage->mutex);
  return there;
}

static void *read_ahead(void *argument) {
  Stage *stage = argument;
  size_t count = count_of(stage);
  umem_thread.function = stage->function;
  umemAttempt_begin(&stage->attempt);
  size_t k = 0;
  while (k < count && wait_for_room(stage, k) && read_chunk(stage, k, slot_of(stage, k))) {
    k++;
    publish(stage, &stage->filled, k, false);
  }
  umemAttempt_end(&stage->attempt);
  publish(stage, &stage->filled, k, true);
  return NULL;
}

/* False when there is no thread to be had, with nothing copied. */
static bool copy_overlapped(Stage *stage) {
  pthread_t reader;
  stage->function = umem_thread.function;
  pthread_mutex_init(&stage->mutex, NULL);
  pthread_cond_init(&stage->changed, NULL);
  bool started = pthread_create(&reader, NULL, read_ahead, stage) == 0;
  if (started) {
    for (size_t k = 0; k < count_of(stage) && wait_for_chunk(stage, k); k++) {
      bool written = write_chunk(stage, k, slot_of(stage, k));
      publish(stage, &stage->drained, k + 1, !written);
      if (!written) break;
    }
    pthread_join(reader, NULL);
    umemAttempt_record(&stage->attempt);
  }
  pthread_cond_destroy(&stage->changed);
  pthread_mutex_destroy(&stage->mutex);
  return started;
}

/* ---- the whole ---- */

/* Takes a buffer of nbytes, or of half, a quarter, ... down to least_chunk; tells which in *nbytes. */
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

void umem_stage(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                size_t nbytes) {
  umemVirtual *host = umem_host_between(src, dst);
  if (!host) return;
  Stage stage = {.src = src, .dst = dst, .host = host, .src_adr = src_adr, .dst_adr = dst_adr};
  stage.nbytes = nbytes;
  bool overlap =
      nbytes >= pipeline_from && umem_can(src, umemConcurrent) && umem_can(dst, umemConcurrent);
  size_t wanted = overlap ? (size_t)ring_chunks * chunk_bytes : chunk_bytes;
  size_t taken = nbytes < wanted ? nbytes : wanted;
  uint64_t before = umem_thread.failures;
  stage.buffer = take_buffer(host, &taken);
  if (!stage.buffer) {
    umemVirtual_adopt(src, before);
    return;
  }
  stage.chunk = overlap ? taken / ring_chunks : taken;
  if (!overlap || !copy_overlapped(&stage)) copy_in_turns(&stage);
  umem_free(host, (uintptr_t)stage.buffer);
}
