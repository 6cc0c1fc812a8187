/* nameless.h - file systems without nameless files (O_TMPFILE).
 *
 * A test that includes this is linked with --wrap=openat,--wrap=openat64. */
#pragma once

#include "cases.h"
#include "wrap.h"

static bool lacks_nameless;

/* The mode is given at every call of the library. */
#define OPENS_AT(name)                                                                             \
  WRAPPED(int, name, (int at_folder, char const *file, int flags, ...)) {                          \
    va_list rest;                                                                                  \
    va_start(rest, flags);                                                                         \
    mode_t mode = va_arg(rest, mode_t);                                                            \
    va_end(rest);                                                                                  \
    if (!lacks_nameless || (flags & O_TMPFILE) != O_TMPFILE)                                       \
      return __real_##name(at_folder, file, flags, mode);                                          \
    errno = EOPNOTSUPP;                                                                            \
    return -1;                                                                                     \
  }
OPENS_AT(openat)
#ifndef openat64 /* of musl a macro for openat */
OPENS_AT(openat64)
#endif
