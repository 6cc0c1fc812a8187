/* range.c - the range allocator by hand: wrong requests, regions, placement. */
#include "range_help.h"

static umemRange *range; /* of the test */

static void destroy(void **state UNUSED) {
  umemRange_destroy(range);
  range = NULL;
}

/* In the place of the one before. */
static void create_empty(uint64_t granule) {
  destroy(NULL);
  range = umemRange_create(granule);
  assert_non_null(range);
}

static void create(uint64_t granule, uint64_t size) {
  create_empty(granule);
  assert_true(umemRange_add(range, 0, size, true));
}

#define TEST(name) TEST_CASE_WITH(name, NULL, destroy)

TEST(an_allocator_is_empty_at_first) {
  assert_null(umemRange_create(0));
  assert_null(umemRange_create(24));
  create_empty(UINT64_C(1) << 63);
  destroy(NULL);
  umemRange_destroy(NULL);
  unsigned count = 0;
  for (;; ++count) {
    fail_memory(count, UINT_MAX);
    range = umemRange_create(16);
    end_failing();
    if (range) break;
  }
  assert_true(count >= 3);
  assert_int_equal(umemRange_alloc(range, 1, 1), UMEM_RANGE_NONE);
  umemRangeItem item;
  assert_false(umemRange_find(range, 0, &item));
  assert_false(umemRange_next(range, 0, &item));
  assert_int_equal(umemRange_totals(range).free_count, 0);
  assert_int_equal(umemRange_totals(range).largest_free, 0);
}

TEST(bad_requests_are_refused) {
  create(16, 1024);
  uint64_t const requests[][2] = {{0, 1}, {16, 0}, {16, 48}, {1025, 1}};
  for (unsigned i = 0; i < 4; ++i)
    assert_int_equal(umemRange_alloc(range, requests[i][0], requests[i][1]), UMEM_RANGE_NONE);
  uint64_t const huge[] = {UINT64_MAX, UINT64_MAX - 15, (UINT64_C(1) << 63) + 1, UINT64_C(1) << 63};
  for (unsigned i = 0; i < 4; ++i)
    for (unsigned bit = 0; bit < 64; bit += 9)
      assert_int_equal(umemRange_alloc(range, huge[i], UINT64_C(1) << bit), UMEM_RANGE_NONE);
  assert_int_equal(umemRange_free(range, 0), 0);
  assert_int_equal(umemRange_free(range, UINT64_MAX), 0);
  assert_int_equal(umemRange_alloc(range, 20, 1), 0);
  assert_int_equal(umemRange_free(range, 16), 0);
  assert_int_equal(umemRange_free(range, 32), 0);
  assert_int_equal(umemRange_free(range, 0), 20);
  assert_int_equal(umemRange_free(range, 0), 0);
  uint64_t const added[][2] = {{2048, 0},
                               {2049, 16},
                               {2048, 17},
                               {1008, 32},
                               {(UINT64_C(1) << 63) - 16, 32},
                               {UINT64_MAX - 15, 16},
                               {2048, UINT64_MAX - 15}};
  uint64_t const removed[][2] = {{0, 0}, {0, UINT64_MAX - 15}, {UINT64_MAX - 15, 16}, {1024, 16}};
  for (unsigned i = 0; i < 7; ++i)
    assert_false(umemRange_add(range, added[i][0], added[i][1], true));
  for (unsigned i = 0; i < 4; ++i)
    assert_false(umemRange_remove(range, removed[i][0], removed[i][1]));
  assert_int_equal(umemRange_totals(range).largest_free, 1024);
}

