/* fault.c - umem/fault.h. */
#include "adaptor_help.h"

static umemFault fault; /* of the test */

/* A plan in which the nth of these calls fails. */
static umemFaultPlan plan_of(unsigned calls, umemStatusType status, uint64_t nth) {
  umemFaultPlan plan = UMEM_FAULT_PLAN_INIT;
  plan.calls = calls;
  plan.status = status;
  plan.nth = nth;
  return plan;
}

TEST(nothing_fails_without_a_plan) {
  umemFaultPlan plan = UMEM_FAULT_PLAN_INIT;
  for (int i = 0; i < 2; i++) {
    assert_ok(umemFault_ctor(&fault, &fake, i ? &plan : NULL));
    for (int k = 0; k < 100; k++) umem_free(&fault, umem_alloc(&fault, 10));
    assert_int_equal(umemFault_count(&fault, umemFaultAll), 200);
    assert_int_equal(umemFault_failures(&fault), 0);
    end(&fault);
  }
}

TEST(the_nth_call_fails) {
  umemFaultPlan plan = plan_of(umemFaultAllocations, umemMemoryError, 3);
  assert_ok(umemFault_ctor(&fault, &fake, &plan));
  uintptr_t one = umem_alloc(&fault, 10), other = umem_aligned_alloc(&fault, 64, 10);
  assert_ok(umem_set(&fault, one, 1, 10)); /* counts for nothing */
  assert_true(umem_calloc(&fault, 10, 1) == 0);
  expect_failure(&fault, umemMemoryError, "umem_calloc: a fault on purpose, at call 3");
  assert_true(umem_is_ok(&fake));
  assert_int_equal(blocks_in(&fake), 2);
  umem_free(&fault, umem_calloc(&fault, 10, 1));
  umem_free(&fault, one);
  umem_aligned_free(&fault, other);
  assert_int_equal(umemFault_failures(&fault), 1);
  assert_int_equal(umemFault_count(&fault, umemFaultCalloc), 2);
  assert_int_equal(umemFault_count(&fault, umemFaultFree), 3);
  assert_int_equal(umemFault_count(&fault, umemFaultAllocations | umemFaultSet), 5);
  end(&fault);
}

TEST(several_in_a_row_fail) {
  umemFaultPlan plan = plan_of(umemFaultAlloc, umemIOError, 2);
  plan.times = 3;
  assert_ok(umemFault_ctor(&fault, &host, &plan));
  for (int i = 1; i <= 6; i++) {
    uintptr_t adr = umem_alloc(&fault, 10);
    assert_int_equal(adr == 0, i >= 2 && i <= 4);
    umem_free(&fault, adr);
  }
  assert_int_equal(umemFault_failures(&fault), 3);
  expect_failure(&fault, umemIOError, "at call 2");

  plan.times = UINT64_MAX;
  assert_ok(umemFault_set_plan(&fault, &plan));
  assert_int_equal(umemFault_failures(&fault), 0);
  umem_free(&fault, umem_alloc(&fault, 10));
  for (int i = 0; i < 50; i++) assert_true(umem_alloc(&fault, 10) == 0);
  assert_non_null(strstr(umem_get_message(&fault), "at call 2"));
  FORGET(&fault);
  assert_ok(umemFault_set_plan(&fault, NULL));
  umem_free(&fault, umem_alloc(&fault, 10));
  end(&fault);
}

/* ---- every kind of call ---- */

typedef struct Side {
  umemFault fault;
  uintptr_t adr; /* a block of 64 bytes */
  FakeAsync *ordered;
} Side;

static void do_alloc(Side *s) { umem_free(&s->fault, umem_alloc(&s->fault, 10)); }
static void do_calloc(Side *s) { umem_free(&s->fault, umem_calloc(&s->fault, 10, 1)); }
static void do_aligned(Side *s) {
  umem_aligned_free(&s->fault, umem_aligned_alloc(&s->fault, 64, 10));
}
static void do_realloc(Side *s) {
  uintptr_t moved = umem_realloc(&s->fault, s->adr, 64, 64);
  if (moved != umem_null(&s->fault)) s->adr = moved;
}
static void do_free(Side *s) { umem_free(&s->fault, s->adr); /* the block lives on */ }
static void do_set(Side *s) { umem_set(&s->fault, s->adr, 7, 64); }
static void do_copy_to(Side *s) {
  static char bytes[64]; /* work is queued */
  umem_copy_to(&s->fault, s->adr, &host, (uintptr_t)bytes, 64);
}
static void do_copy_from(Side *s) {
  static char bytes[64];
  umem_copy_to(&host, (uintptr_t)bytes, &s->fault, s->adr, 64);
}
static void do_copy_within(Side *s) { umem_copy_to(&s->fault, s->adr, &s->fault, s->adr + 32, 32); }
static void do_strided(Side *s) {
  static char bytes[64];
  size_t const extents[] = {4};
  ptrdiff_t const strides[] = {16};
  umemLayout layout = {sizeof layout, 3, 1, extents, strides, strides};
  umem_copy_strided(&host, (uintptr_t)bytes, &s->fault, s->adr, &layout);
}
static void do_synchronize(Side *s) { umem_synchronize(&s->fault); }
static void do_flush(Side *s) { umem_flush(&s->fault); }
static void do_trim(Side *s) { umem_trim(&s->fault, 0); }
static void do_wait(Side *s) {
  SCOPED(umem_dtor) FakeAsync other;
  assert_ok(fake_async_ctor(&other));
  umem_wait(&s->fault, &other);
  umem_synchronize(s->ordered);
}

