/* counted.c - the ledger counts each block that is read or written once, whichever threads of umem
 * copy it. */
#include "blocks_help.h"

enum {
  columns = 64 << 10,
  rows_each = 32,
  blocks_in_all = 4,
  rows_in_all = rows_each * blocks_in_all
};

typedef struct Sums {
  uint64_t calls, failed, bytes;
} Sums;

/* Of all records between contexts of these kinds. */
static Sums sums_of(char const *src, char const *dst) {
  umemLedgerRecord records[8];
  size_t count = 8;
  Sums sums = {0, 0, 0};
  records[0].size = sizeof *records;
  assert_ok(umem_ledger_read(records, &count));
  assert_true(count <= 8);
  for (size_t i = 0; i < count; i++) {
    if (strcmp(records[i].src.kind, src) != 0 || strcmp(records[i].dst.kind, dst) != 0) continue;
    assert_true(records[i].seconds > 0);
    sums.calls += records[i].calls;
    sums.failed += records[i].failed;
    sums.bytes += records[i].bytes;
  }
  return sums;
}

static void expect_sums(char const *src, char const *dst, uint64_t calls, uint64_t failed,
                        uint64_t rows) {
  Sums sums = sums_of(src, dst);
  assert_int_equal(sums.calls, calls);
  assert_int_equal(sums.failed, failed);
  assert_int_equal(sums.bytes, rows * columns);
}

static umemFile from, to;
static umemHost host;

static umemBlocksOptions open_files(void) {
  umemBlocksOptions options = UMEM_BLOCKS_OPTIONS_INIT;
  size_t const nbytes = (size_t)columns * rows_in_all;
  assert_ok(umemHost_ctor(&host));
  assert_ok(umemFile_ctor(&from, NULL, "w+"));
  assert_ok(umemFile_ctor(&to, NULL, "w+"));
  options.source = (umemRows){&from, umem_calloc(&from, nbytes, 1), columns, 0};
  options.destination = (umemRows){&to, umem_calloc(&to, nbytes, 1), columns, 0};
  options.count = rows_in_all;
  options.place = &host;
  options.rows = rows_each;
  options.depth = 4;
  options.before = 1;
  return options;
}

static umemStatusType pass(umemBlocksOptions const *options) {
  umemBlocks blocks;
  umemBlock block = UMEM_BLOCK_INIT;
  umem_ledger_clear();
  assert_ok(umem_ledger_start());
  assert_ok(umemBlocks_ctor(&blocks, options));
  while (umemBlocks_next(&blocks, &block))
    ;
  umemStatusType status = umemBlocks_end(&blocks);
  umem_ledger_stop();
  return status;
}

static void close_files(void) {
  umem_ledger_clear();
  umem_dtor(&to);
  umem_dtor(&from);
  umem_dtor(&host);
}

static void a_block_is_one_copy(void **state) {
  (void)state;
  umemBlocksOptions options = open_files();
  assert_ok(pass(&options));
  expect_sums("file", "host", blocks_in_all, 0, rows_in_all + blocks_in_all - 1); /* ghosts too */
  expect_sums("host", "file", blocks_in_all, 0, rows_in_all);
  assert_int_equal(sums_of("file", "file").calls + sums_of("host", "host").calls, 0);
  close_files();
}

/* Whoever cuts the file: the block that could not be read is a failed copy. */
static void a_block_that_fails_counts(void **state) {
  (void)state;
  umemBlocksOptions options = open_files();
  options.destination.ctx = NULL;
  options.before = 0;
  options.count = rows_in_all + 1;
  options.rows = rows_in_all;
  options.depth = 1;
  assert_true(pass(&options) != umemOK);
  umem_thread_clear();
  expect_sums("file", "host", 2, 1, rows_in_all);
  close_files();
}

int main(void) {
  struct CMUnitTest const tests[] = {
      cmocka_unit_test_setup_teardown(a_block_is_one_copy, set_up, tear_down),
      TEST_WITH(one_thread, a_block_is_one_copy),
      cmocka_unit_test_setup_teardown(a_block_that_fails_counts, set_up, tear_down),
  };
  return cmocka_run_group_tests_name("blocks in the ledger", tests, NULL, NULL);
}