/* The whole line, in granules of 1 and of 2^62. */
TEST(the_whole_line_is_used) {
  uint64_t const line = UINT64_C(1) << 63, half = line / 2;
  create(1, line);
  assert_int_equal(umemRange_alloc(range, line, 1), 0);
  assert_int_equal(umemRange_alloc(range, 1, 1), UMEM_RANGE_NONE);
  assert_int_equal(umemRange_free(range, 0), line);
  assert_int_equal(umemRange_alloc(range, line - 1, half), 0);
  assert_int_equal(umemRange_alloc(range, 1, 1), line - 1);
  assert_int_equal(umemRange_free(range, 0), line - 1);
  assert_int_equal(umemRange_free(range, line - 1), 1);
  assert_int_equal(umemRange_alloc(range, 5, half), 0);
  assert_int_equal(umemRange_alloc(range, half, half), half);
  assert_int_equal(umemRange_alloc(range, 1, line), UMEM_RANGE_NONE);
  assert_int_equal(umemRange_alloc(range, line, line), UMEM_RANGE_NONE);
  assert_int_equal(umemRange_totals(range).live_bytes, half + 5);
  umemRangeItem item;
  assert_true(umemRange_find(range, line - 1, &item));
  assert_true(item.live && item.start == half && item.size == half);
  assert_false(umemRange_find(range, line, &item));
  assert_false(umemRange_next(range, half + 1, &item));
  create(half, line);
  assert_int_equal(umemRange_alloc(range, half + 1, 1), 0);
  assert_int_equal(umemRange_totals(range).live_bytes, line);
  assert_int_equal(umemRange_free(range, 0), half + 1);
}

TEST(regions_join_where_both_want_it) {
  create_empty(16);
  assert_true(umemRange_add(range, 64, 64, false));
  assert_true(umemRange_add(range, 0, 64, true));
  assert_true(umemRange_add(range, 128, 64, true));
  assert_true(umemRange_add(range, 192, 64, true));
  assert_int_equal(umemRange_totals(range).free_count, 3);
  assert_int_equal(umemRange_totals(range).largest_free, 128);
  assert_int_equal(umemRange_alloc(range, 128, 1), 128);
  assert_int_equal(umemRange_alloc(range, 80, 1), UMEM_RANGE_NONE);
  assert_false(umemRange_remove(range, 48, 32));  /* two ranges */
  assert_false(umemRange_remove(range, 128, 64)); /* live */
  assert_true(umemRange_remove(range, 64, 64));
  assert_int_equal(umemRange_totals(range).free_bytes, 64);
  assert_true(umemRange_add(range, 64, 64, true)); /* the border went with its region */
  assert_int_equal(umemRange_totals(range).largest_free, 128);
  assert_int_equal(umemRange_free(range, 128), 128);
  assert_int_equal(umemRange_totals(range).largest_free, 256);
  assert_true(umemRange_remove(range, 96, 32)); /* out of the middle */
  umemRangeItem item;
  assert_false(umemRange_find(range, 96, &item));
  assert_true(umemRange_next(range, 1, &item));
  assert_true(item.start == 128 && item.extent == 128 && !item.live);
}

/* Free ranges of 1020, 1009 and 1013, which are of one class, and one of 3000, between live ones of
 * 1. */
static void create_with_holes(uint64_t at[4]) {
  create(1, 6046);
  uint64_t const sizes[] = {1020, 1009, 1013, 3000};
  for (unsigned i = 0; i < 4; i++) {
    at[i] = umemRange_alloc(range, sizes[i], 1);
    assert_true(umemRange_alloc(range, 1, 1) != UMEM_RANGE_NONE);
  }
  for (unsigned i = 0; i < 4; i++) umemRange_free(range, at[i]);
}

/* The smallest range that suffices, though another was freed last; only for sizes of 900 or
 * more. */
TEST(a_tight_fit_takes_the_smallest_that_suffices) {
  uint64_t at[4];
  create_with_holes(at);
  umemRange_fit_tightly(range, 900);
  assert_int_equal(umemRange_alloc(range, 1008, 1), at[1]);
  assert_int_equal(umemRange_alloc(range, 1015, 1), at[0]);
  assert_int_equal(umemRange_alloc(range, 1010, 1), at[2]);
  assert_int_equal(umemRange_alloc(range, 1010, 1), at[3]);
  create_with_holes(at);
  umemRange_fit_tightly(range, 1009);
  assert_int_equal(umemRange_alloc(range, 1008, 1), at[2]); /* freed last */
}

