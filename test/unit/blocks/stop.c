/* stop.c - umem/blocks.h: passages that do not come to their end: cancelled, failed, stopped by a
 * function, or never begun. */
#include "bench.h"

#include "child.h"
#include "core/threads.h"
#include "unit/used_bytes.h"

/* ---- cancellation ---- */

TEST(cancels_between_blocks) {
  begin_and_work(1);
  assert_true(next());
  umemBlocks_cancel(&blocks);
  work(1);
  assert_false(next());
  expect_written(2); /* also what was given back by this call */
  expect_failure(umemCancelledError, "umemBlocks_next: cancelled after 8 of 40 rows");
  assert_int_equal(umem_get_status(&bench.to), umemCancelledError);
  assert_false(next());
  assert_ok(umem_thread_status()); /* reported once */
  assert_int_equal(end(), umemCancelledError);
  assert_ok(umem_thread_status());
}
TEST_AGAIN(one_thread, cancels_between_blocks)

TEST(cancelling_after_the_last_block_changes_nothing) {
  begin(&bench.options);
  pass_from(0, work);
  umemBlocks_cancel(&blocks);
  assert_false(next());
  assert_ok(end());
  assert_ok(umem_thread_status());
}

static void *cancel_when_reading(void *came) {
  *(bool *)came = gate_await(&bench.from, 2, 0);
  umemBlocks_cancel(&blocks);
  gate_open(&bench.from, 2, 0); /* the copy that runs is not interrupted */
  return NULL;
}

TEST(another_thread_cancels_one_that_waits) {
  only_read();
  gate_open(&bench.from, 1, 0);
  begin(&bench.options);
  assert_true(next());
  pthread_t canceller;
  bool came = false;
  assert_int_equal(pthread_create(&canceller, NULL, cancel_when_reading, &came), 0);
  assert_false(next());
  pthread_join(canceller, NULL);
  assert_true(came);
  expect_failure(umemCancelledError, "cancelled after 4 of 40 rows");
  assert_int_equal(umem_get_status(&bench.host), umemCancelledError);
  assert_int_equal(end(), umemCancelledError);
}

TEST(a_cancelled_passage_reads_no_further) {
  only_read();
  gate_open(&bench.from, 1, 0);
  begin(&bench.options);
  assert_true(next());
  assert_true(gate_await(&bench.from, 2, 0));
  umemBlocks_cancel(&blocks);
  gate_open(&bench.from, SIZE_MAX, 0);
  usleep(20000);
  assert_int_equal(gate_reads(&bench.from), 2);
  assert_int_equal(end(), umemOK); /* the program has not asked for another block */
}

/* ---- a server that is silent ---- */

static struct {
  pthread_t program;
  bool waits, ended; /* a write; atomic */
} silent;

static bool goes_on_unless_a_write_waits(void *data UNUSED) {
  return !pthread_equal(pthread_self(), silent.program) ||
         !__atomic_load_n(&silent.waits, __ATOMIC_ACQUIRE);
}

static void wait_for_a_server(umemVirtual *ctx, uintptr_t dst UNUSED, umemVirtual *that UNUSED,
                              uintptr_t src UNUSED, size_t nbytes UNUSED) {
  __atomic_store_n(&silent.waits, true, __ATOMIC_RELEASE);
  for (int i = 0; i < seconds * 1000 && !silent.ended; i++) {
    silent.ended = !umem_goes_on();
    usleep(500);
  }
  umemVirtual_fail(ctx, umemCancelledError, "cancelled");
}

/* The wait hook of Python, too, answers in the program's thread alone. */
TEST(an_interrupt_ends_a_write_that_waits_for_a_server) {
  static struct umemVtbl table;
  table = *bench.to.super.vptr;
  table.copy_from = wait_for_a_server;
  bench.to.super.vptr = &table;
  silent.program = pthread_self();
  silent.waits = silent.ended = false;
  umem_set_wait_hook(goes_on_unless_a_write_waits, NULL);
  begin(&bench.options);
  while (next()) {
  }
  umem_set_wait_hook(NULL, NULL);
  assert_true(silent.ended);
  expect_stop(umemCancelledError, "cancelled");
}
TEST_AGAIN(one_thread, an_interrupt_ends_a_write_that_waits_for_a_server)
TEST_AGAIN(three_threads, an_interrupt_ends_a_write_that_waits_for_a_server)

