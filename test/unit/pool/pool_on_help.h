/* pool_on_help.h - a pool with three views, on a device that records the order of work. */
#pragma once

#include "pool_help.h"

#include "fake/clocks.h"

typedef struct Shared {
  Clocks *clocks;
  ClockQueue base;     /* what the pool stands on: queue 0, or not ordered */
  ClockQueue queue[5]; /* 1 to 5 */
  umemPool pool;
  umemPoolOn a, b, c; /* on the first three */
} Shared;

static Shared s;
static bool is_ordered; /* of TEST_OF_BOTH */

static inline void open_shared(bool ordered, size_t maximum) {
  s.clocks = clocks_create();
  assert_non_null(s.clocks);
  assert_ok(clock_queue_ctor(&s.base, s.clocks, ordered ? 0 : -1));
  for (int i = 0; i < 5; i++) assert_ok(clock_queue_ctor(&s.queue[i], s.clocks, i + 1));
  open_pool(&s.pool, &s.base, 0, 0, maximum);
  assert_ok(umemPoolOn_ctor(&s.a, &s.pool, &s.queue[0]));
  assert_ok(umemPoolOn_ctor(&s.b, &s.pool, &s.queue[1]));
  assert_ok(umemPoolOn_ctor(&s.c, &s.pool, &s.queue[2]));
}

/* All that is not destructed yet ends; no race was found, and nothing is left. */
static inline void close_shared(void) {
  DESTRUCT(&s.a, &s.b, &s.c, &s.pool);
  for (int i = 0; i < 5; i++) umem_dtor(&s.queue[i]);
  umem_dtor(&s.base);
  if (clocks_race(s.clocks)) fail_msg("%s", clocks_race(s.clocks));
  assert_int_equal(clocks_allocated(s.clocks), 0);
  clocks_destroy(s.clocks);
  s.clocks = NULL;
}

static inline void begin_ordered(void **state) {
  is_ordered = true;
  have_host(state);
}
static inline void begin_unordered(void **state) {
  is_ordered = false;
  have_host(state);
}

static inline void close_views(void **state) {
  if (s.clocks) close_shared();
  close_all(state);
}

/* The test opens s, and need not close it. */
#define TEST_OF_VIEWS(name) TEST_CASE_WITH(name, have_host, close_views)

/* Once over an upstream that is ordered, and once over one that is not, as is_ordered says. */
#define TEST_OF_BOTH(name)                                                                         \
  static void name(void **state);                                                                  \
  TEST_CASE_AGAIN(name, unordered, begin_unordered, close_views, NULL)                             \
  TEST_CASE_WITH(name, begin_ordered, close_views)

static inline void *queue_under(void *view) {
  umemVirtual *ctx = view;
  return ctx->vptr->upstream(ctx);
}

/* A new block, which the queue of the view has work on. */
static inline uintptr_t new_used(umemPoolOn *view, size_t nbytes) {
  uintptr_t adr = umem_alloc(view, nbytes);
  if (!adr) fail_msg("%s", umem_thread_message());
  clock_use(queue_under(view), adr, nbytes);
  return adr;
}

/* The block of one view is used and freed by another, which waits for it. */
static inline void free_elsewhere(umemPoolOn *from, umemPoolOn *to, uintptr_t adr, size_t nbytes) {
  assert_ok(umem_wait(queue_under(to), queue_under(from)));
  clock_use(queue_under(to), adr, nbytes);
  umem_free(to, adr);
  assert_true(umem_is_ok(to));
}

/* What the thread keeps of the view goes to spans, but not to the pool. */
static inline void empty_caches(umemPoolOn *view) { assert_ok(umem_trim(view, SIZE_MAX)); }
