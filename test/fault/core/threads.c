/* threads.c - on a context that many threads share, the failure of one is not the others'.
 *
 * Two threads meet faults of their own in every call, two meet none. The latter must see success
 * and their data throughout; the former their own failures, and no call more; the context has
 * both. */

#include "fault/trial.h"

enum { thread_count = 4, rounds = 300, block = 6000 };

typedef struct Worker {
  pthread_t thread;
  umemVirtual *ctx;
  unsigned id;
  bool faulty;
  InjectCall call; /* what fails for it */
  int error;
  pthread_barrier_t *start;
  char complaint[400]; /* "" while all is well: cmocka's checks are for the main thread only */
} Worker;

static void complain(Worker *w, char const *what, int line) {
  if (!*w->complaint)
    snprintf(w->complaint, sizeof w->complaint, "thread %u, line %d: %s; \"%s\"", w->id, line, what,
             umem_thread_message());
}
#define CHECK(w, condition) ((condition) ? (void)0 : complain((w), #condition, __LINE__))

/* A call that came back with this status, having recorded that many failures. */
static void check_call(Worker *w, umemStatusType status, uint64_t before, InjectCall call) {
  bool must_fail = w->faulty && w->call == call;
  CHECK(w, (status != umemOK) == must_fail);
  CHECK(w, umem_thread_failures() - before == (must_fail ? 1 : 0));
  if (!must_fail) return;
  CHECK(w, status == umemIOError && umem_thread_status() == umemIOError);
  CHECK(w, strstr(umem_thread_message(), strerror(w->error)));
}

static void one_round(Worker *w, umemHost *host, unsigned k) {
  unsigned char out[block], in[block];
  memset(out, (int)(w->id * 60 + k), block);
  memset(in, 0, block);
  uint64_t before = umem_thread_failures();
  uintptr_t adr = umem_alloc(w->ctx, block);
  CHECK(w, adr != umem_null(w->ctx));
  check_call(w, umem_copy_from(w->ctx, adr, host, (uintptr_t)out, block), before, callWrite);
  before = umem_thread_failures();
  check_call(w, umem_copy_to(w->ctx, adr, host, (uintptr_t)in, block), before, callRead);
  if (!w->faulty) CHECK(w, !memcmp(out, in, block));
  before = umem_thread_failures();
  umem_free(w->ctx, adr);
  CHECK(w, umem_thread_failures() == before);
}

static void *transfer(void *argument) {
  Worker *w = argument;
  SCOPED(umem_dtor) umemHost host;
  umemHost_ctor(&host);
  pthread_barrier_wait(w->start);
  if (w->faulty) inject_fail_here(w->call, 1, w->error, true);
  for (unsigned k = 0; k < rounds; k++) one_round(w, &host, k);
  if (w->faulty)
    CHECK(w, inject_off_here() == rounds);
  else
    CHECK(w, umem_thread_failures() == 0 && umem_thread_status() == umemOK);
  return NULL;
}

/* Every second thread is faulty; all begin at once. */
static void run_workers(umemVirtual *ctx, void *(*function)(void *), InjectCall call, int error) {
  Worker workers[thread_count];
  pthread_barrier_t start;
  assert_int_equal(pthread_barrier_init(&start, NULL, thread_count), 0);
  for (unsigned i = 0; i < thread_count; i++) {
    workers[i] = (Worker){.ctx = ctx, .id = i, .faulty = i % 2, .call = call, .error = error};
    workers[i].start = &start;
    assert_int_equal(pthread_create(&workers[i].thread, NULL, function, &workers[i]), 0);
  }
  for (unsigned i = 0; i < thread_count; i++) pthread_join(workers[i].thread, NULL);
  pthread_barrier_destroy(&start);
  for (unsigned i = 0; i < thread_count; i++)
    if (*workers[i].complaint) fail_msg("%s", workers[i].complaint);
  assert_int_equal(umem_thread_status(), umemOK); /* not this thread's failures */
}

static void run_transfers(umemVirtual *ctx, InjectCall call, int error) {
  run_workers(ctx, transfer, call, error);
  assert_int_equal(umem_get_status(ctx), umemIOError);
  assert_non_null(strstr(umem_get_message(ctx), strerror(error)));
  assert_int_equal(umem_clear_status(ctx), umemOK);
}

static void failures_belong_to_their_threads(void **state) {
  Trial trial;
  trial_open(&trial, *state, NULL);
  run_transfers(trial.ctx, callRead, EIO);
  run_transfers(trial.ctx, callWrite, ENOSPC);
  uintptr_t adr = trial_block(&trial, (unsigned char[block]){0}, block);
  umem_free(trial.ctx, adr);
  REQUIRE(&trial, umem_is_ok(trial.ctx));
  trial_close(&trial);
}

/* Allocation: half of the threads have no heap; their calls succeed without it, or fail. */

static void *allocate(void *argument) {
  Worker *w = argument;
  pthread_barrier_wait(w->start);
  if (w->faulty) inject_fail_here(callHeap, 1, ENOMEM, true);
  for (unsigned k = 0; k < rounds; k++) {
    uint64_t before = umem_thread_failures();
    uintptr_t adr = umem_alloc(w->ctx, block + k);
    bool failed = adr == umem_null(w->ctx);
    CHECK(w, umem_thread_failures() - before == failed);
    CHECK(w, !failed || (w->faulty && umem_thread_status() == umemMemoryError));
    umem_free(w->ctx, adr);
  }
  inject_off_here();
  return NULL;
}

static void no_heap_for_one_thread(void **state) {
  Trial trial;
  trial_open(&trial, *state, NULL);
  run_workers(trial.ctx, allocate, callHeap, ENOMEM);
  trial_close(&trial);
}

int main(void) {
  for (size_t i = 0; i < place_count; i++) {
    Place const *place = &places[i];
    char const *mode = place->mode;
    if (!mode || strcmp(mode, "r"))
      add_case(no_heap_for_one_thread, place, "%s, no heap for one thread", place->name);
    if (mode && strchr("wa", *mode) && mode[1])
      add_case(failures_belong_to_their_threads, place, "%s, failures belong to their threads",
               place->name);
  }
  return run_cases(NULL, NULL);
}
