/* staging_faults.c - staged copies where calls fail, a GPU has crashed, many threads copy, and in a
 * child of fork, on a double of the runtime. */
#include "staging_help.h"
#include "settings.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- failures ---- */

/* One copy with the nth call failing; whether there was no such call. Either it is declined, and
 * nothing is touched or recorded, or it is done, or it has failed with a status. The next one
 * works. */
static bool try_nth(Bench *bench, unsigned long nth, int error, umemCudaDirection kind) {
  size_t nbytes = (kind == umemCudaToDevice ? umemStagingToDevice : umemStagingToHost) + 5;
  size_t room = nbytes + 2 * margin;
  unsigned char *host = malloc(room);
  assert_non_null(host);
  Block block = block_make(nbytes);
  bool out = kind == umemCudaToDevice;
  memset(host, 9, room);
  memset(block.bytes, 7, room);
  fill(out ? host : block.bytes, nbytes, 1);
  block_poke(&block);

  unsigned long before = fake_cudart_calls();
  fake_cudart_fail(nth, error);
  bool staged =
      umemCuda_stage(&bench->ctx.super, &bench->state, (uintptr_t)block.adr, host, nbytes, kind);
  fake_cudart_fail(0, 0);
  bool over = fake_cudart_calls() - before < nth;
  bool failed = umem_get_status(&bench->ctx) != umemOK;
  umem_clear_status(&bench->ctx);
  umem_thread_clear();
  block_peek(&block);
  unsigned char const *to = out ? block.bytes : host;
  assert_true(staged || !failed);
  if (!staged)
    assert_true(is_all(to, room, out ? 7 : 9));
  else if (!failed)
    assert_true(holds(to, nbytes, 1) && is_all(to + nbytes, room - nbytes, out ? 7 : 9));
  assert_int_equal(rt->last_error(), 0);
  block_release(&block);
  free(host);
  return over;
}

static void check_failures(Bench *bench, int error, umemCudaDirection kind) {
  bool over = false;
  unsigned long each = setting_small() ? 9 : 3; /* odd: both kinds of beginning take part */
  for (unsigned long nth = 1; !over; nth += each) {
    over = try_nth(bench, nth, error, kind);
    if (nth % 2) continue; /* every other time from the beginning: chunks and channels are made */
    there_and_back(bench, from, 0, 0, 3);
    bench_close(bench);
    assert_true(fake_cudart_is_clean());
    bench_open(bench, 0);
  }
}

static void test_a_failing_call_to_the_device(void **state) {
  umemCuda_set_staging(1 << 20, 0); /* few pieces: few calls that can fail */
  check_failures(*state, umemCudaInvalidValue, umemCudaToDevice);
}

static void test_a_failing_call_to_the_host(void **state) {
  umemCuda_set_staging(1 << 20, 0); /* few pieces: few calls that can fail */
  check_failures(*state, umemCudaOutOfMemory, umemCudaToHost);
}

/* Stages to or from the device with the nth call of function failing. */
static void fail_in(Bench *bench, char const *function, unsigned long nth, umemCudaDirection kind) {
  Block block = block_make(2 * from);
  unsigned char *host = calloc(2, from);
  assert_non_null(host);
  fake_cudart_fail_in(function, nth, umemCudaInvalidValue);
  umemCuda_stage(&bench->ctx.super, &bench->state, (uintptr_t)block.adr, host, 2 * from, kind);
  fake_cudart_fail(0, 0);
  block_release(&block);
  free(host);
}