#ifdef __GLIBC__ /* pthread_exit leaves functions as an exception of C++ does */
static bool leave(void *data UNUSED) { pthread_exit(NULL); }

TEST(what_leaves_the_wait_hook_ends_the_process) {
  pid_t child = fork();
  if (!child) {
    umem_set_threads(3);
    umem_set_wait_hook(leave, NULL);
    gate_open(&bench.from, 0, 0);
    begin(&bench.options);
    _exit(next());
  }
  assert_int_equal(child_wait(child), -SIGABRT);
}
#endif

/* Cancelled is all that it is, whatever the copy that runs comes to. */
TEST(a_read_that_fails_after_a_cancellation_is_forgotten) {
  only_read();
  gate_open(&bench.from, 1, 0);
  bench.from.fail_read = 2;
  begin(&bench.options);
  assert_true(next());
  assert_true(gate_await(&bench.from, 2, 0));
  umemBlocks_cancel(&blocks);
  gate_open(&bench.from, SIZE_MAX, 0);
  assert_false(next());
  expect_stop(umemCancelledError, "cancelled after 4 of 40 rows");
  assert_ok(umem_get_status(&bench.from));
}

/* ---- failures ---- */

TEST(a_failed_read_comes_in_its_turn) {
  bench.from.fail_read = 6;
  begin(&bench.options);
  size_t number = pass_from(0, work);
  assert_int_equal(number, 5);
  expect_failure(umemIOError,
                 "umemBlocks_next: reading block 5 of 10 (rows 20 to 23): the gate is broken");
  assert_int_equal(umem_get_status(&bench.from), umemIOError);
  expect_written(5);
  assert_false(next());
  assert_int_equal(end(), umemIOError);
  assert_ok(umem_thread_status());
}
TEST_AGAIN(one_thread, a_failed_read_comes_in_its_turn)

/* What was read ahead, and never asked for, is no failure of the program. */
TEST(a_read_ahead_that_fails_is_forgotten) {
  bench.from.fail_read = 2;
  begin(&bench.options);
  assert_true(next());
  assert_true(gate_await(&bench.from, 2, 0));
  assert_ok(end());
  assert_ok(umem_thread_status());
  assert_ok(umem_get_status(&bench.from));
}

TEST(a_failed_write_stops) {
  bench.to.fail_write = 4;
  begin(&bench.options);
  size_t number = pass_from(0, work);
  assert_true(number >= 4 && number <= 8);
  expect_failure(umemIOError,
                 "umemBlocks_next: writing block 3 of 10 (rows 12 to 15): the gate is broken");
  assert_int_equal(umem_get_status(&bench.to), umemIOError);
  assert_int_equal(gate_writes(&bench.to), 4);
  expect_written(3);
  assert_int_equal(end(), umemIOError);
  assert_ok(umem_thread_status());
}
TEST_AGAIN(one_thread, a_failed_write_stops)

TEST(a_write_that_fails_at_the_end_is_reported) {
  bench.to.fail_write = blocks_in_all;
  begin(&bench.options);
  pass_from(0, work);
  expect_stop(umemIOError, "writing block 9 of 10 (rows 36 to 39)");
  reopen_bench();
  bench.to.fail_write = 1;
  begin_and_work(1);
  gate_open(&bench.to, 0, 0);
  assert_true(next());
  gate_open(&bench.to, 0, 1);
  assert_int_equal(end(), umemIOError);
  expect_failure(umemIOError, "writing block 0 of 10");
}

static unsigned hook_calls;
static void count_failures(void *ctx, umemStatusType type, char const *message, void *data) {
  (void)ctx, (void)type, (void)message, (void)data;
  hook_calls++;
}

TEST(each_failure_is_reported_once) {
  bench.to.fail_write = 2;
  hook_calls = 0;
  umem_set_failure_hook(count_failures, NULL);
  begin(&bench.options);
  while (next()) continue;
  assert_int_equal(end(), umemIOError);
  umem_set_failure_hook(NULL, NULL);
  assert_int_equal(hook_calls, 1);
}

/* ---- the callback form ---- */

typedef struct Body {
  size_t calls, stop_at;
} Body;

static int call(void *data, umemBlock const *given) {
  Body *self = data;
  block = *given;
  work(self->calls);
  return self->calls++ == self->stop_at ? 42 : 0;
}

