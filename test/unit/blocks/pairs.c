/* pairs.c - umem/blocks.h: several threads read, each a piece of a block. Nothing here looks at a
 * clock: copies stop at gates. */
#include "blocks_help.h"

#include <stdio.h>

enum { count = 12, row = 256 << 10 };

typedef struct Passage {
  Gate from;
  umemHost host;
  umemBlocksOptions options;
  umemBlocks blocks;
  umemBlock block;
  char *source;
} Passage;

static Passage passage;

/* Blocks of so many rows. Row i of the source has the bytes 'A' + i. */
static void open_passage(size_t rows) {
  memset(&passage, 0, sizeof passage);
  gate_ctor(&passage.from);
  assert_ok(umemHost_ctor(&passage.host));
  passage.source = (char *)umem_alloc(&passage.from, (size_t)count * row);
  for (size_t i = 0; i < count; i++) memset(passage.source + i * row, 'A' + (int)i, row);
  passage.options = (umemBlocksOptions)UMEM_BLOCKS_OPTIONS_INIT;
  passage.options.source = (umemRows){&passage.from, (uintptr_t)passage.source, row, 0};
  passage.options.count = count;
  passage.options.place = &passage.host;
  passage.options.rows = rows;
  passage.options.depth = 3;
  passage.block = (umemBlock)UMEM_BLOCK_INIT;
}

static void close_passage(void) {
  umem_free(&passage.from, (uintptr_t)passage.source);
  umem_dtor(&passage.from);
  umem_dtor(&passage.host);
}

static void begin(void) { assert_ok(umemBlocks_ctor(&passage.blocks, &passage.options)); }
static bool next(void) { return umemBlocks_next(&passage.blocks, &passage.block); }
static umemStatusType end(void) { return umemBlocks_end(&passage.blocks); }

static void expect_block(size_t number) {
  char const *bytes = (char const *)passage.block.adr;
  assert_int_equal(passage.block.number, number);
  for (size_t i = 0; i < passage.block.rows; i++)
    for (size_t at = 0; at < row; at += row - 1)
      assert_int_equal(bytes[i * row + at], 'A' + (int)(passage.block.first + i));
}

/* ---- how many threads read ---- */

static void two_threads_read_long_blocks(void **state) {
  (void)state;
  open_passage(1);
  gate_open(&passage.from, 0, 0);
  begin();
  assert_true(gate_await(&passage.from, 2, 0)); /* neither waits for the other */
  gate_open(&passage.from, SIZE_MAX, 0);
  size_t number = 0;
  while (next()) expect_block(number++);
  assert_int_equal(number, count);
  assert_ok(end());
  assert_ok(umem_set_threads(1)); /* the workers leave */
  assert_true(task_count_becomes(tasks_alone()));
  close_passage();
}

/* How many blocks are read at the same time before the program has the first. */
static unsigned long read_at_once(void) {
  passage.from.reads = 0;
  gate_open(&passage.from, 0, 0);
  begin();
  assert_true(gate_await(&passage.from, 1, 0));
  usleep(20000);
  unsigned long reads = gate_reads(&passage.from);
  gate_open(&passage.from, SIZE_MAX, 0);
  assert_ok(end());
  return reads;
}

static void one_thread_reads_short_blocks(void **state) {
  (void)state;
  open_passage(1);
  passage.options.depth = 3;
  passage.options.source.nbytes = 4096; /* short */
  passage.options.source.stride = row;
  assert_int_equal(read_at_once(), 1);
  close_passage();
}

static void one_of_two_threads_is_the_programs(void **state) {
  (void)state;
  open_passage(1);
  assert_int_equal(read_at_once(), 1);
  close_passage();
}

/* How many threads there are besides the program's own while blocks of so many bytes pass from
 * source to RAM. */