static void test_channels_that_failed_are_not_used_again(void **state) {
  struct {
    char const *function;
    unsigned long nth;
    umemCudaDirection kind;
    bool failed;
  } const cases[] = {
      {"stream_wait", 1, umemCudaToDevice, false},
      {"memcpy_async", 1, umemCudaToDevice, true},
      {"memcpy_async", 1, umemCudaToHost, true},
      {"event_record", 2, umemCudaToHost, true}, /* the first is the stream's */
      {"event_synchronize", 1, umemCudaToHost, true},
      {"stream_synchronize", 1, umemCudaToDevice, true},
  };
  Bench *bench = *state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    there_and_back(bench, 2 * from, 0, 0, 1);
    unsigned long created = fake_cudart_calls_of("stream_create");
    fail_in(bench, cases[i].function, cases[i].nth, cases[i].kind);
    assert_int_equal(umem_get_status(&bench->ctx), cases[i].failed ? umemValueError : umemOK);
    if (cases[i].failed) assert_non_null(strstr(umem_get_message(&bench->ctx), "GPU 0"));
    umem_clear_status(&bench->ctx);
    umem_thread_clear();
    there_and_back(bench, 2 * from, 0, 0, 1);
    assert_int_equal(fake_cudart_calls_of("stream_create"), created + 1);
  }
}

/* A call that fails is no proof that the transfers before it are done. */
static void test_no_chunk_is_in_use_after_a_failure(void **state) {
  Bench *bench = *state;
  size_t nbytes = 2 * from;
  Block block = block_make(nbytes);
  unsigned char *host = malloc(nbytes);
  assert_non_null(host);
  fill(host, nbytes, 4);
  memset(block.bytes, 7, nbytes + 2 * margin);
  block_poke(&block);
  fake_cudart_fail_in("stream_synchronize", 1, umemCudaInvalidValue);
  assert_true(umemCuda_stage(&bench->ctx.super, &bench->state, (uintptr_t)block.adr, host, nbytes,
                             umemCudaToDevice));
  assert_int_equal(umem_get_status(&bench->ctx), umemValueError);
  umem_thread_clear();
  block_peek(&block);
  assert_true(holds(block.bytes, nbytes, 4));
  free(host);
  block_release(&block);
}

static int cannot_synchronize(void *stream) {
  (void)stream;
  return umemCudaInvalidValue;
}

static void test_chunks_that_may_be_in_use_are_not_lent_again(void **state) {
  Bench *bench = *state;
  there_and_back(bench, 2 * from, 0, 0, 1);
  size_t chunks = live_chunks();
  Block block = block_make(2 * from);
  table.stream_synchronize = cannot_synchronize;
  assert_true(umemCuda_stage(&bench->ctx.super, &bench->state, (uintptr_t)block.adr, block.bytes,
                             2 * from, umemCudaToDevice));
  table = *rt;
  assert_int_equal(umem_get_status(&bench->ctx), umemValueError);
  umem_clear_status(&bench->ctx);
  umem_thread_clear();
  there_and_back(bench, 2 * from, 0, 0, 1);
  assert_true(live_chunks() > chunks);
  umemCuda_release_staging(bench->state.gpu); /* which waits for them */
  assert_null(fake_cudart_misuse());
  assert_int_equal(live_chunks(), 0);
  block_release(&block);
}

/* After a crashed kernel nothing works any more; nothing hangs either. */
static void test_a_crashed_kernel(void **state) {
  Bench *bench = *state;
  there_and_back(bench, 4 * from, 0, 0, 1);
  unsigned char *host = calloc(4, from);
  assert_non_null(host);
  void *adr;
  assert_int_equal(rt->malloc(&adr, 4 * from), 0);
  fake_cudart_break(0, umemCudaIllegalAddress);
  for (int i = 0; i < 3; i++) {
    bool staged = umemCuda_stage(&bench->ctx.super, &bench->state, (uintptr_t)adr, host, 4 * from,
                                 i % 2 ? umemCudaToHost : umemCudaToDevice);
    assert_true(!staged || umem_get_status(&bench->ctx) != umemOK);
  }
  bench_close(bench);
  fake_cudart_reset();
  bench_open(bench, 0);
  free(host);
}

