/* pool_help.h - what the tests of the pool share. */
#ifndef UMEM_TEST_POOL_HELP_H
#define UMEM_TEST_POOL_HELP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <umem.h>

#define assert_ok(call) assert_int_equal((call), umemOK)

static inline umemPoolStats stats_of(umemPool *pool) {
  umemPoolStats stats = UMEM_POOL_STATS_INIT;
  assert_ok(umemPool_stats(pool, &stats));
  return stats;
}

/* That the last call has failed on ctx with this type, and words in its message; clears it. */
static inline void expect_failure(void *ctx, umemStatusType type, char const *words) {
  assert_string_equal(umem_get_status_name(umem_thread_status()), umem_get_status_name(type));
  assert_int_equal(umem_get_status(ctx), type);
  if (!strstr(umem_get_message(ctx), words)) fail_msg("%s", umem_get_message(ctx));
  assert_ok(umem_clear_status(ctx));
  umem_thread_clear();
}

/* That this free is refused, and changes nothing. */
static inline void expect_refused_free(umemPool *pool, uintptr_t adr) {
  uint64_t blocks = stats_of(pool).blocks, failures = umem_thread_failures();
  umem_free(pool, adr);
  assert_true(umem_thread_failures() == failures + 1);
  expect_failure(pool, umemValueError, "not a live block");
  assert_true(stats_of(pool).blocks == blocks);
}

/* splitmix64: S. Vigna, public domain. */
static inline uint64_t random64(uint64_t *state) {
  uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

static inline size_t below(uint64_t *state, size_t n) { return (size_t)(random64(state) % n); }

/* 1 ... 2^bits, small ones as likely as large ones. */
static inline size_t random_size(uint64_t *state, unsigned bits) {
  return 1 + below(state, (size_t)1 << below(state, bits + 1));
}

/* How many operations a random test makes. */
static inline uint64_t operations(void) {
  char const *text = getenv("UMEM_TEST_OPERATIONS");
  return text ? strtoull(text, NULL, 10) : 10000000;
}

#endif
