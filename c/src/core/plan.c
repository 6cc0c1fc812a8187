/* plan.c - plans the copies of runs, and carries the plans out.
 *
 * A plan says who moves the bytes. First the source and then the destination answer, once each,
 * whether they do the whole copy alone (plan_copy). If neither does, the capabilities of both
 * decide: the source writes to the destination's pointers, the destination reads from the source's
 * pointers, or both move chunks through a buffer. The callers have validated both sides. */
#include "core/copy.h"
#include "core/hook.h"
#include "core/layout.h"
#include "core/threads.h"

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
    umem_lacks(src, "copy_to");
}

void umem_write_run(umemVirtual *dst, uintptr_t dst_adr, umemVirtual *host, void const *buffer,
                    size_t n) {
  if (dst->vptr->copy_from)
    dst->vptr->copy_from(dst, dst_adr, host, (uintptr_t)buffer, n);
  else
    umem_lacks(dst, "copy_from");
}

/* Of a copy that is watched: a buffer is filled or emptied. */
typedef struct BufferStep {
  umemVirtual *ctx, *host;
  uintptr_t adr;
  void *buffer;
  size_t nbytes;
  bool fills;
} BufferStep;

static bool buffer_job(void *job) {
  BufferStep const *move = job;
  if (move->fills)
    umem_read_run(move->ctx, move->adr, move->host, move->buffer, move->nbytes);
  else
    umem_write_run(move->ctx, move->adr, move->host, move->buffer, move->nbytes);
  return true;
}

static __attribute__((noinline)) void watch_buffer(BufferStep move) {
  umemStep step = {.nbytes = move.nbytes, .to_buffer = move.fills, .from_buffer = !move.fills};
  step.src = move.fills ? move.ctx : move.host;
  step.dst = move.fills ? move.host : move.ctx;
  umem_step_hook(&step, buffer_job, &move);
}

void umem_fill_buffer(umemVirtual *src, uintptr_t src_adr, umemVirtual *host, void *buffer,
                      size_t n) {
  if (umem_is_watched())
    watch_buffer((BufferStep){src, host, src_adr, buffer, n, true});
  else
    umem_read_run(src, src_adr, host, buffer, n);
}

void umem_empty_buffer(umemVirtual *dst, uintptr_t dst_adr, umemVirtual *host, void const *buffer,
                       size_t n) {
  if (umem_is_watched())
    watch_buffer((BufferStep){dst, host, dst_adr, (void *)(uintptr_t)buffer, n, false});
  else
    umem_write_run(dst, dst_adr, host, buffer, n);
}

/* ---- the plan ---- */

typedef enum Mover {
  sourceMoves,      /* by copy_to, to pointers of the destination */
  destinationMoves, /* by copy_from, from pointers of the source */
  buffersMove       /* both, by way of a buffer */
} Mover;

typedef struct Plan {
  Mover mover;
  umemVirtual *host; /* whose memory the pointers or the buffer are for the methods of the mover */
  unsigned threads;  /* that share the copy; each has a buffer */
  size_t chunk;      /* bytes of a buffer */
} Plan;

enum {
  chunk_bytes = 512 << 10, /* fits the cache of a core between reading and writing */
  least_chunk = 4 << 10,   /* without queues a buffer of this size stands on the stack */
  sharing_threads = 2,
  share_from = 8 << 20 /* below this a thread costs more than it saves */
};

static void plan_buffers(Plan *plan, umemVirtual *src, umemVirtual *dst, size_t nbytes) {
  bool shares =
      nbytes >= share_from && umem_can(src, umemConcurrent) && umem_can(dst, umemConcurrent);
  plan->threads = shares ? sharing_threads : 1;
  plan->chunk = nbytes < chunk_bytes ? nbytes : chunk_bytes;
}

/* Returns false, and records a status, if there is no host. */
static inline bool make_plan(Plan *plan, umemVirtual *src, umemVirtual *dst, size_t nbytes) {
  plan->host = umem_is_plain_host(dst) ? dst : umem_host_between(src, dst);
  plan->mover = umem_cpu_writes(dst)  ? sourceMoves
                : umem_cpu_reads(src) ? destinationMoves
                                      : buffersMove;
  if (plan->mover == buffersMove) plan_buffers(plan, src, dst, nbytes);
  return plan->host != NULL;
}

