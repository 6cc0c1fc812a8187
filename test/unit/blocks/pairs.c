/* pairs.c - umem/blocks.h: several threads read, each a piece of a block. Nothing here looks at a
 * clock: copies stop at gates. */
#include "passage.h"

enum { count = 12, row = 256 << 10 };

static Gate from;
static umemHost host;
static umemBlocksOptions options;
static char *source;

/* Blocks of one row. Row i of the source has the bytes 'A' + i. */
static void open_passage(void **state) {
  set_up(state);
  gate_ctor(&from);
  assert_ok(umemHost_ctor(&host));
  source = (char *)umem_alloc(&from, (size_t)count * row);
  for (size_t i = 0; i < count; i++) memset(source + i * row, 'A' + (int)i, row);
  options = (umemBlocksOptions)UMEM_BLOCKS_OPTIONS_INIT;
  options.source = (umemRows){&from, (uintptr_t)source, row, 0};
  options.count = count;
  options.place = &host;
  options.rows = 1;
  options.depth = 3;
}

static void close_passage(void **state) {
  umem_free(&from, (uintptr_t)source);
  DESTRUCT(&from, &host);
  tear_down(state);
}

#define OPEN open_passage
#define CLOSE close_passage

static void expect_block(size_t number) {
  char const *bytes = (char const *)block.adr;
  assert_int_equal(block.number, number);
  for (size_t i = 0; i < block.rows; i++)
    for (size_t at = 0; at < row; at += row - 1)
      assert_int_equal(bytes[i * row + at], 'A' + (int)(block.first + i));
}

/* ---- how many threads read ---- */

TEST(two_threads_read_long_blocks) {
  gate_open(&from, 0, 0);
  begin(&options);
  assert_true(gate_await(&from, 2, 0)); /* neither waits for the other */
  gate_open(&from, SIZE_MAX, 0);
  assert_int_equal(pass_from(0, expect_block), count);
  assert_ok(end());
  assert_ok(umem_set_threads(1)); /* the workers leave */
  assert_true(task_count_becomes(tasks_alone()));
}
TEST_AGAIN(three_threads, two_threads_read_long_blocks)

/* How many blocks are read at the same time before the program has the first. */
static unsigned long read_at_once(void) {
  from.reads = 0;
  gate_open(&from, 0, 0);
  begin(&options);
  assert_true(gate_await(&from, 1, 0));
  usleep(20000);
  unsigned long reads = gate_reads(&from);
  gate_open(&from, SIZE_MAX, 0);
  assert_ok(end());
  return reads;
}

TEST(one_thread_reads_short_blocks) {
  options.depth = 3;
  options.source.nbytes = 4096; /* short */
  options.source.stride = row;
  assert_int_equal(read_at_once(), 1);
}

TEST_ON(two_threads, one_of_two_threads_is_the_programs) { assert_int_equal(read_at_once(), 1); }

/* How many threads there are besides the program's own while blocks of so many bytes pass from
 * ctx to RAM. */
static unsigned threads_for(void *ctx, size_t nbytes) {
  assert_ok(umem_set_threads(1)); /* the workers leave */
  assert_true(task_count_becomes(tasks_alone()));
  assert_ok(umem_set_threads(4));
  options.source = (umemRows){ctx, umem_calloc(ctx, count, nbytes), nbytes, 0};
  options.depth = 0;
  begin(&options);
  unsigned others = count_tasks() - tasks_alone();
  assert_ok(end());
  umem_free(ctx, options.source.adr);
  return others;
}

/* To wake a thread takes longer than to copy them. */
static void short_blocks_take_no_thread(void *ctx) {
  assert_int_equal(threads_for(ctx, 64), 0);
  assert_int_equal(threads_for(ctx, row - 4096), 0);
  assert_true(threads_for(ctx, row) > 0);
}

TEST(short_blocks_of_ram_and_files_take_no_thread) {
  CONTEXT(umemFile, file, NULL, "w+");
  CONTEXT(umemStats, stats, &file);
  short_blocks_take_no_thread(&host);
  short_blocks_take_no_thread(&file);
  short_blocks_take_no_thread(&stats);
}

/* ---- order ---- */

/* Of the first two copies one waits until the third block is there: whichever it is, the program
 * gets block 0 first. */
