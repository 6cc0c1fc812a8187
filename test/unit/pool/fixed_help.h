/* fixed_help.h - what the tests of blocks of one size share. */
#ifndef UMEM_TEST_FIXED_HELP_H
#define UMEM_TEST_FIXED_HELP_H

#include "unit/adaptors/adaptor_help.h"
#include "settings.h"

static inline umemFixedStats stats_of(umemFixed *ctx) {
  umemFixedStats stats = UMEM_FIXED_STATS_INIT;
  assert_ok(umemFixed_stats(ctx, &stats));
  return stats;
}

/* splitmix64: S. Vigna, public domain. */
static inline uint64_t random64(uint64_t *state) {
  uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

static inline size_t below(uint64_t *state, size_t n) { return (size_t)(random64(state) % n); }

#endif
