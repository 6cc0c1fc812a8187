/* returns_null.h - requests that cannot be met return NULL under sanitizers, too, as they do
 * without them. Included by one file of a program. */
#ifndef UMEM_TEST_RETURNS_NULL_H
#define UMEM_TEST_RETURNS_NULL_H

char const *__asan_default_options(void);
char const *__tsan_default_options(void);
char const *__asan_default_options(void) { return "allocator_may_return_null=1"; }
char const *__tsan_default_options(void) { return "allocator_may_return_null=1"; }

#endif
