/* pump.c - umem/blocks.h: who does what when. Nothing here looks at a clock: copies stop at gates. */
#include "blocks_help.h"

#include <sys/wait.h>

enum { count = 40, rows = 4, blocks_in_all = count / rows };

/* An array in a gate, another for results, and blocks of ints in RAM. */
typedef struct Bench {
  Gate from, to;
  umemHost host;
  umemBlocksOptions options;
  umemBlocks blocks;
  umemBlock block;
  int *source, *destination;
} Bench;

static Bench bench;

static void open_bench(bool writes) {
  gate_ctor(&bench.from);
  gate_ctor(&bench.to);
  assert_ok(umemHost_ctor(&bench.host));
  bench.source = (int *)umem_alloc(&bench.from, count * sizeof(int));
  bench.destination = (int *)umem_alloc(&bench.to, count * sizeof(int));
  for (int i = 0; i < count; i++) bench.source[i] = 100 + i;
  memset(bench.destination, 0, count * sizeof(int));
  bench.options = (umemBlocksOptions)UMEM_BLOCKS_OPTIONS_INIT;
  bench.options.source = (umemRows){&bench.from, (uintptr_t)bench.source, sizeof(int), 0};
  if (writes)
    bench.options.destination = (umemRows){&bench.to, (uintptr_t)bench.destination, sizeof(int), 0};
  bench.options.count = count;
  bench.options.place = &bench.host;
  bench.options.rows = rows;
  bench.block = (umemBlock)UMEM_BLOCK_INIT;
}

static void close_bench(void) {
  umem_free(&bench.from, (uintptr_t)bench.source);
  umem_free(&bench.to, (uintptr_t)bench.destination);
  umem_dtor(&bench.from);
  umem_dtor(&bench.to);
  umem_dtor(&bench.host);
}

static void begin(void) { assert_ok(umemBlocks_ctor(&bench.blocks, &bench.options)); }
static bool next(void) { return umemBlocks_next(&bench.blocks, &bench.block); }
static umemStatusType end(void) { return umemBlocks_end(&bench.blocks); }

/* What the program does with a block: checks it, and makes each element its negative. */
static void work(size_t number) {
  int *at = (int *)bench.block.adr;
  assert_int_equal(bench.block.number, number);
  assert_int_equal(bench.block.first, number * rows);
  assert_int_equal(bench.block.rows, rows);
  assert_true(bench.block.out == bench.block.adr);
  for (int i = 0; i < rows; i++) {
    assert_int_equal(at[i], 100 + (int)number * rows + i);
    at[i] = -at[i];
  }
}

/* That the destination has the results of the blocks before end, and of no other. */
static void expect_written(size_t last) {
  for (int i = 0; i < count; i++)
    assert_int_equal(bench.destination[i], (size_t)i < last * rows ? -100 - i : 0);
}

static void blocks_come_in_order(void **state) {
  (void)state;
  open_bench(true);
  begin();
  size_t number = 0;
  while (next()) work(number++);
  assert_int_equal(number, blocks_in_all);
  expect_written(blocks_in_all); /* before the end */
  assert_false(next());
  assert_ok(end());
  assert_ok(umem_thread_status());
  close_bench();
}

static void a_source_alone_is_read(void **state) {
  (void)state;
  open_bench(false);
  begin();
  size_t number = 0;
  while (next()) work(number++);
  assert_int_equal(number, blocks_in_all);
  assert_ok(end());
  expect_written(0);
  close_bench();
}

/* ---- at the same time ---- */

static void reads_ahead_and_writes_behind(void **state) {
  (void)state;
  open_bench(true);
  gate_open(&bench.from, 2, 0);
  gate_open(&bench.to, 0, 0);
  begin();
  assert_true(next());
  work(0);
  assert_true(next());
  work(1);
  /* The program has block 1, and both gates are closed: block 2 is being read, and block 0 written. */
  assert_true(gate_await(&bench.from, 3, 0));
  assert_true(gate_await(&bench.to, 0, 1));
  assert_false(pthread_equal(bench.from.reader, pthread_self()));
  assert_false(pthread_equal(bench.to.writer, pthread_self()));
  assert_false(pthread_equal(bench.from.reader, bench.to.writer));
  gate_open(&bench.from, SIZE_MAX, 0);
  gate_open(&bench.to, 0, SIZE_MAX);
  for (size_t number = 2; next(); number++) work(number);
  assert_ok(end());
  expect_written(blocks_in_all);
  close_bench();
}

