/* failing_memory.h - memory of the library that fails when the test says so.
 *
 * The test defines fail_now. Its program is linked with
 * --wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc. */
#ifndef UMEM_TEST_FAILING_MEMORY_H
#define UMEM_TEST_FAILING_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* Whether this allocation fails. */
static bool fail_now(void);

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);

void *__wrap_malloc(size_t size) { return fail_now() ? NULL : __real_malloc(size); }
void *__wrap_calloc(size_t count, size_t size) {
  return fail_now() ? NULL : __real_calloc(count, size);
}
void *__wrap_realloc(void *old, size_t size) {
  return fail_now() ? NULL : __real_realloc(old, size);
}
void *__wrap_aligned_alloc(size_t alignment, size_t size) {
  return fail_now() ? NULL : __real_aligned_alloc(alignment, size);
}

#endif
