/* debug_kept.c - umem/debug.h: freed blocks that wait, upstreams that fail, and the order of
 * queues. */
#include "debug_help.h"

/* ---- how many wait ---- */

TEST(no_more_wait_than_may) {
  enum { most_blocks = 40, most_bytes = 20000 };
  umemDebugOptions options = few(most_blocks, most_bytes);
  Place place;
  FOR_EACH_PLACE(place, &options) {
    size_t highest_blocks = 0, highest_bytes = 0;
    for (size_t i = 0; i < 300; i++) {
      umem_free(&place.debug, umem_alloc(&place.debug, i < 150 ? 1 : 10 * (i - 149)));
      umemDebugFigures figures = figures_of(&place.debug);
      assert_true(figures.kept_blocks > 0 && figures.kept_blocks <= most_blocks);
      assert_true(figures.kept_bytes <= most_bytes);
      if (figures.kept_blocks > highest_blocks) highest_blocks = figures.kept_blocks;
      if (figures.kept_bytes > highest_bytes) highest_bytes = figures.kept_bytes;
      assert_int_equal(figures.live_bytes, 0);
    }
    if (place.upstream->alignment < 512) assert_int_equal(highest_blocks, most_blocks);
    assert_true(highest_bytes > most_bytes * 3 / 4);
    umem_free(&place.debug, umem_alloc(&place.debug, most_bytes)); /* too large: others stay */
    assert_true(figures_of(&place.debug).kept_blocks > 0);
    assert_ok(umem_trim(&place.debug, 10000));
    assert_true(figures_of(&place.debug).kept_bytes <= 10000);
    assert_ok(umem_trim(&place.debug, 0));
    assert_int_equal(figures_of(&place.debug).kept_bytes, 0);
    if (place.row->records) assert_int_equal(place.row->records(place.upstream).blocks, 0);
  }
}

/* The oldest go first, one by one where memory is looked at at once, else an eighth together. */
TEST(the_oldest_go_first) {
  enum { most = 64 };
  umemDebugOptions options = few(most, (size_t)1 << 30);
  Place place;
  FOR_EACH_PLACE(place, &options) {
    uintptr_t adr[most + 2];
    for (size_t i = 0; i < most + 2; i++) adr[i] = umem_alloc(&place.debug, 100);
    for (size_t i = 0; i < most; i++) umem_free(&place.debug, adr[i]);
    poke(&place, adr[0] + 1, 1);
    assert_int_equal(figures_of(&place.debug).kept_blocks, most);
    umem_free(&place.debug, adr[most]); /* is refused: it has found something */
    expect_failure(&place.debug, umemIndexError, "umem_free: a wrong write to byte 1 of the freed");
    size_t left = place.batched ? most - 1 - most / 8 : most - 1;
    assert_int_equal(figures_of(&place.debug).kept_blocks, left);
    assert_int_equal(figures_of(&place.debug).live_blocks, 2);
    FREE(&place.debug, adr[most], adr[most + 1]);
    assert_int_equal(figures_of(&place.debug).kept_blocks, place.batched ? left + 2 : most);
    assert_int_equal(figures_of(&place.debug).faults, 1);
  }
}

EACH_PLACE_WITH(none_waits_when_none_may, few(0, 0)) {
  uintptr_t adr = umem_alloc(debug, 100), other = umem_alloc(debug, 100);
  poke(place, adr + 100, 1);
  umem_free(debug, adr); /* looked at at once, everywhere */
  expect_failure(debug, umemIndexError, "byte 100 of the block of 100 bytes");
  assert_int_equal(figures_of(debug).live_blocks, 2);
  FREE(debug, adr, other);
  assert_int_equal(figures_of(debug).kept_blocks, 0);
  if (place->row->records) assert_int_equal(place->row->records(place->upstream).blocks, 0);
}

/* ---- memory is out ---- */