/* ---- through a buffer ---- */

/* One end of the copy. */
typedef struct Side {
  umemVirtual *ctx;
  uintptr_t adr;
  pthread_mutex_t *turn; /* NULL: one thread copies */
} Side;

typedef struct Chunks {
  Side src, dst;
  umemVirtual *host;
  unsigned forks; /* umem_fork_count(): in a child no other thread gives a turn back */
  size_t nbytes, chunk;
  size_t next; /* the first chunk that no thread has taken; atomic, as is over */
  bool over;   /* a chunk has failed: take no other */
  char *buffers;
} Chunks;

/* Also when an exception of C++ passes. */
static void end_turn(pthread_mutex_t **turn) {
  if (*turn) pthread_mutex_unlock(*turn);
}

/* Fills the buffer from src, or empties it to dst. To wait for an ordered context is to wait for
 * all that is queued on it, so two threads would keep step, both reading and then both writing.
 * Therefore they take turns there. */
static void move_side(Chunks const *chunks, Side const *side, size_t at, char *buffer,
                      size_t nbytes) {
  bool ordered = umem_can(side->ctx, umemOrdered);
  __attribute__((cleanup(end_turn))) pthread_mutex_t *turn =
      ordered && chunks->forks == umem_fork_count() ? side->turn : NULL;
  if (turn) pthread_mutex_lock(turn);
  if (side == &chunks->src)
    umem_fill_buffer(side->ctx, side->adr + at, chunks->host, buffer, nbytes);
  else
    umem_empty_buffer(side->ctx, side->adr + at, chunks->host, buffer, nbytes);
  if (ordered) umem_finish(side->ctx); /* only now is the buffer full, or free to be used again */
}

static bool copy_chunk(Chunks const *chunks, size_t at, char *buffer, size_t nbytes) {
  uint64_t before = umem_thread.failures;
  move_side(chunks, &chunks->src, at, buffer, nbytes);
  if (umem_thread.failures != before) return false;
  move_side(chunks, &chunks->dst, at, buffer, nbytes);
  return umem_thread.failures == before;
}

/* Also when an exception of C++ passes: other threads take no further chunk. */
static void end_chunks(Chunks **chunks) {
  __atomic_store_n(&(*chunks)->over, true, __ATOMIC_RELAXED);
}

/* The work of one thread. */
static void copy_chunks(void *job, unsigned thread) {
  __attribute__((cleanup(end_chunks))) Chunks *chunks = job;
  char *buffer = chunks->buffers + thread * chunks->chunk;
  size_t count = chunks->nbytes / chunks->chunk + (chunks->nbytes % chunks->chunk != 0);
  while (!__atomic_load_n(&chunks->over, __ATOMIC_RELAXED)) {
    size_t k = __atomic_fetch_add(&chunks->next, 1, __ATOMIC_RELAXED);
    if (k >= count) return;
    size_t at = k * chunks->chunk;
    size_t rest = chunks->nbytes - at;
    if (!copy_chunk(chunks, at, buffer, rest < chunks->chunk ? rest : chunks->chunk))
      __atomic_store_n(&chunks->over, true, __ATOMIC_RELAXED);
  }
}

/* Allocates the buffers of a plan, or halves of them, quarters, ... down to least_chunk
 * together. */
static char *take_buffers(Plan *plan) {
  size_t nbytes = plan->threads * plan->chunk;
  for (;; nbytes /= 2) {
    umemAttempt attempt;
    umemAttempt_begin(&attempt);
    uintptr_t buffers = umem_alloc(plan->host, nbytes);
    umemAttempt_end(&attempt);
    plan->chunk = nbytes / plan->threads;
    if (!umemAttempt_failed(&attempt)) return (char *)buffers;
    if (nbytes < 2 * least_chunk) {
      umemAttempt_record(&attempt);
      return NULL;
    }
  }
}

static __attribute__((noinline)) void copy_short(Chunks *chunks) {
  char buffer[least_chunk];
  copy_chunk(chunks, 0, buffer, chunks->nbytes);
}

typedef struct LongCopy {
  Chunks *chunks;
  uint64_t unfinished;
} LongCopy;

/* Also when an exception of C++ passes. */
static void end_long(LongCopy *copy) {
  char *buffers = copy->chunks->buffers;
  if (buffers) umem_free_buffer(copy->chunks->host, (uintptr_t)buffers, copy->unfinished);
}

