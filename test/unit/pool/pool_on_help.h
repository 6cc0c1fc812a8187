/* pool_on_help.h - a pool with three views, on a device that records the order of work. */
#ifndef UMEM_TEST_POOL_ON_HELP_H
#define UMEM_TEST_POOL_ON_HELP_H

#include "pool_help.h"

#include "fake/clocks.h"

typedef struct Shared {
  Clocks *clocks;
  ClockQueue base;     /* what the pool stands on: queue 0, or not ordered */
  ClockQueue queue[5]; /* 1 to 5 */
  umemPool pool;
  umemPoolOn a, b, c; /* on the first three */
} Shared;

static inline void open_shared(Shared *self, bool ordered, size_t maximum) {
  self->clocks = clocks_create();
  assert_non_null(self->clocks);
  assert_ok(clock_queue_ctor(&self->base, self->clocks, ordered ? 0 : -1));
  for (int i = 0; i < 5; i++) assert_ok(clock_queue_ctor(&self->queue[i], self->clocks, i + 1));
  open_pool(&self->pool, &self->base, 0, 0, maximum);
  assert_ok(umemPoolOn_ctor(&self->a, &self->pool, &self->queue[0]));
  assert_ok(umemPoolOn_ctor(&self->b, &self->pool, &self->queue[1]));
  assert_ok(umemPoolOn_ctor(&self->c, &self->pool, &self->queue[2]));
}

/* All that is not destructed yet ends; no race was found, and nothing is left. */
static inline void close_shared(Shared *self) {
  umem_dtor(&self->a);
  umem_dtor(&self->b);
  umem_dtor(&self->c);
  umem_dtor(&self->pool);
  for (int i = 0; i < 5; i++) umem_dtor(&self->queue[i]);
  umem_dtor(&self->base);
  if (clocks_race(self->clocks)) fail_msg("%s", clocks_race(self->clocks));
  assert_int_equal(clocks_allocated(self->clocks), 0);
  clocks_destroy(self->clocks);
}

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

#endif