TEST(what_waits_goes_when_memory_is_out) {
  umemLimit limit;
  umemDebug debug;
  for (int i = 0; i < 2; i++) {
    umemVirtual *below = i ? &host.super : &fake.super;
    assert_ok(umemLimit_ctor(&limit, below, 100000));
    assert_ok(umemDebug_ctor(&debug, &limit, NULL));
    for (int k = 0; k < 500; k++) umem_free(&debug, umem_alloc(&debug, 1000));
    assert_true(umem_is_ok(&debug) && umem_is_ok(&limit) && umem_thread_status() == umemOK);
    uintptr_t adr = umem_calloc(&debug, 1, 60000);
    assert_true(adr != 0);
    adr = umem_realloc(&debug, adr, 60000, 20000);
    assert_true(adr != 0);
    uintptr_t aligned = umem_aligned_alloc(&debug, 1024, 60000);
    assert_true(aligned != 0);
    assert_true(umem_alloc(&debug, 100000) == 0); /* never */
    expect_both(&debug, &limit, umemMemoryError, "umem_alloc: no room for 100");
    umem_aligned_free(&debug, aligned);
    umem_free(&debug, adr);
    unsigned char wrong = 1;
    assert_ok(umem_copy_from(below, adr, &host, (uintptr_t)&wrong, 1));
    assert_true(umem_alloc(&debug, 90000) == 0); /* the call that finds it does nothing else */
    expect_failure(&debug, umemIndexError,
                   "umem_alloc: a wrong write to byte 0 of the freed block");
    assert_true(umem_is_ok(&limit));
    adr = umem_alloc(&debug, 90000);
    assert_true(adr != 0);
    umem_free(&debug, adr);
    end(&debug);
    assert_int_equal(umemLimit_used(&limit), 0);
    end(&limit);
  }
}

/* ---- an upstream that fails ---- */

enum { blocks = 12 };

/* Allocates in every form, resizes, fills; frees until all is free. Whether nothing was refused. */
static bool use(umemDebug *debug) {
  uintptr_t adr[blocks], null = umem_null(debug);
  uint64_t before = umem_thread_failures();
  for (size_t i = 0; i < blocks; i++) {
    adr[i] = i % 3 == 0   ? umem_aligned_alloc(debug, 64, 10 + i)
             : i % 3 == 1 ? umem_calloc(debug, 10 + i, 1)
                          : umem_alloc(debug, 10 + i);
    if (adr[i] == null || i % 3 == 0) continue;
    unsigned char bytes[10];
    if (umem_set(debug, adr[i], (int)i, 10 + i) != umemOK) continue;
    uintptr_t moved = umem_realloc(debug, adr[i], 10 + i, 100 + i);
    adr[i] = moved != null ? moved : adr[i];
    if (umem_copy_to(debug, adr[i], &host, (uintptr_t)bytes, 10) != umemOK ||
        umem_synchronize(debug) != umemOK)
      continue;
    for (size_t k = 0; k < 10; k++) assert_int_equal(bytes[k], i);
  }
  umemDebug_check(debug);
  for (size_t i = 0; i < blocks; i++) {
    size_t live = figures_of(debug).live_blocks;
    uint64_t failures = umem_thread_failures();
    (i % 3 ? umem_free : umem_aligned_free)(debug, adr[i]);
    bool refused = umem_thread_failures() != failures;
    if (adr[i] != null) assert_int_equal(figures_of(debug).live_blocks, live - !refused);
    if (refused) (i % 3 ? umem_free : umem_aligned_free)(debug, adr[i]); /* once more */
  }
  umem_trim(debug, 0);
  return umem_thread_failures() == before;
}

/* Whichever call of the upstream fails, in whatever way: it is reported, blocks are live or free as
 * the calls say, nothing counts as a wrong write, and in the end all is given back. */