TEST(calls_a_function_for_each_block) {
  Body body = {.stop_at = SIZE_MAX};
  int code = 7;
  assert_ok(umemBlocks_run(&bench.options, call, &body, &code));
  assert_int_equal(code, 0);
  assert_int_equal(body.calls, blocks_in_all);
  expect_written(blocks_in_all);
  body = (Body){.stop_at = 0};
  assert_ok(umemBlocks_run(&bench.options, call, &body, NULL));
}

TEST(a_function_stops) {
  Body body = {.stop_at = 3};
  int code = 0;
  assert_ok(umemBlocks_run(&bench.options, call, &body, &code));
  assert_int_equal(code, 42);
  assert_int_equal(body.calls, 4);
  expect_written(3);
  bench.to.fail_write = gate_writes(&bench.to) + 2;
  body = (Body){.stop_at = SIZE_MAX};
  assert_int_equal(umemBlocks_run(&bench.options, call, &body, &code), umemIOError);
  expect_failure(umemIOError, "umemBlocks_run: writing block 1 of 10");
  assert_int_equal(umemBlocks_run(&bench.options, NULL, NULL, &code), umemValueError);
  expect_failure(umemValueError, "umemBlocks_run: the function to call is NULL");
  assert_int_equal(umemBlocks_run(NULL, call, &body, &code), umemValueError);
  expect_failure(umemValueError, "umemBlocks_run: the options are NULL");
}
TEST_AGAIN(one_thread, a_function_stops)

/* The place has no room for the blocks: what was taken before goes back. */
TEST(a_beginning_that_fails_leaves_nothing) {
  enum { queues = 100, tries = 100 };
  static unsigned char bytes[1 << 16];
  void *queue[queues];
  CONTEXT(umemHost, host);
  CONTEXT(umemLimit, limit, &host, 100);
  for (int i = 0; i < queues; i++) queue[i] = &limit;
  umemBlocksOptions options = UMEM_BLOCKS_OPTIONS_INIT;
  options.source = (umemRows){&host, (uintptr_t)bytes, 64, 0};
  options.count = sizeof bytes / 64;
  options.place = &limit;
  options.queues = queue;
  options.queue_count = queues;
  size_t before = 0;
  for (int i = 0; i <= tries; i++) {
    if (i == 1) before = used_bytes();
    assert_int_equal(umemBlocks_ctor(&blocks, &options), umemMemoryError);
    FORGET(&limit);
  }
  size_t after = used_bytes();
  if (after > before + tries * sizeof queue / 10) fail_msg("%zu bytes", after - before);
}

/* ---- wrong use ---- */

TEST(blocks_that_are_none) {
  umemBlocksInfo info = UMEM_BLOCKS_INFO_INIT;
  umemBlocks none = {.impl = NULL};
  assert_false(umemBlocks_next(&none, &block));
  expect_failure(umemValueError, "umemBlocks_next: the blocks are not constructed");
  assert_false(umemBlocks_next(NULL, &block));
  expect_failure(umemValueError, "the blocks are NULL");
  assert_int_equal(umemBlocks_info(&none, &info), umemValueError);
  expect_failure(umemValueError, "umemBlocks_info: the blocks are not constructed");
  assert_int_equal(umemBlocks_info(NULL, &info), umemValueError);
  umem_thread_clear();
  umemBlocks_cancel(&none);
  umemBlocks_cancel(NULL);
  assert_ok(umemBlocks_end(&none));
  assert_ok(umemBlocks_end(NULL));
  assert_int_equal(umemBlocks_ctor(NULL, NULL), umemValueError);
  assert_int_equal(umemBlocks_ctor(&none, NULL), umemValueError);
  umem_thread_clear();
  assert_false(umemBlocks_next(&none, &block)); /* the constructor has reported that */
  assert_int_equal(umemBlocks_info(&none, &info), umemValueError);
  assert_ok(umem_thread_status());
  assert_int_equal(umemBlocks_end(&none), umemValueError);
  assert_ok(umemBlocks_end(&none));
}

TEST(a_wrong_size_keeps_the_block) {
  begin_and_work(1);
  umemBlock wrong = {0};
  assert_false(umemBlocks_next(&blocks, &wrong));
  expect_failure(umemValueError, "umemBlocks_next: block->size is 0");
  assert_false(umemBlocks_next(&blocks, NULL));
  expect_failure(umemValueError, "block is NULL");
  umemBlocksInfo info = {0};
  assert_int_equal(umemBlocks_info(&blocks, &info), umemValueError);
  umem_thread_clear();
  assert_ok(end()); /* 0 was never given back */
  expect_written(0);
}
