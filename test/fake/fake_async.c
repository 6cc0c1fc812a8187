/* fake_async.c - a device whose work is done as late as the contract allows. */
#include "fake.h"
#include "scoped.h"

#include <inttypes.h>
#include <string.h>

typedef struct Work {
  struct Work *next;
  enum { workCopy, workSet, workFree, workWait } kind;
  unsigned char *to;
  unsigned char const *from;
  size_t nbytes;
  int c;
  FakeBlock block;
  struct FakeQueue *other;
  uint64_t until;
  umemStatusType failure; /* what this work reports when its turn comes; umemOK: it is done */
} Work;

/* The mutex guards all of it. It outlives its device for as long as others wait for it. */
struct FakeQueue {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  Work *first, **last;
  uint64_t queued, done; /* counts of work */
  bool at_work;          /* somebody does the work after these */
  size_t owners;
  umemStatusType fail_next;
  umemStatusType failed; /* what done work has reported */
};

enum { longest_queue = 64 };

static struct FakeQueue *queue_of(umemVirtual *ctx) { return ((FakeAsync *)ctx)->queue; }

/* ---- doing the work ---- */

static void queue_leave(struct FakeQueue *queue) {
  pthread_mutex_lock(&queue->mutex);
  size_t left = --queue->owners;
  pthread_mutex_unlock(&queue->mutex);
  if (left) return;
  pthread_mutex_destroy(&queue->mutex);
  pthread_cond_destroy(&queue->changed);
  free(queue);
}

static void demand(struct FakeQueue *queue, uint64_t until);

static void perform(Work *work) {
  switch (work->kind) {
  case workCopy:
    memmove(work->to, work->from, work->nbytes);
    break;
  case workSet:
    memset(work->to, work->c, work->nbytes);
    break;
  case workFree:
    fake_block_release(&work->block);
    break;
  case workWait:
    demand(work->other, work->until);
    queue_leave(work->other);
    break;
  }
}

static void perform_first(struct FakeQueue *queue) {
  SCOPED(free_bytes) Work *work = queue->first;
  queue->first = work->next;
  if (!queue->first) queue->last = &queue->first;
  queue->at_work = true;
  pthread_mutex_unlock(&queue->mutex);
  if (work->failure == umemOK) perform(work);
  pthread_mutex_lock(&queue->mutex);
  if (work->failure != umemOK) queue->failed = work->failure;
  queue->at_work = false;
  queue->done++;
  pthread_cond_broadcast(&queue->changed);
}

/* Returns when the first `until` pieces of work are done. Who asks for them does them: a thread of
 * the device's own would have to be waked for each, which takes most of the time of some tests. */
static void demand(struct FakeQueue *queue, uint64_t until) {
  LOCKED(&queue->mutex);
  while (queue->done < until)
    if (queue->at_work)
      pthread_cond_wait(&queue->changed, &queue->mutex);
    else
      perform_first(queue);
}

/* ---- queueing ---- */

static void push(struct FakeQueue *queue, Work *work) {
  pthread_mutex_lock(&queue->mutex);
  if (work->kind == workCopy || work->kind == workSet) {
    work->failure = queue->fail_next;
    queue->fail_next = umemOK;
  }
  *queue->last = work;
  queue->last = &work->next;
  uint64_t until = ++queue->queued;
  bool crowded = until - queue->done > longest_queue;
  pthread_mutex_unlock(&queue->mutex);
  if (crowded) demand(queue, until);
}

/* False, with a status, without memory. */
static bool enqueue(umemVirtual *ctx, Work const *wanted) {
  Work *work = malloc(sizeof *work);
  if (!work) {
    umemVirtual_fail(ctx, umemMemoryError, "no memory to queue work");
    return false;
  }
  *work = *wanted;
  push(queue_of(ctx), work);
  return true;
}

static void async_set(umemVirtual *ctx, uintptr_t adr, int c, size_t nbytes) {
  unsigned char *to = fake_access(ctx, adr, nbytes);
  if (to) enqueue(ctx, &(Work){.kind = workSet, .to = to, .c = c, .nbytes = nbytes});
}

static void async_copy_to(umemVirtual *ctx, uintptr_t src_adr, umemVirtual *that, uintptr_t dst_adr,
                          size_t nbytes) {
  unsigned char *to = (unsigned char *)dst_adr;
  unsigned char const *from = fake_access(ctx, src_adr, nbytes);
  if (from && fake_host_is_genuine(ctx, that))
    enqueue(ctx, &(Work){.kind = workCopy, .to = to, .from = from, .nbytes = nbytes});
}

static void async_copy_from(umemVirtual *ctx, uintptr_t dst_adr, umemVirtual *that,
                            uintptr_t src_adr, size_t nbytes) {
  unsigned char const *from = (unsigned char const *)src_adr;
  unsigned char *to = fake_access(ctx, dst_adr, nbytes);
  if (to && fake_host_is_genuine(ctx, that))
    enqueue(ctx, &(Work){.kind = workCopy, .to = to, .from = from, .nbytes = nbytes});
}