static void holds_no_more_than_depth(void **state) {
  (void)state;
  open_bench(true);
  bench.options.depth = 3;
  gate_open(&bench.to, 0, 0);
  begin();
  assert_true(next());
  work(0);
  assert_true(next()); /* 0 is being written, 1 is here, 2 is read: there is no memory for 3 */
  work(1);
  assert_true(gate_await(&bench.from, 3, 0));
  assert_true(gate_await(&bench.to, 0, 1));
  usleep(20000);
  assert_int_equal(gate_reads(&bench.from), 3);
  gate_open(&bench.to, 0, 1);
  assert_true(gate_await(&bench.from, 4, 0));
  gate_open(&bench.to, 0, SIZE_MAX);
  for (size_t number = 2; next(); number++) work(number);
  assert_ok(end());
  expect_written(blocks_in_all);
  close_bench();
}

/* With one thread the same happens in the calling thread. */
static void one_thread_does_all(void **state) {
  (void)state;
  open_bench(true);
  begin();
  assert_int_equal(gate_reads(&bench.from), 0);
  size_t number = 0;
  for (; next(); number++) {
    work(number);
    assert_int_equal(gate_reads(&bench.from), number + 1);
    assert_true(pthread_equal(bench.from.reader, pthread_self()));
  }
  assert_true(pthread_equal(bench.to.writer, pthread_self()));
  assert_int_equal(number, blocks_in_all);
  expect_written(blocks_in_all);
  assert_ok(end());
  close_bench();
}

static void two_threads_read_ahead(void **state) {
  (void)state;
  open_bench(true);
  begin();
  size_t number = 0;
  for (; next(); number++) work(number);
  assert_false(pthread_equal(bench.from.reader, pthread_self()));
  assert_true(pthread_equal(bench.to.writer, pthread_self()));
  assert_int_equal(number, blocks_in_all);
  expect_written(blocks_in_all);
  assert_ok(end());
  close_bench();
}

static void contexts_that_are_not_concurrent_get_no_threads(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    open_bench(true);
    (i ? &bench.from : &bench.to)->super.capabilities &= ~(unsigned)umemConcurrent;
    begin();
    for (size_t number = 0; next(); number++) work(number);
    assert_true(pthread_equal(bench.from.reader, pthread_self()));
    assert_true(pthread_equal(bench.to.writer, pthread_self()));
    assert_ok(end());
    expect_written(blocks_in_all);
    close_bench();
  }
}

/* ---- leaving early ---- */

static void a_block_that_was_not_given_back_is_not_written(void **state) {
  (void)state;
  open_bench(true);
  begin();
  for (size_t number = 0; number < 4; number++) {
    assert_true(next());
    work(number);
  }
  assert_ok(end());
  expect_written(3);
  close_bench();
}

static void ends_at_once(void **state) {
  (void)state;
  open_bench(true);
  begin();
  assert_ok(end());
  assert_ok(end()); /* there is nothing left to end */
  expect_written(0);
  close_bench();
}

/* ---- cancellation ---- */

static void cancels_between_blocks(void **state) {
  (void)state;
  open_bench(true);
  begin();
  assert_true(next());
  work(0);
  assert_true(next());
  umemBlocks_cancel(&bench.blocks);
  work(1);
  assert_false(next());
  expect_written(2); /* also what was given back by this call */
  expect_failure(umemCancelledError, "umemBlocks_next: cancelled after 8 of 40 rows");
  assert_int_equal(umem_get_status(&bench.to), umemCancelledError);
  assert_false(next());
  assert_ok(umem_thread_status()); /* reported once */
  assert_int_equal(end(), umemCancelledError);
  assert_ok(umem_thread_status());
  close_bench();
}

static void cancelling_after_the_last_block_changes_nothing(void **state) {
  (void)state;
  open_bench(true);
  begin();
  for (size_t number = 0; next(); number++) work(number);
  umemBlocks_cancel(&bench.blocks);
  assert_false(next());
  assert_ok(end());
  assert_ok(umem_thread_status());
  close_bench();
}

