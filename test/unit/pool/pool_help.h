/* pool_help.h - what the tests of the pool share. */
#ifndef UMEM_TEST_POOL_HELP_H
#define UMEM_TEST_POOL_HELP_H

#include <stdlib.h>

#include "failures.h"
#include "random.h"
#include "settings.h"
#include "workers.h"

enum { kibi = 1 << 10, mebi = 1 << 20 };

/* Of all kinds: of spans of one page and of several, of ranges. */
static size_t const some_sizes[] = {1,    16,    17,    100,   1000,  4096,   8192,
                                    8193, 20000, 65536, 65537, 70000, 1000000};
enum { some = sizeof some_sizes / sizeof *some_sizes };

static inline umemPoolStats stats_of(umemPool *pool) {
  umemPoolStats stats = UMEM_POOL_STATS_INIT;
  assert_ok(umemPool_stats(pool, &stats));
  return stats;
}

/* That this free is refused, and changes nothing. */
static inline void expect_refused_free(umemPool *pool, uintptr_t adr) {
  uint64_t blocks = stats_of(pool).blocks, failures = umem_thread_failures();
  umem_free(pool, adr);
  assert_true(umem_thread_failures() == failures + 1);
  expect_failure(pool, umemValueError, "not a live block");
  assert_true(stats_of(pool).blocks == blocks);
}

static inline void open_pool(umemPool *pool, void *upstream, size_t initial, size_t growth,
                             size_t maximum) {
  umemPoolOptions options = {sizeof options, initial, growth, maximum, umemPoolPages, 0};
  assert_ok(umemPool_ctor(pool, upstream, &options));
}

static inline uintptr_t new_block(umemPool *pool, size_t nbytes) {
  uintptr_t adr = umem_alloc(pool, nbytes);
  assert_true(adr != umem_null(pool));
  return adr;
}

/* That no block is live, and everything can be given back. */
static inline void expect_nothing_left(umemPool *pool) {
  umemPoolStats stats = stats_of(pool);
  assert_true(stats.blocks == 0 && stats.used == 0);
  assert_ok(umem_trim(pool, 0));
  stats = stats_of(pool);
  assert_true(stats.reserved == 0 && stats.chunks == 0);
}

/* How many operations a random test makes. */
static inline uint64_t operations(void) { return setting_operations(3000000); }

#endif