static unsigned threads_for(void *source, size_t nbytes) {
  umemBlocks blocks;
  umemBlocksOptions options = UMEM_BLOCKS_OPTIONS_INIT;
  assert_ok(umem_set_threads(1)); /* the workers leave */
  assert_true(task_count_becomes(tasks_alone()));
  assert_ok(umem_set_threads(4));
  options.source = (umemRows){source, umem_calloc(source, count, nbytes), nbytes, 0};
  options.count = count;
  options.rows = 1;
  options.place = &passage.host;
  assert_ok(umemBlocks_ctor(&blocks, &options));
  unsigned others = count_tasks() - tasks_alone();
  assert_ok(umemBlocks_end(&blocks));
  umem_free(source, options.source.adr);
  return others;
}

/* To wake a thread takes longer than to copy them. */
static void short_blocks_take_no_thread(void *source) {
  assert_int_equal(threads_for(source, 64), 0);
  assert_int_equal(threads_for(source, row - 4096), 0);
  assert_true(threads_for(source, row) > 0);
}

static void short_blocks_of_ram_and_files_take_no_thread(void **state) {
  (void)state;
  umemFile file;
  umemStats stats;
  assert_ok(umemHost_ctor(&passage.host));
  assert_ok(umemFile_ctor(&file, NULL, "w+"));
  assert_ok(umemStats_ctor(&stats, &file));
  short_blocks_take_no_thread(&passage.host);
  short_blocks_take_no_thread(&file);
  short_blocks_take_no_thread(&stats);
  umem_dtor(&stats);
  umem_dtor(&file);
  umem_dtor(&passage.host);
}

/* ---- order ---- */

/* Of the first two copies one waits until the third block is there: whichever it is, the program
 * gets block 0 first. */
static void blocks_come_in_order(void **state) {
  (void)state;
  for (int round = 0; round < 20; round++) {
    open_passage(1);
    gate_open(&passage.from, 0, 0);
    begin();
    assert_true(gate_await(&passage.from, 2, 0));
    gate_open(&passage.from, 1, 0);
    assert_true(gate_await(&passage.from, 3, 0));
    gate_open(&passage.from, SIZE_MAX, 0);
    size_t number = 0;
    while (next()) expect_block(number++);
    assert_int_equal(number, count);
    assert_ok(end());
    close_passage();
  }
}

/* ---- failures ---- */

/* The program gets all blocks before the one that could not be read, though the next one may be
 * there already. */
static void the_first_failure_counts(void **state) {
  (void)state;
  for (unsigned long failing = 1; failing <= count; failing++) {
    open_passage(1);
    passage.from.fail_read = failing;
    begin();
    size_t number = 0;
    while (next()) expect_block(number++);
    char words[80];
    snprintf(words, sizeof words, "reading block %zu of 12", number);
    assert_true(number + 3 >= failing && number <= failing); /* copies may overtake one another */
    expect_failure(umemIOError, words);
    assert_int_equal(end(), umemIOError);
    assert_ok(umem_thread_status());
    close_passage();
  }
}

/* Both blocks that are being read fail: one failure is reported, that of the first. */
static void two_failures_are_one(void **state) {
  (void)state;
  open_passage(1);
  gate_open(&passage.from, 0, 0);
  passage.from.all_fail = true;
  begin();
  assert_true(gate_await(&passage.from, 2, 0));
  gate_open(&passage.from, SIZE_MAX, 0);
  assert_false(next());
  expect_failure(umemIOError, "reading block 0 of 12 (rows 0 to 0): the gate is broken");
  assert_int_equal(end(), umemIOError);
  assert_ok(umem_thread_status());
  assert_int_equal(gate_reads(&passage.from), 2);
  close_passage();
}

/* Block 1 fails, and then block 0. */
static void the_first_block_counts(void **state) {
  (void)state;
  open_passage(1);
  passage.from.all_fail = true;
  passage.from.late = (uintptr_t)passage.source;
  begin();
  assert_false(next());
  expect_failure(umemIOError, "reading block 0 of 12 (rows 0 to 0): the gate is broken");
  assert_int_equal(end(), umemIOError);
  assert_ok(umem_thread_status());
  close_passage();
}