static void *cancel_when_reading(void *came) {
  *(bool *)came = gate_await(&bench.from, 2, 0);
  umemBlocks_cancel(&bench.blocks);
  gate_open(&bench.from, 2, 0); /* the copy that runs is not interrupted */
  return NULL;
}

static void another_thread_cancels_one_that_waits(void **state) {
  (void)state;
  open_bench(false);
  gate_open(&bench.from, 1, 0);
  begin();
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
  close_bench();
}

static void a_cancelled_passage_reads_no_further(void **state) {
  (void)state;
  open_bench(false);
  gate_open(&bench.from, 1, 0);
  begin();
  assert_true(next());
  assert_true(gate_await(&bench.from, 2, 0));
  umemBlocks_cancel(&bench.blocks);
  gate_open(&bench.from, SIZE_MAX, 0);
  usleep(20000);
  assert_int_equal(gate_reads(&bench.from), 2);
  assert_int_equal(end(), umemOK); /* the program has not asked for another block */
  close_bench();
}

/* Cancelled is all that it is, whatever the copy that runs comes to. */
static void a_read_that_fails_after_a_cancellation_is_forgotten(void **state) {
  (void)state;
  open_bench(false);
  gate_open(&bench.from, 1, 0);
  bench.from.fail_read = 2;
  begin();
  assert_true(next());
  assert_true(gate_await(&bench.from, 2, 0));
  umemBlocks_cancel(&bench.blocks);
  gate_open(&bench.from, SIZE_MAX, 0);
  assert_false(next());
  expect_failure(umemCancelledError, "cancelled after 4 of 40 rows");
  assert_int_equal(end(), umemCancelledError);
  assert_ok(umem_get_status(&bench.from));
  close_bench();
}

/* ---- progress ---- */

typedef struct Watch {
  uint64_t last, calls, stop_at;
  pthread_t thread;
} Watch;

static bool watch(void *user, uint64_t done, uint64_t total) {
  Watch *self = user;
  assert_int_equal(total, count);
  assert_true(self->calls ? done > self->last : done == 0);
  assert_int_equal(done % rows, 0);
  assert_true(pthread_equal(self->thread, pthread_self()));
  umem_set_status(&bench.host, umemTypeError, "mine"); /* of its own, not of the blocks */
  self->last = done;
  self->calls++;
  return done < self->stop_at;
}

static void reports_rows(bool writes) {
  open_bench(writes);
  Watch self = {.stop_at = SIZE_MAX, .thread = pthread_self()};
  bench.options.progress = watch;
  bench.options.user = &self;
  begin();
  size_t number = 0;
  for (; next(); number++) {
    umemBlocksInfo info = UMEM_BLOCKS_INFO_INIT;
    work(number);
    assert_ok(umemBlocks_info(&bench.blocks, &info));
    assert_true(info.done >= self.last && info.done <= number * rows);
  }
  assert_int_equal(number, blocks_in_all);
  assert_int_equal(self.last, count);
  if (!writes) assert_int_equal(self.calls, blocks_in_all + 1);
  assert_ok(end());
  umem_thread_clear();
  umem_clear_status(&bench.host);
  close_bench();
}

static void progress_counts_rows(void **state) {
  (void)state;
  reports_rows(false);
  reports_rows(true);
}

static void progress_cancels(void **state) {
  (void)state;
  open_bench(false);
  Watch self = {.stop_at = 3 * rows, .thread = pthread_self()};
  bench.options.progress = watch;
  bench.options.user = &self;
  begin();
  size_t number = 0;
  while (next()) number++;
  assert_int_equal(number, 3);
  expect_failure(umemCancelledError, "cancelled after 12 of 40 rows");
  assert_int_equal(end(), umemCancelledError);
  close_bench();
}

static bool refuse_all(void *user, uint64_t done, uint64_t total) {
  (void)user, (void)done, (void)total;
  return false;
}

static void progress_cancels_nothing_that_is_done(void **state) {
  (void)state;
  open_bench(true);
  bench.options.progress = refuse_all;
  bench.options.count = 0;
  begin();
  assert_false(next());
  assert_ok(end());
  bench.options.count = count;
  begin();
  assert_false(next());
  expect_failure(umemCancelledError, "cancelled after 0 of 40 rows");
  assert_int_equal(end(), umemCancelledError);
  expect_written(0);
  close_bench();
}

