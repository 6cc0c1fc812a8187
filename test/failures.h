/* failures.h - that calls succeed, or fail as they should. */
#pragma once

#include "cases.h"

/* The last call failed on ctx, or on none for NULL, with this type and a message that contains
 * text, and the thread has the same failure; forgets it. */
static inline void expect_failure(void *ctx, umemStatusType type, char const *text) {
  umemStatusType found = ctx ? umem_get_status(ctx) : umem_thread_status();
  char const *message = ctx ? umem_get_message(ctx) : umem_thread_message();
  if (found != type || !strstr(message, text))
    fail_msg("expected %s with \"%s\", but got %s \"%s\"", umem_get_status_name(type), text,
             umem_get_status_name(found), message);
  assert_int_equal(umem_thread_status(), type);
  assert_non_null(strstr(message, umem_thread_message()));
  if (ctx) umem_clear_status(ctx);
  umem_thread_clear();
}

/* Likewise for a failure of upstream, which is ctx's as well. */
static inline void expect_both(void *ctx, void *upstream, umemStatusType type, char const *text) {
  assert_int_equal(umem_get_status(upstream), type);
  umem_clear_status(upstream);
  expect_failure(ctx, type, text);
}

/* Likewise for a call that has returned status. */
static inline void expect_status(void *ctx, umemStatusType status, umemStatusType type,
                                 char const *text) {
  expect_failure(ctx, type, text);
  assert_int_equal(status, type);
}

/* Likewise for a call that has returned adr. */
static inline void expect_no_block(void *ctx, uintptr_t adr, umemStatusType type,
                                   char const *text) {
  expect_failure(ctx, type, text);
  assert_true(adr == umem_null(ctx));
}

/* Begins the function of a program that umemRetry calls. */
#define RETRY_CALLBACK(name)                                                                       \
  static bool name(void *user UNUSED, void *ctx UNUSED, size_t nbytes UNUSED,                      \
                   size_t alignment UNUSED, unsigned attempt UNUSED)
