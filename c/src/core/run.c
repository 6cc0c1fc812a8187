/* run.c - the router for runs. Nobody but the router pairs contexts; it tries in this order:
 *
 *   1. what source or destination can do by themselves (copy_direct)
 *   2. the CPU can address one side: the other reads from it or writes to it
 *   3. through host memory in chunks (run.c)
 *
 * The callers have validated both sides. */
#include "core/run.h"
#include "base/thread.h"
#include "core/context.h"
#include "core/layout.h"
#include "core/order.h"
#include "core/threads.h"
#include "core/watch.h"

#include <pthread.h>

/* ---- the two ends of a copy through host memory ---- */

/* A host whose buffers a GPU can use is pinned memory: copies through it are faster. */
umemVirtual *umem_host_between(umemVirtual *src, umemVirtual *dst) {
  if (umem_is_plain_host(dst)) return dst;
  if (umem_is_plain_host(src)) return src;
  umemVirtual *host = src->host ? src->host : dst->host, *other = dst->host;
  if (other && umem_can(other, umemDeviceAccessible)) host = other;
  if (!host)
    umemVirtual_fail(src, umemNotImplementedError, "neither %s nor %s has a host for buffers",
                     umem_get_device_name(src), umem_get_device_name(dst));
  return host;
}

void umem_read_run(umemVirtual *src, uintptr_t src_adr, umemVirtual *host, void *buffer, size_t n) {
  if (src->vptr->copy_to)
    src->vptr->copy_to(src, src_adr, host, (uintptr_t)buffer, n);
  else
    umemVirtual_fail(src, umemNotImplementedError, "%s has no method copy_to",
                     umem_get_device_name(src));
}

void umem_write_run(umemVirtual *dst, uintptr_t dst_adr, umemVirtual *host, void const *buffer,
                    size_t n) {
  if (dst->vptr->copy_from)
    dst->vptr->copy_from(dst, dst_adr, host, (uintptr_t)buffer, n);
  else
    umemVirtual_fail(dst, umemNotImplementedError, "%s has no method copy_from",
                     umem_get_device_name(dst));
}

void umem_read_leg(umemVirtual *src, uintptr_t src_adr, umemVirtual *host, void *buffer, size_t n) {
  __attribute__((cleanup(umem_leg_close))) umemOpenLeg leg = {0};
  if (umem_is_watched()) {
    umem_leg_open(&leg, src, NULL, umemWayMethod, n);
    leg.dst = umem_buffer_place(host);
  }
  umem_read_run(src, src_adr, host, buffer, n);
}

void umem_write_leg(umemVirtual *dst, uintptr_t dst_adr, umemVirtual *host, void const *buffer,
                    size_t n) {
  __attribute__((cleanup(umem_leg_close))) umemOpenLeg leg = {0};
  if (umem_is_watched()) {
    umem_leg_open(&leg, NULL, dst, umemWayMethod, n);
    leg.src = umem_buffer_place(host);
  }
  umem_write_run(dst, dst_adr, host, buffer, n);
}

/* ---- through a buffer ---- */

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

/* ---- who moves a run ---- */

/* Offers the copy to self; false where it has no method for it, or does not take it. */
static inline __attribute__((always_inline)) bool offer(umemVirtual *self, umemVirtual *src,
                                                        uintptr_t src_adr, umemVirtual *dst,
                                                        uintptr_t dst_adr,
                                                        umemLayout const *layout) {
  bool (*slot)(umemVirtual *, umemVirtual *, uintptr_t, umemVirtual *, uintptr_t,
               umemLayout const *) = UMEM_SLOT(self, copy_direct);
  return slot && slot(self, src, src_adr, dst, dst_adr, layout);
}

bool umem_copy_direct(umemVirtual *self, umemVirtual *src, uintptr_t src_adr, umemVirtual *dst,
                      uintptr_t dst_adr, umemLayout const *layout) {
  return offer(self, src, src_adr, dst, dst_adr, layout);
}

