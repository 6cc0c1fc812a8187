/* returns_null.h - requests that cannot be met return NULL under sanitizers, too, as they do
 * without them. Included by one file of a program. */
#pragma once

char const *__asan_default_options(void);
char const *__tsan_default_options(void);
char const *__asan_default_options(void) { return "allocator_may_return_null=1"; }
char const *__tsan_default_options(void) { return "allocator_may_return_null=1"; }