static struct {
  void (*call)(Side *side);
  unsigned calls;
} const calls[] = {
    {do_alloc, umemFaultAlloc},
    {do_calloc, umemFaultCalloc},
    {do_aligned, umemFaultAligned},
    {do_realloc, umemFaultRealloc},
    {do_free, umemFaultFree},
    {do_set, umemFaultSet},
    {do_copy_to, umemFaultCopyTo},
    {do_copy_from, umemFaultCopyFrom},
    {do_copy_within, umemFaultCopyTo | umemFaultCopyFrom},
    {do_strided, umemFaultCopyFrom},
    {do_synchronize, umemFaultSynchronize},
    {do_flush, umemFaultFlush},
    {do_trim, umemFaultTrim},
    {do_wait, umemFaultWait},
};
enum { call_count = sizeof calls / sizeof *calls };

/* Each call is of its kind, and of no other; where it fails upstream has not heard of it. */
TEST(every_kind_of_call_can_fail) {
  SCOPED(umem_dtor) FakeAsync ordered;
  assert_ok(fake_async_ctor(&ordered));
  Side side = {.ordered = &ordered};
  for (size_t i = 0; i < call_count; i++) {
    assert_ok(umemFault_ctor(&side.fault, &ordered, NULL));
    side.adr = umem_alloc(&side.fault, 64);
    for (int bit = 0; bit < 12; bit++) {
      umemFaultPlan plan = plan_of(1u << bit, umemIOError, 1);
      bool fails = calls[i].calls >> bit & 1;
      bool frees = calls[i].calls == umemFaultFree;
      if (frees && !fails) continue; /* once only */
      if ((1u << bit) == umemFaultFree && !frees && calls[i].calls & umemFaultAllocations) continue;
      assert_ok(umemFault_set_plan(&side.fault, &plan));
      size_t moves = ordered.super.moves, blocks = blocks_in(&ordered.super);
      uint64_t before = umem_thread_failures();
      calls[i].call(&side);
      umem_synchronize(&ordered);
      assert_int_equal(umemFault_failures(&side.fault), fails);
      assert_int_equal(umemFault_count(&side.fault, 1u << bit), fails);
      assert_int_equal(umem_thread_failures() - before, fails);
      assert_true(umem_is_ok(&ordered));
      if (fails) {
        assert_int_equal(ordered.super.moves, moves);
        assert_int_equal(blocks_in(&ordered.super), blocks);
        expect_failure(&side.fault, umemIOError, ": a fault on purpose, at call 1");
      }
    }
    umem_free(&side.fault, side.adr);
    end(&side.fault);
    assert_ok(umem_synchronize(&ordered));
    assert_int_equal(blocks_in(&ordered.super), 0);
  }
}

/* ---- at random ---- */

static size_t run(umemFault *ctx, bool failed[1000]) {
  size_t count = 0;
  for (int i = 0; i < 1000; i++) {
    uintptr_t adr = umem_alloc(ctx, 10);
    failed[i] = adr == 0;
    count += failed[i];
    umem_free(ctx, adr);
  }
  FORGET(ctx);
  return count;
}

TEST(a_random_share_fails) {
  static bool first[1000], second[1000];
  umemFaultPlan plan = UMEM_FAULT_PLAN_INIT;
  plan.share = 0.25;
  plan.seed = 1;
  assert_ok(umemFault_ctor(&fault, &host, &plan));
  size_t count = run(&fault, first);
  assert_true(count > 180 && count < 320);
  assert_int_equal(umemFault_failures(&fault), count);
  assert_ok(umemFault_set_plan(&fault, &plan));
  run(&fault, second);
  assert_memory_equal(first, second, sizeof first);
  plan.seed = 2;
  assert_ok(umemFault_set_plan(&fault, &plan));
  run(&fault, second);
  assert_memory_not_equal(first, second, sizeof first);
  plan.share = 1;
  assert_ok(umemFault_set_plan(&fault, &plan));
  assert_int_equal(run(&fault, second), 1000);
  plan.share = 0;
  assert_ok(umemFault_set_plan(&fault, &plan));
  assert_int_equal(run(&fault, second), 0);
  end(&fault);
}

/* ---- what it is for ---- */

/* A program that pairs and copies between two places, and gives everything back. Whether all went
 * well. */