static __attribute__((noinline)) void copy_long(Chunks *chunks, Plan *plan) {
  pthread_mutex_t turns[] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
  uint64_t before = umem_thread.failures;
  __attribute__((cleanup(end_long), unused)) LongCopy copy = {chunks, umem_unfinished_so_far()};
  chunks->buffers = take_buffers(plan);
  if (!chunks->buffers) {
    umemVirtual_adopt(chunks->src.ctx, before);
    return;
  }
  chunks->chunk = plan->chunk;
  if (plan->threads > 1) {
    chunks->src.turn = &turns[0];
    chunks->dst.turn = &turns[1];
    umem_parallel(plan->threads, copy_chunks, chunks);
  } else {
    copy_chunks(chunks, 0);
  }
}

static __attribute__((noinline)) void move_buffers(Plan *plan, umemVirtual *src, uintptr_t src_adr,
                                                   umemVirtual *dst, uintptr_t dst_adr,
                                                   size_t nbytes) {
  Chunks chunks = {.src = {src, src_adr, NULL},
                   .dst = {dst, dst_adr, NULL},
                   .host = plan->host,
                   .forks = umem_fork_count(),
                   .nbytes = nbytes};
  bool queued = umem_can(src, umemOrdered) || umem_can(dst, umemOrdered);
  if (nbytes <= least_chunk && !queued)
    copy_short(&chunks);
  else
    copy_long(&chunks, plan);
}

void umem_copy_buffered(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                        size_t nbytes) {
  Plan plan = {.mover = buffersMove, .host = umem_host_between(src, dst)};
  if (!plan.host) return;
  plan_buffers(&plan, src, dst, nbytes);
  move_buffers(&plan, src, src_adr, dst, dst_adr, nbytes);
}

/* ---- by pointers of one side ---- */

/* The source writes to pointers of dst, or else the destination reads from pointers of src: in the
 * order of both queues, and after the work that a GPU may still do at the pointers. */
static inline __attribute__((always_inline)) void
move_by_pointers(umemVirtual *host, umemVirtual *src, uintptr_t src_adr, umemVirtual *dst,
                 uintptr_t dst_adr, size_t nbytes, bool writes) {
  umemVirtual *mover = writes ? src : dst, *other = writes ? dst : src;
  bool ordered = umem_can(other, umemOrdered);
  if ((ordered && umem_wait(mover, other) != umemOK) || !umem_settle(other)) return;
  if (writes)
    umem_read_run(src, src_adr, host, (void *)dst_adr, nbytes);
  else
    umem_write_run(dst, dst_adr, host, (void const *)src_adr, nbytes);
  if (ordered) umem_wait(other, mover);
}

/* ---- by one side alone ---- */

typedef struct Copy {
  umemVirtual *mover, *src, *dst; /* mover: src or dst */
  uintptr_t src_adr, dst_adr;
  umemLayout const *layout;
} Copy;

static bool direct_job(void *job) {
  Copy const *copy = job;
  return copy->mover->vptr->copy_direct(copy->mover, copy->src, copy->src_adr, copy->dst,
                                        copy->dst_adr, copy->layout);
}

static __attribute__((noinline)) bool watch_direct(umemVirtual *self, umemVirtual *src,
                                                   uintptr_t src_adr, umemVirtual *dst,
                                                   uintptr_t dst_adr, umemLayout const *layout) {
  Copy copy = {self, src, dst, src_adr, dst_adr, layout};
  size_t nbytes = umem_count_items(layout) * layout->item_size;
  return umem_step_hook(&(umemStep){.src = src, .dst = dst, .nbytes = nbytes}, direct_job, &copy);
}

/* Whether self may agree to the copy with other. */
static inline bool may_plan(umemVirtual const *self, umemVirtual const *other,
                            umemLayout const *layout) {
  return layout->rank || !umem_can(self, umemPlansAlike) ||
         UMEM_SLOT(other, plan_copy) == self->vptr->plan_copy;
}

/* Whether self, which is src or dst, has done the copy. A context without plan_copy decides that in
 * copy_direct. */
