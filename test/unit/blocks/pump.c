/* pump.c - umem/blocks.h: who does what when. Nothing here looks at a clock: copies stop at
 * gates. */
#include "passage.h"

#include <sys/wait.h>

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
  assert_true(task_count_becomes(tasks_alone()));
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
  /* The program has block 1, and both gates are closed: block 2 is being read, and block 0
   * written. */
  assert_true(gate_await(&bench.from, 3, 0));
  assert_true(gate_await(&bench.to, 0, 1));
  assert_false(pthread_equal(bench.from.reader, pthread_self()));
  assert_false(pthread_equal(bench.to.writer, pthread_self()));
  assert_false(pthread_equal(bench.from.reader, bench.to.writer));
  assert_false(bench.from.hears_signals);
  assert_false(bench.to.hears_signals);
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

/* It inherits a condition that threads of its parent were about to leave, and must not wait for
 * these. Whether they are is a matter of chance: in 100 children it came about 10 times. */
static void a_child_of_fork_may_cancel(void **state) {
  (void)state;
  for (int round = 0; round < 10; round++) {
    open_bench(true);
    begin();
    while (next()) {
      pid_t child = fork();
      if (!child) {
        alarm(seconds);
        umemBlocks_cancel(&bench.blocks);
        _exit(!(!next() && umem_thread_status() == umemRuntimeError && end() == umemRuntimeError));
      }
      assert_int_equal(child_of(child), 0);
    }
    assert_ok(end());
    close_bench();
  }
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
      cmocka_unit_test_setup_teardown(blocks_come_in_order, set_up, tear_down),
      TEST_WITH(one_thread, blocks_come_in_order),
      TEST_WITH(two_threads, blocks_come_in_order),
      cmocka_unit_test_setup_teardown(a_source_alone_is_read, set_up, tear_down),
      TEST_WITH(one_thread, a_source_alone_is_read),
      cmocka_unit_test_setup_teardown(reads_ahead_and_writes_behind, set_up, tear_down),
      TEST_WITH(three_threads, reads_ahead_and_writes_behind),
      cmocka_unit_test_setup_teardown(holds_no_more_than_depth, set_up, tear_down),
      TEST_WITH(one_thread, one_thread_does_all),
      TEST_WITH(two_threads, two_threads_read_ahead),
      cmocka_unit_test_setup_teardown(contexts_that_are_not_concurrent_get_no_threads, set_up,
                                      tear_down),
      cmocka_unit_test_setup_teardown(a_block_that_was_not_given_back_is_not_written, set_up,
                                      tear_down),
      TEST_WITH(one_thread, a_block_that_was_not_given_back_is_not_written),
      cmocka_unit_test_setup_teardown(ends_at_once, set_up, tear_down),
      cmocka_unit_test_setup_teardown(progress_counts_rows, set_up, tear_down),
      TEST_WITH(one_thread, progress_counts_rows),
      cmocka_unit_test_setup_teardown(progress_cancels, set_up, tear_down),
      cmocka_unit_test_setup_teardown(progress_cancels_nothing_that_is_done, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_child_of_fork_has_no_threads, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_child_of_fork_may_cancel, set_up, tear_down),
      TEST_WITH(one_thread, a_child_of_one_thread_goes_on),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
