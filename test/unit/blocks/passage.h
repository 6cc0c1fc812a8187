/* passage.h - what tests with one passage at a time share. A test may run with several numbers of
 * threads. */
#pragma once

#include "blocks_help.h"

/* Between OPEN and CLOSE, which the file defines. */
#define TEST_ON(threads, name) TEST_CASE_FROM(name, OPEN, CLOSE, (void *)threads)
#define TEST_AGAIN(threads, name) TEST_CASE_AGAIN(name, threads, OPEN, CLOSE, (void *)threads)
#define TEST(name) TEST_CASE_WITH(name, OPEN, CLOSE)

static umemBlocks blocks;
static umemBlock block;

static inline void begin(umemBlocksOptions const *options) {
  block = (umemBlock)UMEM_BLOCK_INIT;
  assert_ok(umemBlocks_ctor(&blocks, options));
}

/* A call of umem that hangs ends the program. */
static inline bool next(void) {
  alarm(seconds);
  bool more = umemBlocks_next(&blocks, &block);
  alarm(0);
  return more;
}
static inline umemStatusType end(void) {
  alarm(seconds);
  umemStatusType status = umemBlocks_end(&blocks);
  alarm(0);
  return status;
}

/* The passage has stopped for this failure of the thread, and its end reports no other. */
static inline void expect_stop_at(umemStatusType type, char const *words, int line) {
  expect_failure_at(type, words, line);
  assert_int_equal(end(), type);
  assert_ok(umem_thread_status());
}
#define expect_stop(type, words) expect_stop_at((type), (words), __LINE__)

/* Gives each block that is left to work, if there is one. first: the number of the first of them.
 * Returns that of the last one plus 1. */
static inline size_t pass_from(size_t first, void (*work)(size_t number)) {
  for (; next(); first++)
    if (work) work(first);
  return first;
}

/* What the ledger has counted since start_ledger. */
static inline void start_ledger(void) {
  umem_ledger_clear();
  assert_ok(umem_ledger_start());
}
static inline size_t stop_ledger(umemLedgerRecord *records, size_t room) {
  umem_ledger_stop();
  records[0].size = sizeof *records;
  assert_ok(umem_ledger_read(records, &room));
  umem_ledger_clear();
  return room;
}

/* A whole passage of so many blocks. */
static inline void pass_all(umemBlocksOptions const *options, void (*work)(size_t number),
                            size_t expected) {
  begin(options);
  assert_int_equal(pass_from(0, work), expected);
  assert_ok(end());
}
