/* staging_faults.c - staged copies where calls fail, a GPU has crashed, many threads copy, and in a
 * child of fork, on a double of the runtime. */
#include "staging_help.h"
#include "settings.h"

/* ---- failures ---- */

/* One copy with the nth call failing; whether there was no such call. Either it is declined, and
 * nothing is touched or recorded, or it is done, or it has failed with a status. The next one
 * works. */
static bool try_nth(unsigned long nth, int error, umemCudaDirection kind) {
  size_t nbytes = (kind == umemCudaToDevice ? umemStagingToDevice : umemStagingToHost) + 5;
  size_t room = nbytes + 2 * margin;
  SCOPED_BYTES(unsigned char, host, room);
  Block block = block_make(nbytes);
  bool out = kind == umemCudaToDevice;
  memset(host, 9, room);
  memset(block.bytes, 7, room);
  fill(out ? host : block.bytes, nbytes, 1);
  block_poke(&block);

  unsigned long before = fake_cudart_calls();
  fake_cudart_fail(nth, error);
  bool staged = stage(&bench, block.adr, host, nbytes, kind);
  fake_cudart_fail(0, 0);
  bool over = fake_cudart_calls() - before < nth;
  bool failed = umem_get_status(&bench.ctx) != umemOK;
  FORGET(&bench.ctx);
  block_peek(&block);
  unsigned char const *to = out ? block.bytes : host;
  assert_true(staged || !failed);
  if (!staged)
    assert_true(is_all(to, room, out ? 7 : 9));
  else if (!failed)
    assert_true(is_filled(to, nbytes, 1) && is_all(to + nbytes, room - nbytes, out ? 7 : 9));
  assert_int_equal(rt->last_error(), 0);
  block_release(&block);
  return over;
}

static void check_failures(int error, umemCudaDirection kind) {
  bool over = false;
  unsigned long each = setting_small() ? 27 : 3; /* odd: both kinds of beginning take part */
  for (unsigned long nth = 1; !over; nth += each) {
    over = try_nth(nth, error, kind);
    if (nth % 2) continue; /* every other time from the beginning: chunks and channels are made */
    there_and_back(&bench, from, 0, 0, 3);
    reopen_bench(false);
  }
}

BENCH_TEST(a_failing_call_to_the_device) {
  umemCuda_set_staging(1 << 20, 0); /* few pieces: few calls that can fail */
  check_failures(umemCudaInvalidValue, umemCudaToDevice);
}

BENCH_TEST(a_failing_call_to_the_host) {
  umemCuda_set_staging(1 << 20, 0); /* few pieces: few calls that can fail */
  check_failures(umemCudaOutOfMemory, umemCudaToHost);
}

/* Stages to or from the device with the nth call of function failing. */
static void fail_in(char const *function, unsigned long nth, umemCudaDirection kind) {
  Block block = block_make(2 * from);
  fake_cudart_fail_in(function, nth, umemCudaInvalidValue);
  stage(&bench, block.adr, block.bytes, 2 * from, kind);
  fake_cudart_fail(0, 0);
  block_release(&block);
}

BENCH_TEST(channels_that_failed_are_not_used_again) {
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
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    there_and_back(&bench, 2 * from, 0, 0, 1);
    unsigned long created = fake_cudart_calls_of("stream_create");
    fail_in(cases[i].function, cases[i].nth, cases[i].kind);
    if (cases[i].failed) assert_non_null(strstr(umem_get_message(&bench.ctx), "GPU 0"));
    expect_staging_failure(cases[i].failed ? umemValueError : umemOK);
    there_and_back(&bench, 2 * from, 0, 0, 1);
    assert_int_equal(fake_cudart_calls_of("stream_create"), created + 1);
  }
}

/* A call that fails is no proof that the transfers before it are done. */
BENCH_TEST(no_chunk_is_in_use_after_a_failure) {
  size_t nbytes = 2 * from;
  Block block = block_make(nbytes);
  SCOPED_BYTES(unsigned char, host, nbytes);
  fill(host, nbytes, 4);
  memset(block.bytes, 7, nbytes + 2 * margin);
  block_poke(&block);
  fake_cudart_fail_in("stream_synchronize", 1, umemCudaInvalidValue);
  assert_true(stage(&bench, block.adr, host, nbytes, umemCudaToDevice));
  expect_staging_failure(umemValueError);
  block_peek(&block);
  assert_true(is_filled(block.bytes, nbytes, 4));
  block_release(&block);
}

static int cannot_synchronize(void *stream UNUSED) { return umemCudaInvalidValue; }

