/* pool_help.h - what the tests of the pool share: a pool over RAM for each test. */
#pragma once

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

static inline uintptr_t new_block(void *ctx, size_t nbytes) {
  uintptr_t adr = umem_alloc(ctx, nbytes);
  assert_true(adr != umem_null(ctx));
  return adr;
}

static inline void new_blocks(umemPool *pool, uintptr_t *adr, size_t count, size_t nbytes) {
  for (size_t i = 0; i < count; i++) adr[i] = new_block(pool, nbytes);
}

/* That the pool holds so many bytes in so many chunks. */
static inline void expect_held(umemPool *pool, uint64_t reserved, uint64_t chunks) {
  umemPoolStats stats = stats_of(pool);
  assert_int_equal(stats.reserved, reserved);
  assert_int_equal(stats.chunks, chunks);
}

/* That no block is live, and everything can be given back. */
static inline void expect_nothing_left(umemPool *pool) {
  umemPoolStats stats = stats_of(pool);
  assert_true(stats.blocks == 0 && stats.used == 0);
  assert_ok(umem_trim(pool, 0));
  expect_held(pool, 0, 0);
}

/* Ends a pool that has no live block. */
static inline void close_pool(umemPool *pool) {
  expect_nothing_left(pool);
  umem_dtor(pool);
}

/* How many operations a random test makes. */
static inline uint64_t operations(void) { return setting_operations(3000000); }

/* ---- tests ---- */

static umemHost host;
static umemFault plain; /* over host; without pages, so that a pool has chunks */
static umemPool pool;

static inline void have_host(void **state UNUSED) {
  pool.super.vptr = NULL;
  assert_ok(umemHost_ctor(&host));
  assert_ok(umemFault_ctor(&plain, &host, NULL));
}
static inline void have_pages(void **state) {
  have_host(state);
  assert_ok(umemPool_ctor(&pool, &host, NULL));
}
static inline void have_chunks(void **state) {
  have_host(state);
  assert_ok(umemPool_ctor(&pool, &plain, NULL));
}

/* No block of the pool may be left, unless the test has ended it. */
static inline void close_all(void **state UNUSED) {
  if (pool.super.vptr) close_pool(&pool);
  DESTRUCT(&plain, &host);
  assert_ok(umem_thread_status());
}

#define TEST(name) TEST_CASE_WITH(name, have_host, close_all) /* which opens the pool itself */
#define TEST_OF_PAGES(name) TEST_CASE_WITH(name, have_pages, close_all)
#define TEST_OF_CHUNKS(name) TEST_CASE_WITH(name, have_chunks, close_all)