/* ---- failures ---- */

static void a_failed_read_comes_in_its_turn(void **state) {
  (void)state;
  open_bench(true);
  bench.from.fail_read = 6;
  begin();
  size_t number = 0;
  for (; next(); number++) work(number);
  assert_int_equal(number, 5);
  expect_failure(umemIOError,
                 "umemBlocks_next: reading block 5 of 10 (rows 20 to 23): the gate is broken");
  assert_int_equal(umem_get_status(&bench.from), umemIOError);
  expect_written(5);
  assert_false(next());
  assert_int_equal(end(), umemIOError);
  assert_ok(umem_thread_status());
  close_bench();
}

/* What was read ahead, and never asked for, is no failure of the program. */
static void a_read_ahead_that_fails_is_forgotten(void **state) {
  (void)state;
  open_bench(true);
  bench.from.fail_read = 2;
  begin();
  assert_true(next());
  assert_true(gate_await(&bench.from, 2, 0));
  assert_ok(end());
  assert_ok(umem_thread_status());
  assert_ok(umem_get_status(&bench.from));
  close_bench();
}

static void a_failed_write_stops(void **state) {
  (void)state;
  open_bench(true);
  bench.to.fail_write = 4;
  begin();
  size_t number = 0;
  for (; next(); number++) work(number);
  assert_true(number >= 4 && number <= 8);
  expect_failure(umemIOError,
                 "umemBlocks_next: writing block 3 of 10 (rows 12 to 15): the gate is broken");
  assert_int_equal(umem_get_status(&bench.to), umemIOError);
  assert_int_equal(gate_writes(&bench.to), 4);
  expect_written(3);
  assert_int_equal(end(), umemIOError);
  assert_ok(umem_thread_status());
  close_bench();
}

static void a_write_that_fails_at_the_end_is_reported(void **state) {
  (void)state;
  open_bench(true);
  bench.to.fail_write = blocks_in_all;
  begin();
  for (size_t number = 0; next(); number++) work(number);
  expect_failure(umemIOError, "writing block 9 of 10 (rows 36 to 39)");
  assert_int_equal(end(), umemIOError);
  close_bench();
  open_bench(true);
  bench.to.fail_write = 1;
  begin();
  assert_true(next());
  work(0);
  gate_open(&bench.to, 0, 0);
  assert_true(next());
  gate_open(&bench.to, 0, 1);
  assert_int_equal(end(), umemIOError);
  expect_failure(umemIOError, "writing block 0 of 10");
  close_bench();
}

static unsigned hook_calls;
static void count_failures(void *ctx, umemStatusType type, char const *message, void *data) {
  (void)ctx, (void)type, (void)message, (void)data;
  hook_calls++;
}

static void each_failure_is_reported_once(void **state) {
  (void)state;
  open_bench(true);
  bench.to.fail_write = 2;
  hook_calls = 0;
  umem_set_failure_hook(count_failures, NULL);
  begin();
  while (next()) continue;
  assert_int_equal(end(), umemIOError);
  umem_set_failure_hook(NULL, NULL);
  assert_int_equal(hook_calls, 1);
  close_bench();
}

/* ---- the callback form ---- */

typedef struct Body {
  size_t calls, stop_at;
} Body;

static int call(void *data, umemBlock const *block) {
  Body *self = data;
  bench.block = *block;
  work(self->calls);
  return self->calls++ == self->stop_at ? 42 : 0;
}

static void calls_a_function_for_each_block(void **state) {
  (void)state;
  open_bench(true);
  Body body = {.stop_at = SIZE_MAX};
  int code = 7;
  assert_ok(umemBlocks_run(&bench.options, call, &body, &code));
  assert_int_equal(code, 0);
  assert_int_equal(body.calls, blocks_in_all);
  expect_written(blocks_in_all);
  body = (Body){.stop_at = 0};
  assert_ok(umemBlocks_run(&bench.options, call, &body, NULL));
  close_bench();
}

static void a_function_stops(void **state) {
  (void)state;
  open_bench(true);
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
  close_bench();
}

/* ---- wrong use ---- */