/* Inside one device plain runs need no host. */
static bool async_copy_direct(umemVirtual *ctx, umemVirtual *src, uintptr_t src_adr,
                              umemVirtual *dst, uintptr_t dst_adr, umemLayout const *layout) {
  if (src != dst || layout->rank) return false;
  unsigned char const *from = fake_access(ctx, src_adr, layout->item_size);
  unsigned char *to = from ? fake_access(ctx, dst_adr, layout->item_size) : NULL;
  if (to)
    enqueue(ctx, &(Work){.kind = workCopy, .to = to, .from = from, .nbytes = layout->item_size});
  return true;
}

/* The block is dead at once; its bytes go when the work before is done. */
static void async_free(umemVirtual *ctx, uintptr_t adr) {
  FakeBlock block = fake_store_take(((Fake *)ctx)->store, adr);
  if (!block.bytes) {
    umemVirtual_fail(ctx, umemValueError, "0x%" PRIxPTR " is not a live block", adr);
  } else if (!enqueue(ctx, &(Work){.kind = workFree, .block = block})) {
    umem_synchronize(ctx);
    fake_block_release(&block);
  }
}

/* ---- order ---- */

static void async_synchronize(umemVirtual *ctx) {
  struct FakeQueue *queue = queue_of(ctx);
  pthread_mutex_lock(&queue->mutex);
  uint64_t until = queue->queued;
  pthread_mutex_unlock(&queue->mutex);
  demand(queue, until);
  pthread_mutex_lock(&queue->mutex);
  umemStatusType failed = queue->failed;
  queue->failed = umemOK;
  pthread_mutex_unlock(&queue->mutex);
  if (failed != umemOK) umemVirtual_fail(ctx, failed, "queued work has failed");
}

static void async_wait(umemVirtual *ctx, umemVirtual *other) {
  if (other->vptr != ctx->vptr) {
    umem_synchronize(other);
    return;
  }
  struct FakeQueue *queue = queue_of(other);
  pthread_mutex_lock(&queue->mutex);
  uint64_t until = queue->queued;
  queue->owners++;
  pthread_mutex_unlock(&queue->mutex);
  if (!enqueue(ctx, &(Work){.kind = workWait, .other = queue, .until = until})) queue_leave(queue);
}

void fake_async_fail_next(FakeAsync *ctx, umemStatusType type) {
  LOCKED(&ctx->queue->mutex);
  ctx->queue->fail_next = type;
}

uint64_t fake_async_queued(FakeAsync *ctx) {
  LOCKED(&ctx->queue->mutex);
  return ctx->queue->queued - ctx->queue->done;
}

/* ---- construction ---- */

static struct FakeQueue *queue_create(void) {
  struct FakeQueue *queue = calloc(1, sizeof *queue);
  if (!queue) return NULL;
  pthread_mutex_init(&queue->mutex, NULL);
  pthread_cond_init(&queue->changed, NULL);
  queue->last = &queue->first;
  queue->owners = 1;
  return queue;
}

static struct umemVtbl const *fake_vtbl;

static void async_dtor(umemVirtual *ctx) {
  async_synchronize(ctx);
  queue_leave(queue_of(ctx));
  ((Fake *)ctx)->store = ((FakeAsync *)ctx)->own;
  fake_vtbl->dtor(ctx);
}

/* *ctx is a Fake already. */
static umemStatusType make_ordered(FakeAsync *ctx, char const *name) {
  static struct umemVtbl const vtbl = {
      .dtor = async_dtor,
      .alloc = fake_alloc,
      .free = async_free,
      .set = async_set,
      .copy_to = async_copy_to,
      .copy_from = async_copy_from,
      .copy_direct = async_copy_direct,
      .synchronize = async_synchronize,
      .wait = async_wait,
  };
  umemVirtual *base = &ctx->super.super;
  ctx->queue = queue_create();
  if (!ctx->queue) {
    umemStatusType status = umemVirtual_fail(ctx, umemMemoryError, "no memory for a queue");
    umem_dtor(ctx);
    return status;
  }
  ctx->own = ctx->super.store;
  fake_vtbl = base->vptr;
  base->vptr = &vtbl;
  base->name = name;
  base->capabilities |= umemOrdered;
  return umemOK;
}

umemStatusType fake_async_ctor(FakeAsync *ctx) {
  umemStatusType status = fake_ctor(&ctx->super);
  return status == umemOK ? make_ordered(ctx, "FakeAsync") : status;
}

umemStatusType fake_async_ctor_on(FakeAsync *ctx, FakeAsync *device) {
  umemStatusType status = fake_async_ctor(ctx);
  if (status != umemOK) return status;
  ctx->super.store = device->super.store;
  memcpy(ctx->super.super.space, device->super.super.space, sizeof ctx->super.super.space);
  return umemOK;
}

umemStatusType fake_managed_ctor(FakeAsync *ctx) {
  umemStatusType status = fake_ctor_at(&ctx->super, FAKE_REAL_POINTERS);
  if (status != umemOK) return status;
  ctx->super.super.capabilities |= umemCpuReadable | umemCpuWritable;
  return make_ordered(ctx, "FakeManaged");
}
