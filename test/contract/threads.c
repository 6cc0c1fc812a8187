/* threads.c - umem/context.h: many threads on one concurrent context, and on two. */
#include "contract.h"

#include "workers.h"

enum { thread_count = 4, largest = 3000 };

typedef struct Worker {
  umemVirtual *src, *dst;
  unsigned number;
  bool lasts; /* whether src can be flushed meanwhile */
  bool right; /* only the main thread may call cmocka */
} Worker;

static int rounds(void) { return test_is_small() ? 20 : 100; }

/* Runs this many of `work` at once, on one context or two, and asserts that all were right. */
static void run_workers(Place const *src, Place const *dst, void *(*work)(void *)) {
  Worker workers[thread_count];
  for (unsigned i = 0; i < thread_count; i++)
    workers[i] = (Worker){src->ctx, dst->ctx, i, lasts(src), false};
  run_at_once(thread_count, work, workers, sizeof *workers);
}

/* ---- what one thread does; each returns whether all was right ---- */

static bool write_bytes(umemVirtual *ctx, uintptr_t adr, void const *bytes, size_t n) {
  return umem_copy_from(ctx, adr, &test_host, (uintptr_t)bytes, n) == umemOK &&
         umem_synchronize(ctx) == umemOK;
}

static bool reads_bytes(umemVirtual *ctx, uintptr_t adr, void const *bytes, size_t n) {
  unsigned char found[largest];
  return umem_copy_to(ctx, adr, &test_host, (uintptr_t)found, n) == umemOK &&
         umem_synchronize(ctx) == umemOK && !memcmp(found, bytes, n);
}

/* Blocks of many sizes come and go; nobody else may have changed their bytes. */
static bool churn(umemVirtual *ctx, unsigned number, int round) {
  enum { count = 5 };
  uintptr_t adr[count];
  unsigned char bytes[count][largest];
  bool right = true;
  for (size_t i = 0; i < count; i++) {
    size_t n = 1 + (number * 7919 + (unsigned)round * 104729 + i * 611) % largest;
    fill_bytes(bytes[i], n, number * 1000 + i);
    adr[i] = i % 2 ? umem_alloc(ctx, n) : umem_aligned_alloc(ctx, 256, n);
    right = right && adr[i] != umem_null(ctx) && write_bytes(ctx, adr[i], bytes[i], n);
  }
  for (size_t i = 0; i < count; i++) {
    size_t n = 1 + (number * 7919 + (unsigned)round * 104729 + i * 611) % largest;
    right = right && reads_bytes(ctx, adr[i], bytes[i], n);
    if (i % 2)
      umem_free(ctx, adr[i]);
    else
      umem_aligned_free(ctx, adr[i]);
  }
  return right;
}

static void *churn_rounds(void *argument) {
  Worker *self = argument;
  uint64_t before = umem_thread_failures();
  self->right = true;
  for (int i = 0; i < rounds() && self->right; i++) self->right = churn(self->src, self->number, i);
  self->right = self->right && umem_thread_failures() == before;
  return self->right ? NULL : self;
}

static void *use_everything(void *argument) {
  Worker *self = argument;
  umemVirtual *ctx = self->src;
  umemInfo info = UMEM_INFO_INIT;
  bool right = true;
  for (int i = 0; i < rounds() && right; i++) {
    unsigned char zeros[100] = {0};
    uintptr_t adr = umem_calloc(ctx, 10, 10);
    right = adr != umem_null(ctx) && reads_bytes(ctx, adr, zeros, 100);
    right = right && umem_set(ctx, adr, (int)self->number, 100) == umemOK;
    adr = umem_realloc(ctx, adr, 100, 2000);
    memset(zeros, (int)self->number, 100);
    right = right && reads_bytes(ctx, adr, zeros, 100);
    right = right && umem_get_info(ctx, &info) == umemOK && umem_trim(ctx, 0) == umemOK;
    right = right && umem_is_same_device(ctx, ctx) && umem_wait(ctx, &test_host) == umemOK;
    if (self->lasts && i % 10 == 0) right = right && umem_flush(ctx) == umemOK;
    uintptr_t paired = umem_connect(ctx, adr, 100, ctx, 1);
    right = right && paired == adr && umem_disconnect(ctx, adr, ctx, paired, 1) == umemOK;
    umem_free(ctx, adr);
  }
  return right && umem_thread_status() == umemOK ? NULL : self;
}

static void *copy_across(void *argument) {
  Worker *self = argument;
  unsigned char bytes[largest];
  uintptr_t from = umem_alloc(self->src, largest), to = umem_alloc(self->dst, largest);
  bool right = from != umem_null(self->src) && to != umem_null(self->dst);
  for (int i = 0; i < rounds() / 10 && right; i++) {
    fill_bytes(bytes, largest, self->number * 1000 + (unsigned)i);
    right = write_bytes(self->src, from, bytes, largest) &&
            umem_copy_to(self->src, from, self->dst, to, largest) == umemOK &&
            umem_synchronize(self->src) == umemOK && umem_synchronize(self->dst) == umemOK &&
            reads_bytes(self->dst, to, bytes, largest);
  }
  umem_free(self->src, from);
  umem_free(self->dst, to);
  return right ? NULL : self;
}

/* Failures of all kinds, recorded and read at once. */
static void *fail_and_read(void *argument) {
  Worker *self = argument;
  umemVirtual *ctx = self->src;
  bool right = true;
  for (int i = 0; i < rounds() && right; i++) {
    right = umem_alloc(ctx, SIZE_MAX) == umem_null(ctx) && umem_thread_status() == umemMemoryError;
    right = right && umem_set(ctx, umem_null(ctx), 0, 1) == umemValueError;
    right = right && umem_thread_status() == umemValueError;
    right = right && strlen(umem_get_message(ctx)) < UMEM_MESSAGE_SIZE;
    if (i % 3 == 0) umem_clear_status(ctx);
    umem_is_ok(ctx);
    right = right && umem_set_status(ctx, umemTypeError, "mine") == umemTypeError;
    right = right && !strcmp(umem_thread_message(), "mine");
  }
  return right ? NULL : self;
}

/* ---- the tests ---- */

SINGLE_IF(many_threads_allocate_and_copy, umemConcurrent) {
  run_workers(place, place, churn_rounds);
}

SINGLE_IF(many_threads_use_everything, umemConcurrent) {
  run_workers(place, place, use_everything);
}

SINGLE_IF(many_threads_fail, umemConcurrent) {
  run_workers(place, place, fail_and_read);
  assert_ok(umem_clear_status(ctx));
}

PAIR_IF(many_threads_copy_across, umemConcurrent) { run_workers(src, dst, copy_across); }

SUITE(threads)