TEST(each_call_of_upstream_may_fail) {
  SCOPED(end) FakeAsync ordered;
  assert_ok(fake_async_ctor(&ordered));
  Fake *const below[] = {&fake, &offsets, &ordered.super};
  umemStatusType const types[] = {umemMemoryError, umemRuntimeError};
  umemDebugOptions options = few(4, 4096);
  for (size_t i = 0; i < 6; i++) {
    uint64_t n = 0;
    for (bool failed = true; failed;) {
      umemFault fault;
      umemDebug debug;
      umemFaultPlan plan = UMEM_FAULT_PLAN_INIT;
      plan.calls = umemFaultAll & ~(unsigned)umemFaultTrim;
      plan.nth = ++n;
      plan.status = types[i % 2];
      assert_ok(umemFault_ctor(&fault, below[i / 2], NULL));
      assert_ok(umemDebug_ctor(&debug, &fault, &options));
      assert_ok(umemFault_set_plan(&fault, &plan));
      bool good = use(&debug);
      failed = umemFault_failures(&fault) > 0;
      assert_ok(umemFault_set_plan(&fault, NULL));
      assert_true(good == umem_is_ok(&debug));
      if (!good) assert_int_equal(umem_get_status(&debug), types[i % 2]);
      FORGET(&debug, &fault);
      assert_int_equal(figures_of(&debug).faults, 0);
      assert_int_equal(figures_of(&debug).live_blocks, 0);
      assert_true(use(&debug)); /* all is well again */
      assert_int_equal(figures_of(&debug).kept_blocks, 0);
      end(&debug);
      end(&fault);
      assert_ok(umem_synchronize(below[i / 2]));
      assert_int_equal(blocks_in(below[i / 2]), 0);
      assert_true(n < 2000);
    }
    assert_true(n > 100);
  }
}

/* The bytes are in the new block already: the old one goes unfilled, and is not taken for wrong. */
TEST(a_resize_needs_no_filling_of_the_old_block) {
  umemFault fault;
  umemDebug debug;
  umemFaultPlan plan = UMEM_FAULT_PLAN_INIT;
  plan.calls = umemFaultSet;
  plan.nth = 4; /* after two guards and the inside of the new block */
  assert_ok(umemFault_ctor(&fault, &fake, NULL));
  assert_ok(umemDebug_ctor(&debug, &fault, NULL));
  uintptr_t adr = umem_calloc(&debug, 1, 100);
  assert_ok(umemFault_set_plan(&fault, &plan));
  uintptr_t moved = umem_realloc(&debug, adr, 100, 200);
  assert_int_equal(umemFault_failures(&fault), 1);
  assert_true(moved != 0 && umem_is_ok(&debug));
  unsigned char bytes[100], zeros[100] = {0};
  assert_ok(umem_copy_to(&debug, moved, &host, (uintptr_t)bytes, 100));
  assert_memory_equal(bytes, zeros, 100);
  assert_int_equal(figures_of(&debug).kept_blocks, 1);
  assert_ok(umemDebug_check(&debug));
  umem_free(&debug, moved);
  end(&debug);
  end(&fault);
  assert_int_equal(blocks_in(&fake), 0);
}

/* What fails later than its call. */
TEST(queued_work_may_fail) {
  SCOPED(end) FakeAsync ordered;
  assert_ok(fake_async_ctor(&ordered));
  CLEAN_CONTEXT(umemDebug, debug, &ordered, NULL);
  umem_free(&debug, umem_alloc(&debug, 100));
  assert_ok(umem_synchronize(&debug));
  fake_async_fail_next(&ordered, umemRuntimeError); /* the copy that looks */
  assert_int_equal(umem_trim(&debug, 0), umemRuntimeError);
  expect_both(&debug, &ordered, umemRuntimeError, "umem_trim: queued work has failed");
  assert_int_equal(figures_of(&debug).kept_blocks, 1); /* for longer */
  assert_ok(umem_trim(&debug, 0));
  assert_int_equal(figures_of(&debug).kept_blocks, 0);
}

/* ---- one who looks while another does ---- */

static umemDebug *looked_at;
static umemStatusType in_hook;

