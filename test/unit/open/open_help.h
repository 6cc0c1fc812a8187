/* open_help.h - what the tests of contexts by name share: CUDA's double, a file, counted
 * failures. */
#pragma once

#include "backends.h"
#include "cuda_double.h"
#include "fake/wrapped.h"
#include "fake/fake.h"
#include "failures.h"
#include "workers.h"

static char scratch[BACKEND_PATH_SIZE]; /* a file that may be there */
static int failures;

static inline void count_failures(void *ctx, umemStatusType type, char const *message, void *data) {
  (void)ctx, (void)type, (void)message, (void)data;
  failures++;
}

static inline void set_up(void **state UNUSED) {
  begin_double();
  assert_true(backend_temp_file(scratch));
}

static inline void tear_down(void **state UNUSED) {
  remove(scratch);
  end_double();
}

#define TEST(name) TEST_CASE_WITH(name, set_up, tear_down)

/* Allocates, writes and frees. */
static inline void use(void *ctx) {
  uintptr_t adr = umem_alloc(ctx, 1000);
  if (adr == umem_null(ctx)) fail_msg("%s", umem_thread_message());
  assert_ok(umem_set(ctx, adr, 7, 1000));
  umem_free(ctx, adr);
  assert_true(umem_is_ok(ctx));
}

/* ---- names ---- */

/* Opens the context of this name; NULL after a failure. */
__attribute__((format(printf, 1, 2))) static inline void *open_named(char const *format, ...) {
  char name[4 * BACKEND_PATH_SIZE];
  va_list rest;
  va_start(rest, format);
  vsnprintf(name, sizeof name, format, rest);
  va_end(rest);
  return umem_open(name);
}

/* Of what was opened: fails if that is nothing. */
static inline void use_and_close(void *ctx) {
  if (!ctx) fail_msg("%s", umem_thread_message());
  use(ctx);
  assert_ok(umem_close(ctx));
}

/* Nothing was opened, for this reason; forgets it. */
static inline void expect_none(void *ctx, umemStatusType type, char const *words) {
  assert_null(ctx);
  if (umem_thread_status() != type || !strstr(umem_thread_message(), words))
    fail_msg("%s \"%s\" instead of \"%s\"", umem_get_status_name(umem_thread_status()),
             umem_thread_message(), words);
  umem_thread_clear();
}

/* ---- schemes ---- */

/* The function that constructs the context of a scheme. */
#define CONSTRUCTOR(function)                                                                      \
  static umemStatusType function(void *ctx UNUSED, void *upstream UNUSED,                          \
                                 umemOptionValue const *place UNUSED,                              \
                                 umemOptionValue const *options UNUSED, void *user UNUSED)

/* What each scheme has. */
#define SCHEME_OF(text, Context, constructor)                                                      \
  .size = sizeof(umemScheme), .name = (text), .context_size = sizeof(Context),                     \
  .construct = (constructor)