/* No leg where self does not take the copy. */
bool umem_copy_direct_watched(umemVirtual *self, umemVirtual *src, uintptr_t src_adr,
                              umemVirtual *dst, uintptr_t dst_adr, umemLayout const *layout) {
  __attribute__((cleanup(umem_leg_close))) umemOpenLeg leg;
  umem_leg_open(&leg, src, dst, umemWayMethod, umem_count_items(layout) * layout->item_size);
  bool taken = offer(self, src, src_adr, dst, dst_adr, layout);
  if (!taken) leg.nbytes = 0;
  return taken;
}

/* dst's addresses are pointers: src reads into them. It does so in the order of both queues, and after the
 * work that a GPU may still do there. */
static inline __attribute__((always_inline)) void
read_into(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr, size_t nbytes) {
  umemVirtual *host = umem_host_between(src, dst);
  bool ordered = umem_can(dst, umemOrdered);
  if (!host || (ordered && umem_wait(src, dst) != umemOK) || !umem_settle(dst)) return;
  umem_read_run(src, src_adr, host, (void *)dst_adr, nbytes);
  if (ordered) umem_wait(dst, src);
}

static inline __attribute__((always_inline)) void write_from(umemVirtual *src, uintptr_t src_adr,
                                                             umemVirtual *dst, uintptr_t dst_adr,
                                                             size_t nbytes) {
  umemVirtual *host = umem_host_between(src, dst);
  bool ordered = umem_can(src, umemOrdered);
  if (!host || (ordered && umem_wait(dst, src) != umemOK) || !umem_settle(src)) return;
  umem_write_run(dst, dst_adr, host, (void const *)src_adr, nbytes);
  if (ordered) umem_wait(src, dst);
}

/* By the way of the CPU's pointers, where one side is RAM. */
static umemWay way_of(umemVirtual *src, umemVirtual *dst) {
  return umem_cpu_reads(src) && umem_cpu_writes(dst) ? umemWayMemcpy : umemWayMethod;
}

/* Compiled twice: what nobody watches asks no more whether somebody does. */
static inline __attribute__((always_inline)) void copy_run(umemVirtual *src, uintptr_t src_adr,
                                                           umemVirtual *dst, uintptr_t dst_adr,
                                                           size_t nbytes, bool watched) {
  umemLayout layout = {.size = sizeof layout, .item_size = nbytes};
  if (watched ? umem_copy_direct_watched(src, src, src_adr, dst, dst_adr, &layout) ||
                    umem_copy_direct_watched(dst, src, src_adr, dst, dst_adr, &layout)
              : offer(src, src, src_adr, dst, dst_adr, &layout) ||
                    offer(dst, src, src_adr, dst, dst_adr, &layout))
    return;
  if (umem_cpu_writes(dst))
    read_into(src, src_adr, dst, dst_adr, nbytes);
  else if (umem_cpu_reads(src))
    write_from(src, src_adr, dst, dst_adr, nbytes);
  else
    umem_stage(src, src_adr, dst, dst_adr, nbytes);
}

static __attribute__((noinline)) void watched_run(umemVirtual *src, uintptr_t src_adr,
                                                  umemVirtual *dst, uintptr_t dst_adr,
                                                  size_t nbytes) {
  umemTrace trace;
  __attribute__((cleanup(umem_leg_close))) umemOpenLeg whole;
  umem_trace_open(&trace, &whole, src, dst, nbytes);
  __attribute__((cleanup(umem_leg_close))) umemOpenLeg leg;
  umem_leg_open(&leg, src, dst, way_of(src, dst), nbytes);
  copy_run(src, src_adr, dst, dst_adr, nbytes, true);
}

void umem_copy_run(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                   size_t nbytes) {
  if (umem_is_watched())
    watched_run(src, src_adr, dst, dst_adr, nbytes);
  else
    copy_run(src, src_adr, dst, dst_adr, nbytes, false);
}
