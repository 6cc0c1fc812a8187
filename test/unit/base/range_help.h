/* range_help.h - what the tests of the range allocator share: memory that fails, and random
 * numbers.
 *
 * Programs are linked with -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc. */
#pragma once

#include "base/range.h"
#include "cases.h"
#include "failing_memory.h"
#include "random.h"

#include <limits.h>

static uint64_t random_state;

static inline uint64_t draw(void) { return random64(&random_state); }
static inline unsigned draw_below(uint64_t n) { return (unsigned)(draw() % n); }