static inline __attribute__((always_inline)) bool copies_alone(umemVirtual *self, umemVirtual *src,
                                                               uintptr_t src_adr, umemVirtual *dst,
                                                               uintptr_t dst_adr,
                                                               umemLayout const *layout) {
  if (!UMEM_SLOT(self, copy_direct)) return false;
  bool plans = UMEM_SLOT(self, plan_copy);
  if (plans && (!may_plan(self, self == src ? dst : src, layout) ||
                !self->vptr->plan_copy(self, src, src_adr, dst, dst_adr, layout)))
    return false;
  if (plans)
    UMEM_DECIDED(umemDecisionCopies, self, "%s does a copy from %s to %s alone",
                 umem_get_device_name(self), umem_get_device_name(src), umem_get_device_name(dst));
  if (umem_is_watched()) return watch_direct(self, src, src_adr, dst, dst_adr, layout);
  return self->vptr->copy_direct(self, src, src_adr, dst, dst_adr, layout);
}

bool umem_copy_direct(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                      umemLayout const *layout) {
  return copies_alone(src, src, src_adr, dst, dst_adr, layout) ||
         (dst != src && copies_alone(dst, src, src_adr, dst, dst_adr, layout));
}

/* ---- runs ---- */

static __attribute__((noinline)) void move_run(umemVirtual *src, uintptr_t src_adr,
                                               umemVirtual *dst, uintptr_t dst_adr, size_t nbytes) {
  if (UMEM_SLOT(src, copy_direct) || UMEM_SLOT(dst, copy_direct)) {
    umemLayout layout = {.size = sizeof layout, .item_size = nbytes};
    if (umem_copy_direct(src, src_adr, dst, dst_adr, &layout)) return;
  }
  Plan plan;
  if (!make_plan(&plan, src, dst, nbytes)) return;
  UMEM_DECIDED(umemDecisionCopies, src, "%zu bytes from %s to %s: %s", nbytes,
               umem_get_device_name(src), umem_get_device_name(dst),
               plan.mover == sourceMoves        ? "the source writes to memory"
               : plan.mover == destinationMoves ? "the destination reads from memory"
                                                : "through buffers in host memory");
  if (plan.mover == sourceMoves)
    move_by_pointers(plan.host, src, src_adr, dst, dst_adr, nbytes, true);
  else if (plan.mover == destinationMoves)
    move_by_pointers(plan.host, src, src_adr, dst, dst_adr, nbytes, false);
  else
    move_buffers(&plan, src, src_adr, dst, dst_adr, nbytes);
}

static bool move_job(void *job) {
  Copy const *copy = job;
  move_run(copy->src, copy->src_adr, copy->dst, copy->dst_adr, copy->layout->item_size);
  return true;
}

static __attribute__((noinline)) void
watch_run(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr, size_t nbytes) {
  umemLayout layout = {.size = sizeof layout, .item_size = nbytes};
  Copy copy = {NULL, src, dst, src_adr, dst_adr, &layout};
  umemWay way = umem_cpu_reads(src) && umem_cpu_writes(dst) ? umemWayMemcpy : umemWayMethod;
  umem_step_hook(&(umemStep){.src = src, .dst = dst, .way = way, .nbytes = nbytes, .is_copy = true},
                 move_job, &copy);
}

static inline void copy_run(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst,
                            uintptr_t dst_adr, size_t nbytes) {
  if (umem_is_watched())
    watch_run(src, src_adr, dst, dst_adr, nbytes);
  else
    move_run(src, src_adr, dst, dst_adr, nbytes);
}

/* A copy within another one, as of an adaptor or of a method of the program, has no part in the
 * meter. */
static __attribute__((noinline)) void copy_metered(umemVirtual *src, uintptr_t src_adr,
                                                   umemVirtual *dst, uintptr_t dst_adr,
                                                   size_t nbytes) {
  umemMeter *meter = umem_thread.meter;
  bool own = meter->src == src && meter->dst == dst && meter->src_adr == src_adr &&
             meter->dst_adr == dst_adr && meter->nbytes == nbytes;
  if (!own) umem_thread.meter = NULL;
  copy_run(src, src_adr, dst, dst_adr, nbytes);
  umem_thread.meter = meter;
}

void umem_copy_run(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                   size_t nbytes) {
  if (__builtin_expect(umem_thread.meter != NULL, 0))
    copy_metered(src, src_adr, dst, dst_adr, nbytes);
  else
    copy_run(src, src_adr, dst, dst_adr, nbytes);
}