static bool pair_and_copy(void *src, void *dst) {
  char bytes[300];
  uintptr_t array = umem_calloc(src, 100, 3), grown = umem_null(src), pair;
  bool good = array != umem_null(src);
  if (good && (grown = umem_realloc(src, array, 300, 600)) != umem_null(src)) array = grown;
  good = good && grown != umem_null(src) && umem_set(src, array, 5, 600) == umemOK;
  if (good) {
    pair = umem_connect(src, array, 600, dst, 32);
    good = pair != umem_null(dst);
    if (good) {
      good = umem_set(dst, pair, 9, 300) == umemOK &&
             umem_sync_from(src, array, dst, pair, 600) == umemOK;
      umem_disconnect(src, array, dst, pair, 32);
    }
  }
  good = good && umem_copy_to(src, array, &host, (uintptr_t)bytes, 300) == umemOK;
  umem_free(src, array);
  return good && bytes[0] == 9 && bytes[299] == 9;
}

/* Whatever call fails: the program learns of it, and nothing is left. */
TEST(every_single_fault_is_survived) {
  umemFault src, dst;
  assert_ok(umemFault_ctor(&src, &fake, NULL));
  assert_ok(umemFault_ctor(&dst, &offsets, NULL));
  unsigned const chosen = umemFaultAllocations | umemFaultSet | umemFaultCopies;
  for (int side = 0; side < 2; side++) {
    umemFault *failing = side ? &dst : &src;
    bool fired = true;
    for (uint64_t n = 1; fired; n++) {
      umemFaultPlan plan = plan_of(chosen, umemRuntimeError, n);
      assert_ok(umemFault_set_plan(failing, &plan));
      bool good = pair_and_copy(&src, &dst);
      fired = umemFault_failures(failing) != 0;
      assert_int_equal(good, !fired);
      assert_int_equal(umem_get_status(failing), fired ? umemRuntimeError : umemOK);
      assert_int_equal(blocks_in(&fake), 0);
      assert_int_equal(blocks_in(&offsets), 0);
      FORGET(&src, &dst);
      assert_true(n < 100);
      if (!fired) assert_true(n > 2);
    }
    assert_ok(umemFault_set_plan(failing, NULL));
  }
  end(&src);
  end(&dst);
}

/* ---- plans ---- */

static void refuse(umemFaultPlan plan, char const *words) {
  expect_status(&fault, umemFault_ctor(&fault, &fake, &plan), umemValueError, words);
  assert_int_equal(umemFault_adopt(&fault, &fake, &plan), umemValueError);
  assert_non_null(fake.super.vptr);
  expect_failure(&fault, umemValueError, words);
  assert_ok(umemFault_ctor(&fault, &fake, NULL));
  umem_free(&fault, umem_alloc(&fault, 10));
  expect_status(&fault, umemFault_set_plan(&fault, &plan), umemValueError, words);
  assert_int_equal(umemFault_count(&fault, umemFaultAll), 2); /* as it was */
  end(&fault);
}

TEST(plans_are_checked) {
  umemFaultPlan const good = UMEM_FAULT_PLAN_INIT;
  umemFaultPlan plan = good;
  plan.size = 7;
  refuse(plan, "the size in the umemFaultPlan is 7, too small");
  plan.size = offsetof(umemFaultPlan, status); /* an older one */
  plan.calls = umemFaultFlush;
  plan.status = umemOK;
  umemFault older;
  assert_ok(umemFault_ctor(&older, &fake, &plan));
  end(&older);
  plan = good, plan.calls = 0;
  refuse(plan, "the calls 0x0 are none");
  plan = good, plan.calls = 1 << 12;
  refuse(plan, "the calls 0x1000 are none");
  plan = good, plan.status = umemOK;
  refuse(plan, "umemOK is no failure");
  plan = good, plan.share = 1.5;
  refuse(plan, "a share of 1.5 is not from 0 to 1");
  plan = good, plan.share = -1;
  refuse(plan, "a share of -1");
  plan = good, plan.share = __builtin_nan("");
  refuse(plan, "is not from 0 to 1");
  assert_ok(umemFault_ctor(&fault, &fake, NULL));
  end(&fault);
  assert_int_equal(umemFault_set_plan(&fault, NULL), umemValueError);
  assert_int_equal(umemFault_count(&fault, umemFaultAll), 0);
  assert_int_equal(umemFault_failures(&fault), 0);
  expect_failure(&fault, umemValueError, "not constructed");
}

/* ---- threads ---- */

static umemFault shared;
enum { rounds = 2000 };

static void *churn(void *number) {
  for (int i = 0; i < rounds; i++) umem_free(&shared, umem_alloc(&shared, 10));
  return number;
}

TEST(threads_share_one_count) {
  umemFaultPlan plan = plan_of(umemFaultAlloc, umemMemoryError, 500);
  plan.times = 1000;
  assert_ok(umemFault_ctor(&shared, &host, &plan));
  in_threads(churn);
  assert_int_equal(umemFault_count(&shared, umemFaultAlloc), rounds * worker_count);
  assert_int_equal(umemFault_count(&shared, umemFaultFree), rounds * worker_count - 1000);
  assert_int_equal(umemFault_failures(&shared), 1000);
  umem_clear_status(&shared);
  end(&shared);
}
