/* failing_memory.h - memory of the library that fails when the test says so.
 *
 * The test defines fail_now. Its program is linked with
 * --wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "wrap.h"

/* Whether this allocation fails. */
static bool fail_now(void);

WRAP(fail_now(), NULL, void *, malloc, (size_t size), (size))
WRAP(fail_now(), NULL, void *, calloc, (size_t count, size_t size), (count, size))
WRAP(fail_now(), NULL, void *, realloc, (void *old, size_t size), (old, size))
WRAP(fail_now(), NULL, void *, aligned_alloc, (size_t alignment, size_t size), (alignment, size))