/* A cancelled passage ends the copies that have begun, and begins no other. */
static void a_cancelled_passage_reads_no_further(void **state) {
  (void)state;
  open_passage(1);
  gate_open(&passage.from, 0, 0);
  begin();
  assert_true(gate_await(&passage.from, 2, 0));
  umemBlocks_cancel(&passage.blocks);
  gate_open(&passage.from, SIZE_MAX, 0);
  assert_false(next());
  expect_failure(umemCancelledError, "cancelled after 0 of 12 rows");
  assert_int_equal(gate_reads(&passage.from), 2);
  assert_int_equal(end(), umemCancelledError);
  close_passage();
}

/* ---- several threads read one block ---- */

/* The program waits for one block at a time, and reads it with all four threads. */
static bool four_came;

static void *open_at_four(void *argument) {
  four_came = gate_await(&passage.from, 4, 0);
  gate_open(&passage.from, SIZE_MAX, 0);
  return argument;
}

static void several_threads_share_a_block(void **state) {
  (void)state;
  open_passage(9); /* 2.25 MiB in four pieces, and the rest in two */
  passage.options.depth = 1;
  gate_open(&passage.from, 0, 0);
  begin();
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, open_at_four, NULL), 0);
  size_t number = 0;
  while (next()) expect_block(number++);
  pthread_join(thread, NULL);
  assert_true(four_came);
  assert_int_equal(number, 2);
  assert_int_equal(gate_reads(&passage.from), 4 + 2);
  assert_ok(end());
  close_passage();
}

static void a_part_that_fails_fails_the_block(void **state) {
  (void)state;
  for (unsigned long failing = 1; failing <= 3; failing++) {
    open_passage(count); /* 3 MiB, which the calling thread reads */
    passage.from.fail_read = failing;
    begin();
    assert_false(next());
    expect_failure(umemIOError,
                   "umemBlocks_next: reading block 0 of 1 (rows 0 to 11): the gate is broken");
    assert_int_equal(end(), umemIOError);
    assert_ok(umem_thread_status());
    close_passage();
  }
}

static void ghost_rows_come_with_the_parts(void **state) {
  (void)state;
  open_passage(9); /* 2.25 MiB, and the rest */
  passage.options.before = passage.options.after = 2;
  passage.options.ghosts = umemGhostsClamped;
  begin();
  for (size_t number = 0; next(); number++) {
    expect_block(number);
    char const *bytes = (char const *)passage.block.adr;
    assert_int_equal(bytes[-2 * row], number ? 'A' + 7 : 'A');
    assert_int_equal(bytes[-1], number ? 'A' + 8 : 'A');
    char const *behind = bytes + passage.block.rows * row;
    assert_int_equal(behind[0], number ? 'A' + count - 1 : 'A' + 9);
    assert_int_equal(behind[2 * row - 1], number ? 'A' + count - 1 : 'A' + 10);
  }
  assert_ok(end());
  close_passage();
}

int main(void) {
  struct CMUnitTest const tests[] = {
      cmocka_unit_test_setup_teardown(two_threads_read_long_blocks, set_up, tear_down),
      TEST_WITH(three_threads, two_threads_read_long_blocks),
      cmocka_unit_test_setup_teardown(one_thread_reads_short_blocks, set_up, tear_down),
      TEST_WITH(two_threads, one_of_two_threads_is_the_programs),
      cmocka_unit_test_setup_teardown(short_blocks_of_ram_and_files_take_no_thread, set_up,
                                      tear_down),
      cmocka_unit_test_setup_teardown(blocks_come_in_order, set_up, tear_down),
      cmocka_unit_test_setup_teardown(the_first_failure_counts, set_up, tear_down),
      cmocka_unit_test_setup_teardown(two_failures_are_one, set_up, tear_down),
      cmocka_unit_test_setup_teardown(the_first_block_counts, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_cancelled_passage_reads_no_further, set_up, tear_down),
      cmocka_unit_test_setup_teardown(several_threads_share_a_block, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_part_that_fails_fails_the_block, set_up, tear_down),
      cmocka_unit_test_setup_teardown(ghost_rows_come_with_the_parts, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
