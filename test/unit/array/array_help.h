/* array_help.h - what the tests of umem/array.h share. */
#ifndef UMEM_TEST_ARRAY_HELP_H
#define UMEM_TEST_ARRAY_HELP_H

#include "cases.h"

#include <stdlib.h>
#include <string.h>

#include <umem.h>

#define assert_ok(call) assert_int_equal((call), umemOK)

#define SHAPE(...)                                                                                 \
  (int)(sizeof(int64_t[]){__VA_ARGS__} / sizeof(int64_t)), (int64_t[]) { __VA_ARGS__ }

/* That the last failure of the thread is this one, and is what the call has stored in *status;
 * forgets both. */
static inline void expect_failure_at(umemStatusType type, char const *words, umemStatusType *status,
                                     int line) {
  if (umem_thread_status() != type || *status != type || !strstr(umem_thread_message(), words))
    fail_msg("line %d: %s, \"%s\"; expected %s with \"%s\"", line, umem_get_status_name(*status),
             umem_thread_message(), umem_get_status_name(type), words);
  umem_thread_clear();
  *status = umemOK;
}
#define expect_failure(type, words) expect_failure_at((type), (words), &status, __LINE__)

#endif
