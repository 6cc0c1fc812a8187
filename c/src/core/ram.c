/* ram.c - the methods of contexts whose memory is RAM of this process, wherever it comes from.
 *
 * Several threads share long runs: one processor moves a fraction of what the memory of the machine
 * does. */
#include "core/ram.h"
#include "base/system.h"
#include "base/number.h"
#include "core/threads.h"
#include "core/status.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

/* What a thread of its own is worth, as for items (tiles.c). A thread that is done with one piece
 * takes the next. */
static size_t const piece_bytes = 2 << 20;
/* A thread that sleeps takes as long to wake as one thread copies some MiB within the caches. */
static size_t const shared_from = 8 << 20;

/* ---- in pieces ---- */

typedef struct Run {
  char *dst;
  char const *src; /* or NULL: every byte becomes value */
  int value;
  size_t nbytes;
  size_t next; /* the first byte of the next piece; atomic */
  pthread_t caller;
  cpu_set_t near; /* the processors of its node */
  bool has_near;
} Run;

static void do_pieces(Run *run) {
  size_t first;
  while ((first = __atomic_fetch_add(&run->next, piece_bytes, __ATOMIC_RELAXED)) < run->nbytes) {
    size_t n = umem_lesser(run->nbytes - first, piece_bytes);
    if (run->src)
      umem_copy_bytes(run->dst + first, run->src + first, n);
    else
      memset(run->dst + first, run->value, n);
  }
}

/* Memory that no thread has touched yet comes to the node of the caller, as if it did all. */
static void do_near(void *job, unsigned thread) {
  (void)thread;
  Run *run = job;
  cpu_set_t before;
  bool helps = run->has_near && !pthread_equal(run->caller, pthread_self());
  bool moved = helps && umemNear_enter(&run->near, &before);
  do_pieces(run);
  if (moved) umemNear_leave(&before);
}

static __attribute__((noinline)) void share(Run *run) {
  unsigned threads = umem_parallel_pieces(run->nbytes, piece_bytes, umemParallelMost);
  run->caller = pthread_self();
  run->has_near = threads > 1 && umemNear_here(&run->near);
  umem_parallel(threads, do_near, run);
}

static bool overlap(uintptr_t a, uintptr_t b, size_t nbytes) {
  return (a < b ? b - a : a - b) < nbytes;
}

/* Apart, so that a short copy is a bare jump to memmove. */
static __attribute__((noinline)) void copy_long(char *dst, char const *src, size_t nbytes) {
  if (overlap((uintptr_t)dst, (uintptr_t)src, nbytes))
    memmove(dst, src, nbytes); /* pieces of several threads would overwrite one another's source */
  else if (nbytes < shared_from)
    umem_copy_bytes(dst, src, nbytes);
  else
    share(&(Run){.dst = dst, .src = src, .nbytes = nbytes});
}

/* ---- methods ---- */

void umem_ram_set(umemVirtual *ctx, uintptr_t adr, int c, size_t nbytes) {
  (void)ctx;
  if (nbytes < shared_from)
    memset((void *)adr, c, nbytes);
  else
    share(&(Run){.dst = (char *)adr, .value = c, .nbytes = nbytes});
}

void umem_ram_copy_to(umemVirtual *ctx, uintptr_t src_adr, umemVirtual *that, uintptr_t dst_adr,
                      size_t nbytes) {
  (void)ctx, (void)that;
  if (nbytes <= umemShortRun)
    memmove((void *)dst_adr, (void const *)src_adr, nbytes);
  else
    copy_long((char *)dst_adr, (char const *)src_adr, nbytes);
}

void umem_ram_copy_from(umemVirtual *ctx, uintptr_t dst_adr, umemVirtual *that, uintptr_t src_adr,
                        size_t nbytes) {
  umem_ram_copy_to(ctx, src_adr, that, dst_adr, nbytes);
}

void umem_ram_info(umemVirtual *ctx, umemInfo *info) {
  (void)ctx;
  uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
  info->page_size = page;
  info->capacity = (uint64_t)sysconf(_SC_PHYS_PAGES) * page;
  info->available = umemMemory_available();
}

bool umem_ram_has(umemVirtual *ctx, size_t nbytes) {
  uint64_t left;
  return umemMemory_has(nbytes, &left) ||
         UMEM_FAIL(ctx, umemMemoryError,
                   "%s cannot allocate %zu bytes: the machine and the control groups of the "
                   "process have %" PRIu64 " left",
                   umem_get_device_name(ctx), nbytes, left);
}
