/* range_help.h - what the tests of the range allocator share: memory that fails, and random
 * numbers.
 *
 * Programs are linked with -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc. */
#ifndef UMEM_TEST_RANGE_HELP_H
#define UMEM_TEST_RANGE_HELP_H

#include "base/range.h"
#include "cases.h"
#include "failing_memory.h"

#include <stdlib.h>

/* ---- memory that fails ---- */

static bool failing;           /* whether memory fails once the next passes are used up */
static unsigned passes, fails; /* allocations that still succeed; those that have failed */

static bool fail_now(void) {
  if (!failing || passes-- > 0) return false;
  passes = 0;
  ++fails;
  return true;
}

static inline void fail_after(unsigned count) {
  failing = true;
  passes = count;
}

static inline void fail_no_more(void) { failing = false; }

/* ---- random numbers (splitmix64: S. Vigna, public domain) ---- */

static uint64_t random_state;

static inline uint64_t random64(void) {
  uint64_t z = random_state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

static inline unsigned below(uint64_t n) { return (unsigned)(random64() % n); }

/* 1 ... 2^bits, small ones as likely as large ones. */
static inline uint64_t random_size(unsigned bits) {
  unsigned bit = below(bits + 1);
  return 1 + random64() % (UINT64_C(1) << bit);
}

#endif
