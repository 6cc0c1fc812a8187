/* adaptor_help.h - what the tests of adaptors share: upstreams, and failures. */
#ifndef UMEM_TEST_ADAPTOR_HELP_H
#define UMEM_TEST_ADAPTOR_HELP_H

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <umem.h>

#include "fake/fake.h"
#include "cases.h"

/* RAM; a device that refuses what is no live block, with pointers and with offsets for
 * addresses. */
static umemHost host;
static Fake fake, offsets;

static inline int set_up(void **state) {
  (void)state;
  umem_thread_clear();
  return umemHost_ctor(&host) || fake_ctor(&fake) || fake_offset_ctor(&offsets);
}

static inline int tear_down(void **state) {
  (void)state;
  umem_dtor(&host);
  umem_dtor(&fake);
  umem_dtor(&offsets);
  return 0;
}

#define TEST(name) TEST_CASE_WITH(name, set_up, tear_down)

#define assert_ok(call) assert_int_equal((call), umemOK)

/* The last call failed on ctx with this type and a message that contains text; forgets it. */
static inline void expect_failure(void *ctx, umemStatusType type, char const *text) {
  char const *message = umem_get_message(ctx);
  if (umem_get_status(ctx) != type || !strstr(message, text))
    fail_msg("expected %s with \"%s\", but got %s \"%s\"", umem_get_status_name(type), text,
             umem_get_status_name(umem_get_status(ctx)), message);
  assert_int_equal(umem_thread_status(), type);
  umem_clear_status(ctx);
  umem_thread_clear();
}

/* Likewise for a failure of upstream, which is ctx's as well. */
static inline void expect_both(void *ctx, void *upstream, umemStatusType type, char const *text) {
  assert_int_equal(umem_get_status(upstream), type);
  umem_clear_status(upstream);
  expect_failure(ctx, type, text);
}

/* Ends a context on which nothing failed, or was cleared. */
static inline void end(void *ctx) {
  if (!umem_is_ok(ctx)) fail_msg("%s", umem_get_message(ctx));
  umem_dtor(ctx);
  if (!umem_is_ok(ctx)) fail_msg("%s", umem_get_message(ctx));
}

static inline size_t blocks_in(Fake *ctx) { return fake_store_blocks(ctx->store); }

/* ---- threads ---- */

enum { worker_count = 4 };

/* Runs work in several threads at once, each with its number. */
static inline void in_threads(void *(*work)(void *number)) {
  pthread_t workers[worker_count];
  for (uintptr_t i = 0; i < worker_count; i++)
    assert_int_equal(pthread_create(&workers[i], NULL, work, (void *)i), 0);
  for (int i = 0; i < worker_count; i++) assert_int_equal(pthread_join(workers[i], NULL), 0);
}

#endif
