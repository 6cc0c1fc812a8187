/* range_help.h - what the tests of the range allocator share: memory that fails, and random
 * numbers.
 *
 * Programs are linked with -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc. */
#pragma once

#include "base/range.h"
#include "cases.h"
#include "failing_memory.h"
#include "random.h"

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

/* ---- random numbers ---- */

static uint64_t random_state;

static inline uint64_t draw(void) { return random64(&random_state); }
static inline unsigned draw_below(uint64_t n) { return (unsigned)(draw() % n); }
