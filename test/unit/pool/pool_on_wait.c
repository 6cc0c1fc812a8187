/* pool_on_wait.c - views of a pool and waiting: queues that are late, that cannot wait, and
 * that use the pool while they begin to wait. */
#include "pool_on_help.h"

#include "fake/fake.h"

/* ---- on queues that do work, as late as they may ---- */

/* The byte in the middle of the block when all is done, the last queue first. */
static int middle_byte(FakeAsync *last, FakeAsync *first, uintptr_t adr, size_t nbytes) {
  assert_ok(umem_synchronize(last));
  assert_ok(umem_synchronize(first));
  return *fake_store_at(last->super.store, adr + nbytes / 2, 1);
}

TEST(late_work_comes_first) {
  size_t const sizes[] = {4096, mebi, 8 * mebi};
  FakeAsync base, a, b;
  assert_ok(fake_async_ctor(&base));
  assert_ok(fake_async_ctor_on(&a, &base));
  assert_ok(fake_async_ctor_on(&b, &base));
  for (size_t i = 0; i < 3; i++) {
    umemPoolOn on_a, on_b;
    open_pool(&pool, &base, 0, 0, sizes[i] < mebi ? 64 * kibi : sizes[i]);
    assert_ok(umemPoolOn_ctor(&on_a, &pool, &a));
    assert_ok(umemPoolOn_ctor(&on_b, &pool, &b));
    uintptr_t adr = umem_alloc(&on_a, sizes[i]), got = 0;
    assert_true(adr);
    assert_ok(umem_set(&a, adr, 1, sizes[i])); /* what happens to those who do not wait */
    assert_ok(umem_set(&b, adr, 2, sizes[i]));
    assert_int_equal(middle_byte(&b, &a, adr, sizes[i]), 1);
    assert_ok(umem_set(&on_a, adr, 3, sizes[i]));
    umem_free(&on_a, adr);
    while (got != adr) {
      got = umem_alloc(&on_b, sizes[i]);
      assert_true(got);
      assert_ok(umem_set(&on_b, got, 4, sizes[i]));
    }
    assert_int_equal(middle_byte(&b, &a, adr, sizes[i]), 4);
    DESTRUCT(&on_a, &on_b, &pool);
  }
  DESTRUCT(&b, &a, &base);
  assert_int_equal(umem_thread_status(), umemOK);
}

/* ---- waits that fail ---- */

TEST_OF_VIEWS(where_waiting_fails_others_are_tried) {
  open_shared(false, 0);
  umem_free(&s.a, new_used(&s.a, mebi));
  clocks_fail_waits(s.clocks, 1);
  uintptr_t adr = new_used(&s.b, 1000); /* of a chunk of its own */
  assert_true(umem_is_ok(&s.b) && umem_thread_status() == umemOK);
  assert_int_equal(stats_of(&s.pool).chunks, 2);
  unsigned long waits = clocks_waits(s.clocks);
  umem_free(&s.a, new_used(&s.a, mebi)); /* what could not pass is a's as before */
  assert_int_equal(clocks_waits(s.clocks), waits);
  umem_free(&s.b, adr);
}

TEST_OF_VIEWS(a_failure_of_waiting_is_reported) {
  open_shared(true, mebi);
  clocks_fail_waits(s.clocks, 9);
  expect_no_block(&s.b, umem_alloc(&s.b, 1000), umemRuntimeError, "umem_alloc: waiting has failed");
  assert_int_equal(clocks_allocated(s.clocks), 0);
  clocks_fail_waits(s.clocks, 0);
  umem_free(&s.b, new_used(&s.b, 1000));
  clocks_fail_waits(s.clocks, 1);
  expect_status(&s.b, umem_trim(&s.b, 0), umemRuntimeError, "umem_trim: waiting has failed");
  clocks_fail_waits(s.clocks, 1);
  assert_int_equal(umem_trim(&s.pool, 0), umemRuntimeError);
  umem_thread_clear();
  assert_ok(umem_trim(&s.pool, 0));
  assert_int_equal(stats_of(&s.pool).reserved, 0);
}

/* Nobody believes that a mixed span was waited for when it was not. */
TEST_OF_VIEWS(a_mixed_span_stays_what_it_is) {
  for (unsigned failing = 1; failing < 4; failing++) {
    enum { size = 4096, count = 16 };
    uintptr_t adr[count];
    open_shared(true, 64 * kibi);
    for (int i = 0; i < count; i++) adr[i] = new_used(&s.a, size);
    umem_free(&s.a, adr[0]);
    empty_caches(&s.a);
    free_elsewhere(&s.a, &s.b, adr[1], size);
    empty_caches(&s.b);
    clocks_fail_waits(s.clocks, failing);
    uintptr_t one = umem_alloc(&s.c, size);
    clocks_fail_waits(s.clocks, 0);
    FORGET(&s.c);
    if (one) clock_use(&s.queue[2], one, size);
    uintptr_t other = new_used(&s.c, size);
    assert_true(one || umem_alloc(&s.c, size) != 0);
    assert_true(other != 0);
    close_shared();
  }
}

/* ---- a queue that uses the pool while it begins to wait ---- */

/* An adaptor of a queue. */
typedef struct Busy {
  umemVirtual super;
  ClockQueue *queue;
  uintptr_t freed; /* where what passes begins */
  unsigned calls;
} Busy;

static void busy_wait(umemVirtual *ctx, umemVirtual *other) {
  Busy *self = (Busy *)ctx;
  self->calls++;
  umem_free(&s.pool, umem_alloc(&s.pool, 100000));
  umem_free(&s.c, umem_alloc(&s.c, 3000));
  assert_int_equal(stats_of(&s.pool).blocks, 0);
  umemAttempt attempt;
  umemAttempt_begin(&attempt);
  umem_free(&s.pool, self->freed); /* a second time */
  umemAttempt_end(&attempt);
  assert_int_equal(attempt.type, umemValueError);
  umem_wait(self->queue, other);
}

static umemVirtual *busy_upstream(umemVirtual *ctx) { return &((Busy *)ctx)->queue->super; }

TEST_OF_VIEWS(waiting_may_use_the_pool) {
  static struct umemVtbl const vtbl = {.wait = busy_wait, .upstream = busy_upstream};
  Busy busy = {.queue = &s.queue[3]};
  open_shared(true, 8 * mebi);
  umemVirtual_ctor(&busy.super, NULL);
  busy.super.vptr = &vtbl;
  busy.super.capabilities = s.queue[3].super.capabilities;
  CONTEXT(umemPoolOn, view, &s.pool, &busy);
  busy.freed = new_used(&s.a, 6 * mebi);
  umem_free(&s.a, busy.freed);
  uintptr_t adr = umem_alloc(&view, 5000);
  assert_true(adr && busy.calls == 1);
  clock_use(&s.queue[3], adr, 5000);
  umem_free(&view, adr);
}
