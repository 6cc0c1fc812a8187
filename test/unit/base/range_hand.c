/* range_hand.c - ranges that pass from one range allocator to another. */
#include "range_help.h"

/* Two allocators of granule 16; the first has two regions, [0, 1600) and [1600, 3200), that never
 * join. */
static umemRange *one, *other;

static void open_pair(void **state UNUSED) {
  one = umemRange_create(16);
  other = umemRange_create(16);
  assert_true(one && other && umemRange_add(one, 0, 1600, false) &&
              umemRange_add(one, 1600, 1600, false));
}

static void close_pair(void **state UNUSED) {
  umemRange_destroy(one);
  umemRange_destroy(other);
}

#define TEST(name) TEST_CASE_WITH(name, open_pair, close_pair)

static void expect_totals(umemRange const *range, uint64_t live, uint64_t live_bytes, uint64_t free,
                          uint64_t free_bytes) {
  umemRangeTotals totals = umemRange_totals(range);
  assert_int_equal(totals.live_count, live);
  assert_int_equal(totals.live_bytes, live_bytes);
  assert_int_equal(totals.free_count, free);
  assert_int_equal(totals.free_bytes, free_bytes);
}

static bool is_held(umemRange const *range, uint64_t at) {
  umemRangeItem item;
  return umemRange_find(range, at, &item) && item.live && item.held;
}

TEST(holds_what_is_free_or_live) {
  fail_memory(0, UINT_MAX); /* needs none */
  assert_int_equal(umemRange_hold(one, 16), 0);
  assert_int_equal(umemRange_hold(one, 3200), 0);
  assert_int_equal(umemRange_hold(one, 1600), 1600);
  assert_int_equal(umemRange_hold(one, 1600), 1600);
  expect_totals(one, 1, 1600, 1, 1600);
  assert_int_equal(umemRange_hold(one, 0), 1600);
  expect_totals(one, 2, 3200, 0, 0);
  assert_true(umemRange_alloc(one, 16, 1) == UMEM_RANGE_NONE);
  assert_int_equal(umemRange_free(one, 1600), 1600);
  end_failing();
  assert_int_equal(umemRange_alloc(one, 100, 1), 1600);
  assert_true(is_held(one, 0));
  assert_false(is_held(one, 1600));
  assert_int_equal(umemRange_hold(one, 1600), 100);
  assert_true(is_held(one, 1600));
  expect_totals(one, 2, 1712, 1, 1488);
}

TEST(what_is_taken_or_entered_is_held_until_it_is_free) {
  assert_true(umemRange_take(one, 160, 160));
  assert_true(umemRange_enter(one, 4800, 160, false));
  assert_true(is_held(one, 160) && is_held(one, 4800));
  assert_false(is_held(one, 0));
  assert_int_equal(umemRange_free(one, 160), 160);
  assert_int_equal(umemRange_alloc(one, 1600, 1), 0);
  assert_false(is_held(one, 160));
}

TEST(what_is_handed_joins_its_neighbours) {
  uint64_t start[10];
  for (int i = 0; i < 10; i++) {
    start[i] = umemRange_alloc(one, 155, 1);
    assert_true(start[i] != UMEM_RANGE_NONE);
  }
  expect_totals(one, 10, 1600, 1, 1600);
  assert_int_equal(umemRange_hand(one, 8, other), 0);
  assert_int_equal(umemRange_hand(other, start[0], one), 0);
  for (int i = 0; i < 10; i += 2) assert_int_equal(umemRange_hand(one, start[i], other), 155);
  expect_totals(one, 5, 800, 1, 1600);
  expect_totals(other, 0, 0, 5, 800);
  assert_int_equal(umemRange_hand(one, start[0], other), 0);
  for (int i = 1; i < 10; i += 2) assert_int_equal(umemRange_hand(one, start[i], other), 155);
  expect_totals(one, 0, 0, 1, 1600);
  expect_totals(other, 0, 0, 1, 1600);
  umemRangeItem item;
  assert_false(umemRange_find(one, start[0], &item));
  assert_true(umemRange_find(other, start[0], &item) && item.extent == 1600 && !item.live);
  assert_int_equal(umemRange_alloc(other, 1600, 1), item.start);
  assert_int_equal(umemRange_hand(other, item.start, other), 1600); /* itself: freed */
  expect_totals(other, 0, 0, 1, 1600);
}