/* Chunks that may be in use are not lent before that has ended. */
BENCH_TEST(what_could_not_be_waited_for_ends_later) {
  there_and_back(&bench, 2 * from, 0, 0, 1);
  size_t chunks = live_chunks();
  Block block = block_make(2 * from);
  table.stream_synchronize = cannot_synchronize;
  for (int i = 0; i < 2; i++) {
    assert_true(stage(&bench, block.adr, block.bytes, 2 * from, umemCudaToDevice));
    expect_staging_failure(umemValueError);
  }
  assert_true(live_chunks() > chunks);
  table = *rt;
  chunks = live_chunks();
  there_and_back(&bench, 2 * from, 0, 0, 1);
  assert_int_equal(live_chunks(), chunks);
  umemCuda_release_staging(bench.state.gpu);
  assert_null(fake_cudart_misuse());
  assert_int_equal(live_chunks(), 0);
  block_release(&block);
}

/* By any context of the GPU. */
BENCH_TEST(what_could_not_be_waited_for_ends_before_memory_is_freed) {
  CONTEXT(umemCudaAsync, other, 0, UMEM_STREAM_NEW);
  uintptr_t freed = block_of(&other, 1);
  Block block = block_make(100);
  umemCudaChannel *channel = umemCudaChannel_take(bench.state.gpu);
  fill((unsigned char *)channel->chunks[0]->memory, 100, 3);
  ok(umemCudaChannel_start(channel, 0, (void *)block.adr, 100, umemCudaToDevice));
  umemCudaChannel_give(channel);
  umem_free(&other, freed);
  block_peek(&block);
  assert_true(is_filled(block.bytes, 100, 3));
  block_release(&block);
}

/* After a crashed kernel nothing works any more; nothing hangs either. */
BENCH_TEST(a_crashed_kernel) {
  there_and_back(&bench, 4 * from, 0, 0, 1);
  Block block = block_make(4 * from);
  fake_cudart_break(0, umemCudaIllegalAddress);
  for (int i = 0; i < 3; i++) {
    bool staged =
        stage(&bench, block.adr, block.bytes, 4 * from, i % 2 ? umemCudaToHost : umemCudaToDevice);
    assert_true(!staged || umem_get_status(&bench.ctx) != umemOK);
  }
  reopen_bench(true);
  block_forget(&block);
}

BENCH_TEST(the_end_of_the_process) {
  there_and_back(&bench, 4 * from, 0, 0, 1);
  Block block = block_make(4 * from);
  fake_cudart_unload();
  stage(&bench, block.adr, block.bytes, 4 * from, umemCudaToDevice);
  reopen_bench(true);
  block_forget(&block);
}

/* ---- threads ---- */

typedef struct Task {
  Block block;
  unsigned char *host;
  unsigned seed;
} Task;

/* Whether what has come back is what was sent, each time that a copy was staged in both ways. */
static bool stage_often(Task *task) {
  size_t nbytes = task->block.nbytes;
  for (unsigned i = 0; i < 6; i++) {
    fill(task->host, nbytes, task->seed + i);
    if (!stage(&bench, task->block.adr, task->host, nbytes, umemCudaToDevice)) continue;
    memset(task->host, 0, nbytes);
    if (!stage(&bench, task->block.adr, task->host, nbytes, umemCudaToHost)) continue;
    if (!is_filled(task->host, nbytes, task->seed + i)) return false;
  }
  return true;
}

static void *run_task(void *task) {
  umemCudaScope scope;
  if (!umemCudaScope_enter(&scope, &bench.ctx.super, bench.state.gpu)) return task;
  bool good = stage_often(task);
  umemCudaScope_leave(&scope);
  return good ? NULL : task;
}

static void check_threads(void) {
  Task tasks[threads];
  for (unsigned i = 0; i < threads; i++) {
    tasks[i] = (Task){block_make(from + i * 300001), malloc(from + i * 300001), 10 * i};
    assert_non_null(tasks[i].host);
  }
  run_at_once(threads, run_task, tasks, sizeof *tasks);
  for (unsigned i = 0; i < threads; i++) {
    block_release(&tasks[i].block);
    free(tasks[i].host);
  }
  assert_int_equal(umem_get_status(&bench.ctx), umemOK);
}

BENCH_TEST(threads_stage_at_once) { check_threads(); }

/* They find none left now and then. */
BENCH_TEST(threads_with_few_chunks) {
  assert_int_equal(umemCuda_set_staging(256 << 10, 5), umemOK);
  check_threads();
  assert_in_range(live_chunks(), 2, 5);
}

/* ---- fork ---- */

BENCH_TEST(a_child_of_fork_forgets_channels_and_chunks) {
  there_and_back(&bench, 2 * from, 0, 0, 1);
  FakeCudartLive live = fake_cudart_live();
  IN_CHILD {
    memset(&table, 0, sizeof table); /* whatever is called there ends it */
    umemCudaGpu_close(bench.state.gpu);
  }
  assert_int_equal(fake_cudart_live().streams, live.streams);
  there_and_back(&bench, 2 * from, 0, 0, 2);
}
