/* unwatched.h - functions that sanitizers leave alone. */
#pragma once

/* For functions that write or compare each byte of megabytes that only the calling thread has,
 * between bounds that the test knows: a sanitizer that watches each access would take minutes. */
#define UNWATCHED                                                                                  \
  __attribute__((no_sanitize("thread"), no_sanitize("address"), no_sanitize("undefined")))