/* Of equal ranges the lowest; and where alignment rules out those that are looked at, any other. */
TEST(a_tight_fit_takes_the_lowest_of_equal_ones) {
  create(1, 64 * 101);
  uint64_t at[64];
  for (unsigned i = 0; i < 64; i++) {
    at[i] = umemRange_alloc(range, 100, 1);
    assert_true(umemRange_alloc(range, 1, 1) != UMEM_RANGE_NONE);
  }
  for (unsigned i = 64; i-- > 0;) umemRange_free(range, at[i]);
  umemRange_fit_tightly(range, 0);
  assert_int_equal(umemRange_alloc(range, 100, 1), at[0]);
  assert_int_equal(umemRange_alloc(range, 50, 2048), 2048);
}

/* The policy, step by step. Sizes are multiples of the granule 1 here. */
TEST(ranges_are_placed_by_the_policy) {
  create(1, 1 << 20);
  uint64_t at[8];
  for (unsigned i = 0; i < 8; ++i) {
    at[i] = umemRange_alloc(range, i % 2 ? 1 : 1000, 1);
    assert_int_equal(at[i], i / 2 * 1001 + i % 2 * 1000);
  }
  /* The one freed last, also where the size is not a class of its own; then the one before. */
  umemRange_free(range, at[2]);
  umemRange_free(range, at[0]);
  umemRange_free(range, at[4]);
  assert_int_equal(umemRange_alloc(range, 1000, 1), at[4]);
  assert_int_equal(umemRange_alloc(range, 999, 1), at[0]);
  /* Too small by chance, of the own class: the smallest larger class serves. */
  assert_int_equal(umemRange_alloc(range, 1001, 1), 4004);
  /* A smaller request prefers the hole to the large rest. */
  assert_int_equal(umemRange_alloc(range, 500, 1), at[2]);
  /* What alignment leaves below serves the next request. */
  assert_int_equal(umemRange_alloc(range, 100, 4096), 8192);
  assert_int_equal(umemRange_alloc(range, 3000, 1), 5005);
}

/* A request that only fits by chance finds the range, unless 64 others of its class come first. */
TEST(a_few_of_the_own_class_are_tried) {
  for (unsigned others = 63; others <= 64; ++others) {
    create_empty(1);
    assert_true(umemRange_add(range, 0, 1001, false));
    assert_int_equal(umemRange_totals(range).largest_free, 1001);
    for (unsigned i = 1; i <= others; ++i) assert_true(umemRange_add(range, i * 2000, 1000, false));
    assert_int_equal(umemRange_totals(range).largest_free, 1001);
    assert_int_equal(umemRange_alloc(range, 1001, 1), others < 64 ? 0 : UMEM_RANGE_NONE);
  }
}

/* Placement is a promise to files written by earlier versions: this number never changes. */
TEST(placement_is_for_good) {
  enum { LIVE = 64 };
  create(16, UINT64_C(1) << 40);
  uint64_t starts[LIVE], hash = 0;
  for (unsigned i = 0; i < LIVE; ++i) starts[i] = UMEM_RANGE_NONE;
  random_state = 2;
  for (unsigned step = 0; step < 10000; ++step) {
    unsigned i = draw_below(LIVE);
    umemRange_free(range, starts[i]);
    uint64_t size = random_size(&random_state, 19);
    starts[i] = umemRange_alloc(range, size, UINT64_C(1) << draw_below(14));
    hash = (hash ^ starts[i]) * UINT64_C(0x100000001b3);
  }
  assert_int_equal(hash, UINT64_C(0x44195a1ec0ce88d0));
}