static void test_the_end_of_the_process(void **state) {
  Bench *bench = *state;
  there_and_back(bench, 4 * from, 0, 0, 1);
  unsigned char *host = calloc(4, from);
  assert_non_null(host);
  void *adr;
  assert_int_equal(rt->malloc(&adr, 4 * from), 0);
  fake_cudart_unload();
  umemCuda_stage(&bench->ctx.super, &bench->state, (uintptr_t)adr, host, 4 * from,
                 umemCudaToDevice);
  bench_close(bench);
  fake_cudart_reset();
  bench_open(bench, 0);
  free(host);
}

/* ---- threads ---- */

typedef struct Task {
  Bench *bench;
  Block block;
  unsigned char *host;
  size_t nbytes;
  unsigned seed;
  bool good;
} Task;

static bool stage_in_thread(Task *task) {
  uintptr_t device = (uintptr_t)task->block.adr;
  umemVirtual *ctx = &task->bench->ctx.super;
  umemCudaState *place = &task->bench->state;
  for (unsigned i = 0; i < 6; i++) {
    fill(task->host, task->nbytes, task->seed + i);
    if (!umemCuda_stage(ctx, place, device, task->host, task->nbytes, umemCudaToDevice)) continue;
    memset(task->host, 0, task->nbytes);
    if (!umemCuda_stage(ctx, place, device, task->host, task->nbytes, umemCudaToHost)) continue;
    if (!holds(task->host, task->nbytes, task->seed + i)) return false;
  }
  return true;
}

static void *run_task(void *argument) {
  Task *task = argument;
  umemCudaScope scope;
  if (!umemCudaScope_enter(&scope, &task->bench->ctx.super, task->bench->state.gpu)) return NULL;
  task->good = stage_in_thread(task);
  umemCudaScope_leave(&scope);
  return NULL;
}

static void check_threads(Bench *bench) {
  Task tasks[threads];
  pthread_t ids[threads];
  for (unsigned i = 0; i < threads; i++) {
    size_t nbytes = from + i * 300001;
    tasks[i] = (Task){bench, block_make(nbytes), malloc(nbytes), nbytes, 10 * i, false};
    assert_non_null(tasks[i].host);
    assert_int_equal(pthread_create(&ids[i], NULL, run_task, &tasks[i]), 0);
  }
  for (unsigned i = 0; i < threads; i++) {
    assert_int_equal(pthread_join(ids[i], NULL), 0);
    assert_true(tasks[i].good);
    block_release(&tasks[i].block);
    free(tasks[i].host);
  }
  assert_int_equal(umem_get_status(&bench->ctx), umemOK);
}

static void test_threads(void **state) { check_threads(*state); }

/* They find none left now and then. */
static void test_threads_with_few_chunks(void **state) {
  assert_int_equal(umemCuda_set_staging(256 << 10, 5), umemOK);
  check_threads(*state);
  assert_in_range(live_chunks(), 2, 5);
}

/* ---- fork ---- */

static void test_a_child_of_fork_forgets_channels_and_chunks(void **state) {
  Bench *bench = *state;
  there_and_back(bench, 2 * from, 0, 0, 1);
  FakeCudartLive live = fake_cudart_live();
  pid_t child = fork();
  assert_int_not_equal(child, -1);
  if (!child) {
    memset(&table, 0, sizeof table); /* whatever is called there ends it */
    umemCudaGpu_close(bench->state.gpu);
    _exit(0);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  assert_int_equal(fake_cudart_live().streams, live.streams);
  there_and_back(bench, 2 * from, 0, 0, 2);
}

int main(void) {
  struct CMUnitTest const tests[] = {
      cmocka_unit_test_setup_teardown(test_a_failing_call_to_the_device, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_a_failing_call_to_the_host, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_channels_that_failed_are_not_used_again, set_up,
                                      tear_down),
      cmocka_unit_test_setup_teardown(test_no_chunk_is_in_use_after_a_failure, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_chunks_that_may_be_in_use_are_not_lent_again, set_up,
                                      tear_down),
      cmocka_unit_test_setup_teardown(test_a_crashed_kernel, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_the_end_of_the_process, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_threads, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_threads_with_few_chunks, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_a_child_of_fork_forgets_channels_and_chunks, set_up,
                                      tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
