/* fixed_help.h - what the tests of blocks of one size share. */
#pragma once

#include "unit/adaptors/adaptor_help.h"
#include "random.h"
#include "settings.h"

static inline umemFixedStats stats_of(umemFixed *ctx) {
  umemFixedStats stats = UMEM_FIXED_STATS_INIT;
  assert_ok(umemFixed_stats(ctx, &stats));
  return stats;
}

/* ---- tests of one of them, which the test constructs and need not end ---- */

static umemFixed fixed;

static inline void open_fixed(void *upstream, size_t block, size_t alignment, size_t initial,
                              size_t growth, size_t maximum) {
  umemFixedOptions options = {sizeof options, alignment, initial, growth, maximum};
  assert_ok(umemFixed_ctor(&fixed, upstream, block, &options));
}

static inline void close_fixed(void **state) {
  if (fixed.super.vptr) end(&fixed);
  if (blocks_in(&fake) || blocks_in(&offsets)) fail_msg("chunks are left");
  tear_down(state);
}

#define FIXED_TEST(name) TEST_CASE_WITH(name, set_up, close_fixed)
