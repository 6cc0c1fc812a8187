/* fixed_help.h - what the tests of blocks of one size share. */
#ifndef UMEM_TEST_FIXED_HELP_H
#define UMEM_TEST_FIXED_HELP_H

#include "unit/adaptors/adaptor_help.h"
#include "random.h"
#include "settings.h"

static inline umemFixedStats stats_of(umemFixed *ctx) {
  umemFixedStats stats = UMEM_FIXED_STATS_INIT;
  assert_ok(umemFixed_stats(ctx, &stats));
  return stats;
}

#endif