static void look_too(void *ctx, umemStatusType type, char const *message, void *data) {
  (void)ctx, (void)type, (void)message, (void)data;
  in_hook = umemDebug_check(looked_at);
}

/* The hook is called in the middle of a look. */
TEST(two_may_look_at_once) {
  size_t const at[] = {0, 2047, 2048, 4000, 4999};
  SCOPED(end) FakeAsync ordered;
  umemDebug debug;
  assert_ok(fake_async_ctor(&ordered));
  for (size_t i = 0; i < 5; i++) {
    assert_ok(umemDebug_ctor(&debug, &ordered, NULL));
    uintptr_t adr = umem_alloc(&debug, 5000), other = umem_alloc(&debug, 10);
    umem_free(&debug, adr);
    looked_at = &debug;
    for (int wrong = 0; wrong < 2; wrong++) {
      if (wrong) assert_ok(umem_set(&ordered, adr + at[i], 1, 1));
      assert_ok(umem_synchronize(&ordered));
      umem_set_failure_hook(look_too, NULL);
      in_hook = umemAssertError;
      fake_async_fail_next(&ordered, umemRuntimeError);
      umemDebug_check(&debug);
      umem_set_failure_hook(NULL, NULL);
      assert_int_equal(in_hook, wrong ? umemIndexError : umemOK);
      if (wrong) assert_true(first_fault(&debug).offset == (int64_t)at[i]);
      FORGET(&debug, &ordered);
    }
    assert_ok(umemDebug_check(&debug)); /* it was reported */
    umem_free(&debug, other);
    end(&debug);
  }
}

/* ---- order ---- */

/* Work that was queued before a free, and is done only when somebody waits, is no wrong write; what
 * is queued after it is. */
TEST(the_order_of_the_queue_counts) {
  char const *const names[] = {"fake-async", "cuda-async", "pool(cuda-async)"};
  for (size_t i = 0; i < 3; i++) {
    Place place;
    unsigned char bytes[100] = {1};
    open_place(&place, names[i], NULL);
    for (int round = 0; round < 10; round++) {
      uintptr_t adr = umem_alloc(&place.debug, 100);
      assert_ok(umem_set(&place.debug, adr, 5, 100));
      assert_ok(umem_copy_from(&place.debug, adr, &host, (uintptr_t)bytes, 100));
      umem_free(&place.debug, adr);
    }
    assert_ok(umemDebug_check(&place.debug));
    assert_ok(umem_trim(&place.debug, 0));
    uintptr_t adr = umem_alloc(&place.debug, 100);
    umem_free(&place.debug, adr);
    assert_ok(umem_set(place.upstream, adr + 40, 5, 10)); /* not waited for */
    assert_int_equal(umem_trim(&place.debug, 0), umemIndexError);
    expect_failure(&place.debug, umemIndexError, "byte 40 of the freed block of 100 bytes");
    close_place(&place);
  }
}

/* Nothing is copied to the host before a batch is full. */
TEST(frees_do_not_wait) {
  umemDebugOptions options = few(64, 1 << 20);
  CLEAN_CONTEXT(umemFault, fault, &fake, NULL); /* counts */
  CLEAN_CONTEXT(umemDebug, debug, &fault, &options);
  unsigned const looks = umemFaultCopies | umemFaultSynchronize;
  for (int i = 0; i < 64; i++) umem_free(&debug, umem_alloc(&debug, 100));
  assert_int_equal(umemFault_count(&fault, looks), 0);
  umem_free(&debug, umem_alloc(&debug, 100));
  assert_int_equal(umemFault_count(&fault, umemFaultCopyTo), 9); /* an eighth, and one more */
  assert_int_equal(umemFault_count(&fault, umemFaultSynchronize), 1);
  for (int i = 0; i < 8; i++) umem_free(&debug, umem_alloc(&debug, 100));
  assert_int_equal(umemFault_count(&fault, looks), 10);
}

int main(void) {
  doubles_use();
  return run_cases(NULL, NULL);
}