TEST(what_is_separate_stays_separate) {
  umemRangeItem item;
  assert_true(umemRange_enter(one, 3200, 1600, true) && umemRange_enter(one, 4800, 160, false));
  for (uint64_t start = 3200; start <= 4800; start += 1600)
    assert_true(umemRange_free(one, start) > 0);
  assert_true(umemRange_find(one, 3200, &item) && item.extent == 1600);
  assert_int_equal(umemRange_alloc_separate(one, 160, 1), 3200);
  assert_true(umemRange_alloc_separate(one, 1600, 1) == UMEM_RANGE_NONE); /* not beside them */
  for (int i = 0; i < 2; i++) assert_true(umemRange_alloc(one, 1600, 1) < 3200);
  assert_int_equal(umemRange_alloc(one, 1440, 1), 3360); /* nothing else is left */
  assert_int_equal(umemRange_hand(one, 3360, other), 1440);
  assert_int_equal(umemRange_hand(one, 3200, other), 160);
  assert_int_equal(umemRange_alloc_separate(other, 1600, 1), 3200);
}

TEST(borders_stay) {
  assert_int_equal(umemRange_hold(one, 0), 1600);
  assert_int_equal(umemRange_hold(one, 1600), 1600);
  assert_int_equal(umemRange_hand(one, 1600, other), 1600);
  assert_int_equal(umemRange_hand(one, 0, other), 1600);
  expect_totals(other, 0, 0, 2, 3200);
  assert_true(umemRange_alloc(other, 1616, 1) == UMEM_RANGE_NONE);
  assert_true(umemRange_remove(other, 1600, 1600));
  assert_true(umemRange_remove(other, 0, 1600));
  expect_totals(other, 0, 0, 0, 0);
}

TEST(without_memory_nothing_changes) {
  enum { count = 100 };
  unsigned refused = 0;
  for (uint64_t i = 0; i < count; i++) assert_true(umemRange_alloc(one, 32, 1) % 32 == 0);
  expect_totals(one, count, 3200, 0, 0);
  for (uint64_t start = 0; start < 3200; start += 64) {
    fail_memory(0, UINT_MAX);
    uint64_t handed = umemRange_hand(one, start, other);
    end_failing();
    if (handed) continue;
    refused++;
    umemRangeItem item;
    assert_true(umemRange_find(one, start, &item) && item.live && item.start == start);
    assert_false(umemRange_find(other, start, &item));
    assert_int_equal(umemRange_hand(one, start, other), 32);
  }
  assert_true(refused);
  expect_totals(one, count / 2, 1600, 0, 0);
  expect_totals(other, 0, 0, count / 2, 1600);
}

/* Back and forth; at last all is with one, in one piece for each region. */
TEST(many_pass) {
  enum { count = 200, rounds = 20000 };
  umemRange *ranges[2] = {one, other};
  struct {
    uint64_t start;
    int home;
  } live[count];
  uint64_t random = 1, n = 0, bytes = 0;
  for (int i = 0; i < rounds; i++) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    int home = random >> 40 & 1;
    uint64_t size = 1 + (random >> 44) % 100, at = n ? (random >> 33) % n : 0;
    if (n < count && (random >> 60) % 2) {
      uint64_t start = umemRange_alloc(ranges[home], size, 1);
      if (start == UMEM_RANGE_NONE) continue;
      live[n].start = start;
      live[n++].home = home;
      bytes += (size + 15) / 16 * 16;
    } else if (n) {
      uint64_t freed =
          umemRange_hand(ranges[live[at].home], live[at].start, ranges[random >> 50 & 1]);
      assert_true(freed);
      bytes -= (freed + 15) / 16 * 16;
      live[at] = live[--n];
    }
    umemRangeTotals first = umemRange_totals(one), second = umemRange_totals(other);
    assert_int_equal(first.live_bytes + second.live_bytes, bytes);
    assert_int_equal(first.free_bytes + second.free_bytes, 3200 - bytes);
  }
  while (n--) assert_true(umemRange_hand(ranges[live[n].home], live[n].start, one));
  umemRangeItem item;
  for (uint64_t at = 0; umemRange_next(other, at, &item); at = item.start + item.extent) {
    assert_true(umemRange_hold(other, item.start));
    assert_true(umemRange_hand(other, item.start, one));
  }
  expect_totals(one, 0, 0, 2, 3200);
  expect_totals(other, 0, 0, 0, 0);
}