TEST(blocks_come_in_order) {
  for (int round = 0; round < 20; round++) {
    gate_reset(&from);
    gate_open(&from, 0, 0);
    begin(&options);
    assert_true(gate_await(&from, 2, 0));
    gate_open(&from, 1, 0);
    assert_true(gate_await(&from, 3, 0));
    gate_open(&from, SIZE_MAX, 0);
    assert_int_equal(pass_from(0, expect_block), count);
    assert_ok(end());
  }
}

/* ---- failures ---- */

/* The program gets all blocks before the one that could not be read, though the next one may be
 * there already. */
TEST(the_first_failure_counts) {
  for (unsigned long failing = 1; failing <= count; failing++) {
    gate_reset(&from);
    from.fail_read = failing;
    begin(&options);
    size_t number = pass_from(0, expect_block);
    char words[80];
    snprintf(words, sizeof words, "reading block %zu of 12", number);
    assert_true(number + 3 >= failing && number <= failing); /* copies may overtake one another */
    expect_stop(umemIOError, words);
  }
}

/* Both blocks that are being read fail: one failure is reported, that of the first. */
TEST(two_failures_are_one) {
  gate_open(&from, 0, 0);
  from.all_fail = true;
  begin(&options);
  assert_true(gate_await(&from, 2, 0));
  gate_open(&from, SIZE_MAX, 0);
  assert_false(next());
  expect_stop(umemIOError, "reading block 0 of 12 (rows 0 to 0): the gate is broken");
  assert_int_equal(gate_reads(&from), 2);
}

/* Block 1 fails, and then block 0. */
TEST(the_first_block_counts) {
  from.all_fail = true;
  from.late = (uintptr_t)source;
  begin(&options);
  assert_false(next());
  expect_stop(umemIOError, "reading block 0 of 12 (rows 0 to 0): the gate is broken");
}

/* A cancelled passage ends the copies that have begun, and begins no other. */
TEST(a_cancelled_passage_reads_no_further) {
  gate_open(&from, 0, 0);
  begin(&options);
  assert_true(gate_await(&from, 2, 0));
  umemBlocks_cancel(&blocks);
  gate_open(&from, SIZE_MAX, 0);
  assert_false(next());
  expect_failure(umemCancelledError, "cancelled after 0 of 12 rows");
  assert_int_equal(gate_reads(&from), 2);
  assert_int_equal(end(), umemCancelledError);
}

/* ---- several threads read one block ---- */

/* The program waits for one block at a time, and reads it with all four threads. */
static bool four_came;

static void *open_at_four(void *argument) {
  four_came = gate_await(&from, 4, 0);
  gate_open(&from, SIZE_MAX, 0);
  return argument;
}

TEST(several_threads_share_a_block) {
  options.rows = 9; /* 2.25 MiB in four pieces, and the rest in two */
  options.depth = 1;
  gate_open(&from, 0, 0);
  begin(&options);
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, open_at_four, NULL), 0);
  size_t number = pass_from(0, expect_block);
  pthread_join(thread, NULL);
  assert_true(four_came);
  assert_int_equal(number, 2);
  assert_int_equal(gate_reads(&from), 4 + 2);
  assert_ok(end());
}

TEST(a_part_that_fails_fails_the_block) {
  options.rows = count; /* 3 MiB, which the calling thread reads */
  for (unsigned long failing = 1; failing <= 3; failing++) {
    gate_reset(&from);
    from.fail_read = failing;
    begin(&options);
    assert_false(next());
    expect_stop(umemIOError,
                "umemBlocks_next: reading block 0 of 1 (rows 0 to 11): the gate is broken");
  }
}

TEST(ghost_rows_come_with_the_parts) {
  options.rows = 9; /* 2.25 MiB, and the rest */
  options.before = options.after = 2;
  options.ghosts = umemGhostsClamped;
  begin(&options);
  for (size_t number = 0; next(); number++) {
    expect_block(number);
    char const *bytes = (char const *)block.adr;
    assert_int_equal(bytes[-2 * row], number ? 'A' + 7 : 'A');
    assert_int_equal(bytes[-1], number ? 'A' + 8 : 'A');
    char const *behind = bytes + block.rows * row;
    assert_int_equal(behind[0], number ? 'A' + count - 1 : 'A' + 9);
    assert_int_equal(behind[2 * row - 1], number ? 'A' + count - 1 : 'A' + 10);
  }
  assert_ok(end());
}
