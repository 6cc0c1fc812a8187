/* counted.c - the ledger counts each block that is read or written once, whichever threads of umem
 * copy it. */
#include "passage.h"

enum {
  columns = 64 << 10,
  rows_each = 32,
  blocks_in_all = 4,
  rows_in_all = rows_each * blocks_in_all
};

typedef struct Sums {
  uint64_t calls, failed, bytes;
} Sums;

static umemLedgerRecord records[8];
static size_t count; /* of records */

/* Of all records between contexts of these kinds. */
static Sums sums_of(char const *src, char const *dst) {
  Sums sums = {0, 0, 0};
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

static umemBlocksOptions options;

static void open_files(void **state) {
  set_up(state);
  options = (umemBlocksOptions)UMEM_BLOCKS_OPTIONS_INIT;
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
}

static umemStatusType pass(void) {
  start_ledger();
  begin(&options);
  pass_from(0, NULL);
  umemStatusType status = end();
  count = stop_ledger(records, 8);
  assert_true(count <= 8);
  return status;
}

static void close_files(void **state) {
  DESTRUCT(&to, &from, &host);
  tear_down(state);
}

#define OPEN open_files
#define CLOSE close_files

TEST(a_block_is_one_copy) {
  assert_ok(pass());
  expect_sums("file", "host", blocks_in_all, 0, rows_in_all + blocks_in_all - 1); /* ghosts too */
  expect_sums("host", "file", blocks_in_all, 0, rows_in_all);
  assert_int_equal(sums_of("file", "file").calls + sums_of("host", "host").calls, 0);
}
TEST_AGAIN(one_thread, a_block_is_one_copy)

/* Whoever cuts the file: the block that could not be read is a failed copy. */
TEST(a_block_that_fails_counts) {
  options.destination.ctx = NULL;
  options.before = 0;
  options.count = rows_in_all + 1;
  options.rows = rows_in_all;
  options.depth = 1;
  assert_true(pass() != umemOK);
  umem_thread_clear();
  expect_sums("file", "host", 2, 1, rows_in_all);
}
