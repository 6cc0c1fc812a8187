/* used_bytes.h - how much memory malloc has given out. */
#pragma once

#include <malloc.h>
#include <stddef.h>

/* Bytes; 0 where a sanitizer has replaced malloc, which finds leaks itself, and with musl, which
 * does not count. */
static inline size_t used_bytes(void) {
#ifndef __GLIBC__
  return 0;
#elif __GLIBC_PREREQ(2, 33)
  return mallinfo2().uordblks;
#else
  return (unsigned)mallinfo().uordblks;
#endif
}
