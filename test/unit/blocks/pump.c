/* pump.c - umem/blocks.h: who does what when. Nothing here looks at a clock: copies stop at
 * gates. */
#include "bench.h"

TEST(blocks_come_in_order) {
  begin(&bench.options);
  assert_int_equal(pass_from(0, work), blocks_in_all);
  expect_written(blocks_in_all); /* before the end */
  assert_false(next());
  assert_ok(end());
  assert_ok(umem_thread_status());
  assert_true(task_count_becomes(tasks_alone()));
}
TEST_AGAIN(one_thread, blocks_come_in_order)
TEST_AGAIN(two_threads, blocks_come_in_order)

TEST(a_source_alone_is_read) {
  only_read();
  begin(&bench.options);
  assert_int_equal(pass_from(0, work), blocks_in_all);
  assert_ok(end());
  expect_written(0);
}
TEST_AGAIN(one_thread, a_source_alone_is_read)

/* ---- at the same time ---- */

TEST(reads_ahead_and_writes_behind) {
  gate_open(&bench.from, 2, 0);
  gate_open(&bench.to, 0, 0);
  begin_and_work(2);
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
  finish_from(2);
}
TEST_AGAIN(three_threads, reads_ahead_and_writes_behind)

TEST(holds_no_more_than_depth) {
  bench.options.depth = 3;
  gate_open(&bench.to, 0, 0);
  begin_and_work(1);
  assert_true(next()); /* 0 is being written, 1 is here, 2 is read: there is no memory for 3 */
  work(1);
  assert_true(gate_await(&bench.from, 3, 0));
  assert_true(gate_await(&bench.to, 0, 1));
  usleep(20000);
  assert_int_equal(gate_reads(&bench.from), 3);
  gate_open(&bench.to, 0, 1);
  assert_true(gate_await(&bench.from, 4, 0));
  gate_open(&bench.to, 0, SIZE_MAX);
  finish_from(2);
}

/* With one thread the same happens in the calling thread. */
TEST_ON(one_thread, one_thread_does_all) {
  begin(&bench.options);
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
}

TEST_ON(two_threads, two_threads_read_ahead) {
  begin(&bench.options);
  size_t number = pass_from(0, work);
  assert_false(pthread_equal(bench.from.reader, pthread_self()));
  assert_true(pthread_equal(bench.to.writer, pthread_self()));
  assert_int_equal(number, blocks_in_all);
  expect_written(blocks_in_all);
  assert_ok(end());
}

TEST(contexts_that_are_not_concurrent_get_no_threads) {
  for (int i = 0; i < 2; i++) {
    if (i) reopen_bench();
    (i ? &bench.from : &bench.to)->super.capabilities &= ~(unsigned)umemConcurrent;
    begin(&bench.options);
    pass_from(0, work);
    assert_true(pthread_equal(bench.from.reader, pthread_self()));
    assert_true(pthread_equal(bench.to.writer, pthread_self()));
    assert_ok(end());
    expect_written(blocks_in_all);
  }
}

/* ---- leaving early ---- */

TEST(a_block_that_was_not_given_back_is_not_written) {
  begin_and_work(4);
  assert_ok(end());
  expect_written(3);
}
TEST_AGAIN(one_thread, a_block_that_was_not_given_back_is_not_written)

TEST(ends_at_once) {
  begin(&bench.options);
  assert_ok(end());
  assert_ok(end()); /* there is nothing left to end */
  expect_written(0);
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
  if (!writes) only_read();
  Watch self = {.stop_at = SIZE_MAX, .thread = pthread_self()};
  bench.options.progress = watch;
  bench.options.user = &self;
  begin(&bench.options);
  size_t number = 0;
  for (; next(); number++) {
    umemBlocksInfo info = UMEM_BLOCKS_INFO_INIT;
    work(number);
    assert_ok(umemBlocks_info(&blocks, &info));
    assert_true(info.done >= self.last && info.done <= number * rows);
  }
  assert_int_equal(number, blocks_in_all);
  assert_int_equal(self.last, count);
  if (!writes) assert_int_equal(self.calls, blocks_in_all + 1);
  assert_ok(end());
  FORGET(&bench.host);
}

TEST(progress_counts_rows) {
  reports_rows(true);
  reports_rows(false);
}
TEST_AGAIN(one_thread, progress_counts_rows)

TEST(progress_cancels) {
  only_read();
  Watch self = {.stop_at = 3 * rows, .thread = pthread_self()};
  bench.options.progress = watch;
  bench.options.user = &self;
  begin(&bench.options);
  size_t number = 0;
  while (next()) number++;
  assert_int_equal(number, 3);
  expect_stop(umemCancelledError, "cancelled after 12 of 40 rows");
}

static bool refuse_all(void *user UNUSED, uint64_t done UNUSED, uint64_t total UNUSED) {
  return false;
}

TEST(progress_cancels_nothing_that_is_done) {
  bench.options.progress = refuse_all;
  bench.options.count = 0;
  begin(&bench.options);
  assert_false(next());
  assert_ok(end());
  bench.options.count = count;
  begin(&bench.options);
  assert_false(next());
  expect_stop(umemCancelledError, "cancelled after 0 of 40 rows");
  expect_written(0);
}

/* ---- fork ---- */

TEST(a_child_of_fork_has_no_threads) {
  begin_and_work(1);
  IN_CHILD {
    bool right = !next() && umem_thread_status() == umemRuntimeError &&
                 strstr(umem_thread_message(), "umemBlocks_next: forked in the middle") != NULL &&
                 !next() && end() == umemRuntimeError;
    EXPECT(right);
  }
  finish_from(1);
}

/* It inherits a condition that threads of its parent were about to leave, and must not wait for
 * these. Whether they are is a matter of chance: in 100 children it came about 10 times. */
TEST(a_child_of_fork_may_cancel) {
  for (int round = 0; round < 10; round++) {
    begin(&bench.options);
    while (next()) {
      IN_CHILD {
        alarm(seconds);
        umemBlocks_cancel(&blocks);
        EXPECT(!next() && umem_thread_status() == umemRuntimeError && end() == umemRuntimeError);
      }
    }
    assert_ok(end());
  }
}

TEST_ON(one_thread, a_child_of_one_thread_goes_on) {
  begin_and_work(1);
  IN_CHILD {
    size_t number = 1;
    while (next()) work(number++);
    EXPECT(number == blocks_in_all && end() == umemOK && bench.destination[count - 1] == -139);
  }
  finish_from(1);
}
