/* array_help.h - what the tests of arrays share: RAM, a status, and doubles for GPUs. */
#pragma once

#include "fake/doubles.h"
#include "workers.h"

static umemHost host;
static umemStatusType status;

static inline void set_up(void **state UNUSED) {
  doubles_use();
  status = umemOK;
  assert_ok(umemHost_ctor(&host));
}

/* No failure may be left. */
static inline void tear_down(void **state UNUSED) {
  if (!umem_is_ok(&host)) fail_msg("%s", umem_get_message(&host));
  umem_dtor(&host);
  char const *complaint = doubles_complaint();
  if (complaint) fail_msg("%s", complaint);
  assert_int_equal(status, umemOK);
  assert_ok(umem_thread_status());
}

#define TEST(name) TEST_CASE_WITH(name, set_up, tear_down)

#define SHAPE(...)                                                                                 \
  (int)(sizeof(int64_t[]){__VA_ARGS__} / sizeof(int64_t)), (int64_t[]) { __VA_ARGS__ }

/* Releases these arrays. */
#define RELEASE(...)                                                                               \
  release_all((umemArray *[]){__VA_ARGS__}, sizeof(umemArray *[]){__VA_ARGS__} / sizeof(void *))
static inline void release_all(umemArray *const *arrays, size_t count) {
  for (size_t i = 0; i < count; i++) umemArray_release(arrays[i]);
}

static inline bool can(void const *ctx, unsigned capabilities) {
  return (((umemVirtual const *)ctx)->capabilities & capabilities) == capabilities;
}

/* ---- failures ---- */

static inline void forget_failure(void) {
  FORGET(&host);
  status = umemOK;
}

/* That the last failure of the thread is this one, and is what the call has stored in status;
 * forgets it. */
static inline void expect_failure_at(umemStatusType type, char const *words, int line) {
  if (umem_thread_status() != type || status != type || !strstr(umem_thread_message(), words))
    fail_msg("line %d: %s, \"%s\"; expected %s with \"%s\"", line, umem_get_status_name(status),
             umem_thread_message(), umem_get_status_name(type), words);
  forget_failure();
}
#define expect_failure(type, words) expect_failure_at((type), (words), __LINE__)

/* That this call fails so; one that returns something returns NULL or false. */
#define FAILS(call, type, words)                                                                   \
  do {                                                                                             \
    call;                                                                                          \
    expect_failure(type, words);                                                                   \
  } while (0)
#define REFUSES(call, type, words) FAILS(assert_true(!(call)), type, words)
