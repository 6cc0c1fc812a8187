/* failing_memory.h - memory of the library that fails when the test says so, in its thread: the
 * library's workers allocate beside it.
 *
 * The program is linked with --wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "wrap.h"

static _Thread_local struct {
  bool fails;             /* now, or after some more */
  unsigned passes, most;  /* allocations that still succeed, and of those after them that fail */
  unsigned calls, failed; /* allocations so far, and those of them that have failed */
  unsigned before;        /* those that had failed when fail_memory was called */
} memory;

static bool fail_now(void) {
  memory.calls++;
  if (!memory.fails) return false;
  if (memory.passes) return memory.passes--, false;
  if (!memory.most) return false;
  memory.most--;
  return ++memory.failed;
}

/* After so many allocations the next ones fail. */
static inline void fail_memory(unsigned passes, unsigned most) {
  memory.fails = true;
  memory.passes = passes;
  memory.most = most;
  memory.before = memory.failed;
}

/* No more from now on. Whether one has failed since. */
static inline bool end_failing(void) {
  memory.fails = false;
  return memory.failed != memory.before;
}

WRAP(fail_now(), NULL, void *, malloc, (size_t size), (size))
WRAP(fail_now(), NULL, void *, calloc, (size_t count, size_t size), (count, size))
WRAP(fail_now(), NULL, void *, realloc, (void *old, size_t size), (old, size))
WRAP(fail_now(), NULL, void *, aligned_alloc, (size_t alignment, size_t size), (alignment, size))