static void blocks_that_are_none(void **state) {
  (void)state;
  umemBlock block = UMEM_BLOCK_INIT;
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

static void a_wrong_size_keeps_the_block(void **state) {
  (void)state;
  open_bench(true);
  begin();
  assert_true(next());
  work(0);
  umemBlock wrong = {0};
  assert_false(umemBlocks_next(&bench.blocks, &wrong));
  expect_failure(umemValueError, "umemBlocks_next: block->size is 0");
  assert_false(umemBlocks_next(&bench.blocks, NULL));
  expect_failure(umemValueError, "block is NULL");
  umemBlocksInfo info = {0};
  assert_int_equal(umemBlocks_info(&bench.blocks, &info), umemValueError);
  umem_thread_clear();
  assert_ok(end()); /* 0 was never given back */
  expect_written(0);
  close_bench();
}

/* ---- fork ---- */

static int child_of(pid_t child) {
  int status = -1;
  assert_true(child >= 0);
  assert_int_equal(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static void a_child_of_fork_has_no_threads(void **state) {
  (void)state;
  open_bench(true);
  begin();
  assert_true(next());
  work(0);
  pid_t child = fork();
  if (!child) {
    alarm(seconds);
    bool right = !next() && umem_thread_status() == umemRuntimeError &&
                 strstr(umem_thread_message(), "umemBlocks_next: forked in the middle") != NULL &&
                 !next() && end() == umemRuntimeError;
    _exit(!right);
  }
  assert_int_equal(child_of(child), 0);
  for (size_t number = 1; next(); number++) work(number);
  assert_ok(end());
  expect_written(blocks_in_all);
  close_bench();
}

static void a_child_of_one_thread_goes_on(void **state) {
  (void)state;
  open_bench(true);
  begin();
  assert_true(next());
  work(0);
  pid_t child = fork();
  if (!child) {
    alarm(seconds);
    size_t number = 1;
    while (next()) work(number++);
    _exit(!(number == blocks_in_all && end() == umemOK && bench.destination[count - 1] == -139));
  }
  assert_int_equal(child_of(child), 0);
  for (size_t number = 1; next(); number++) work(number);
  assert_ok(end());
  expect_written(blocks_in_all);
  close_bench();
}

int main(void) {
  struct CMUnitTest const tests[] = {
      TEST(blocks_come_in_order),
      TEST_WITH(one_thread, blocks_come_in_order),
      TEST_WITH(two_threads, blocks_come_in_order),
      TEST(a_source_alone_is_read),
      TEST_WITH(one_thread, a_source_alone_is_read),
      TEST(reads_ahead_and_writes_behind),
      TEST_WITH(three_threads, reads_ahead_and_writes_behind),
      TEST(holds_no_more_than_depth),
      TEST_WITH(one_thread, one_thread_does_all),
      TEST_WITH(two_threads, two_threads_read_ahead),
      TEST(contexts_that_are_not_concurrent_get_no_threads),
      TEST(a_block_that_was_not_given_back_is_not_written),
      TEST_WITH(one_thread, a_block_that_was_not_given_back_is_not_written),
      TEST(ends_at_once),
      TEST(cancels_between_blocks),
      TEST_WITH(one_thread, cancels_between_blocks),
      TEST(cancelling_after_the_last_block_changes_nothing),
      TEST(another_thread_cancels_one_that_waits),
      TEST(a_cancelled_passage_reads_no_further),
      TEST(a_read_that_fails_after_a_cancellation_is_forgotten),
      TEST(progress_counts_rows),
      TEST_WITH(one_thread, progress_counts_rows),
      TEST(progress_cancels),
      TEST(progress_cancels_nothing_that_is_done),
      TEST(a_failed_read_comes_in_its_turn),
      TEST_WITH(one_thread, a_failed_read_comes_in_its_turn),
      TEST(a_read_ahead_that_fails_is_forgotten),
      TEST(a_failed_write_stops),
      TEST_WITH(one_thread, a_failed_write_stops),
      TEST(a_write_that_fails_at_the_end_is_reported),
      TEST(each_failure_is_reported_once),
      TEST(calls_a_function_for_each_block),
      TEST(a_function_stops),
      TEST_WITH(one_thread, a_function_stops),
      TEST(blocks_that_are_none),
      TEST(a_wrong_size_keeps_the_block),
      TEST(a_child_of_fork_has_no_threads),
      TEST_WITH(one_thread, a_child_of_one_thread_goes_on),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
