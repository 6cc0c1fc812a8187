/* pool_pages_fail.c - pools over contexts with memory by pages: each refused call leaves all as it
 * was, and adaptors below the pool count what there is. */
#include "pool_pages_help.h"

/* ---- each call fails ---- */

/* Blocks of several sizes, a large one of free pages, trim. Each that is there keeps its bytes. */
static void use(bool may_fail) {
  enum { count = 12 };
  uintptr_t adr[count] = {0}, large;
  size_t const sizes[] = {3 * page, page + 8192, 5 * page - 4096, page};
  for (unsigned i = 0; i < count; i++) {
    adr[i] = umem_alloc(&pool, sizes[i % 4]);
    if (adr[i]) fill(adr[i], sizes[i % 4], (unsigned char)i);
    assert_true(adr[i] || may_fail);
  }
  for (unsigned i = 0; i < count; i += 2) umem_free(&pool, adr[i]);
  large = umem_alloc(&pool, 14 * page);
  assert_true(large || may_fail);
  if (large) fill(large, 14 * page, 99);
  umem_trim(&pool, 16 * page);
  uintptr_t other = umem_alloc(&pool, 7 * page);
  if (other) fill(other, 7 * page, 98);
  for (unsigned i = 1; i < count; i += 2)
    assert_true(!adr[i] || is_filled(adr[i], sizes[i % 4], (unsigned char)i));
  assert_true(!large || is_filled(large, 14 * page, 99));
  FREE(&pool, large, other);
  for (unsigned i = 1; i < count; i += 2) umem_free(&pool, adr[i]);
}

static PagedCall const calls[] = {pagedReserve,  pagedMap,        pagedMove,      pagedUnmap,
                                  pagedMapLarge, pagedUnmapLarge, pagedMoveLarge, pagedAlloc};
enum { calls_of_pages = 7 };

/* Of each trial; with and without large pages. */
static size_t growth_of(size_t nth) { return nth % 2 ? pagedLarge : 0; }

/* Every call fails once, and with a part of its pages done; then all works, and nothing is left. */
PAGES_TEST(each_call_may_fail) {
  umemStatusType const types[] = {umemMemoryError, umemNotSupportedError};
  unsigned met = 0;
  for (size_t c = 0; c < 2 * calls_of_pages; c++)
    for (unsigned long nth = 1; nth <= (setting_small() ? 6 : 12); nth++)
      for (unsigned long after = 0; after < 3; after++)
        for (size_t t = 0; t < 2; t++) {
          paged.no_alloc = after == 1;
          open_pool(&pool, &paged, 0, growth_of(c), after == 2 ? 64 * page : 0);
          paged_fail(&paged, calls[c / 2], nth, after, types[t]);
          use(true);
          met += paged.calls[calls[c / 2]] >= nth;
          forget_failures();
          paged_fail(&paged, pagedMap, 0, 0, umemOK);
          paged.no_alloc = false;
          use(false);
          forget_failures();
          assert_true(stats_of(&pool).blocks == 0);
          assert_ok(umem_trim(&pool, 0));
          assert_int_equal(paged.pages, 0);
          assert_true(stats_of(&pool).reserved == 0);
          umem_dtor(&pool);
          if (!paged_is_clean(&paged)) fail_msg("%s", paged.misuse);
        }
  assert_true(met > 60);
}

/* ---- adaptors that count ---- */

static umemStats stats;
static umemLimit limit;

static void open_metered(size_t most, size_t growth) {
  assert_ok(umemLimit_ctor(&limit, &paged, most));
  assert_ok(umemStats_ctor(&stats, &limit));
  open_pool(&pool, &stats, 0, growth, 0);
}

static void close_metered(void) {
  DESTRUCT(&pool, &stats);
  assert_int_equal(umemLimit_used(&limit), 0);
  umem_dtor(&limit);
}

static umemStatsFigures figures(void) {
  umemStatsFigures found = UMEM_STATS_FIGURES_INIT;
  assert_ok(umemStats_get(&stats, &found));
  return found;
}

/* Both know what the pool holds: so many pages, and nothing else. */
static void expect_counted(size_t pages) {
  umemStatsFigures found = figures();
  assert_int_equal(reserved(), pages * page);
  assert_true(paged.pages == pages && paged.blocks == 0);
  assert_int_equal(umemLimit_used(&limit), pages * page);
  assert_int_equal(found.current_bytes, pages * page);
  assert_int_equal(found.current_count, pages);
}

PAGES_TEST(adaptors_count_pages) {
  open_metered(12 * page, 0);
  uintptr_t one = filled_block(3 * page, 1), two = filled_block(4 * page, 2);
  expect_counted(7);
  umem_free(&pool, one);
  expect_counted(7);
  uintptr_t three = filled_block(5 * page, 3); /* three pages move there */
  expect_counted(9);
  assert_true(paged.calls[pagedMove] > 0 && is_filled(two, 4 * page, 2));
  assert_true(umem_alloc(&pool, 4 * page) == 0);
  assert_non_null(
      strstr(umem_get_message(&pool), "of the 786432 that the limit allows are in use"));
  forget_failures();
  umem_clear_status(&stats);
  umem_clear_status(&limit);
  umem_free(&pool, two);
  one = filled_block(7 * page, 4); /* as much as there may be */
  expect_counted(12);
  assert_true(is_filled(three, 5 * page, 3) && figures().peak_bytes == 12 * page);
  FREE(&pool, one, three);
  assert_ok(umem_trim(&pool, 2 * page));
  expect_counted(2);
  close_metered();
}

/* A limit that is less than a page gives chunks. */
PAGES_TEST(a_small_limit_gives_chunks) {
  open_metered(page - 4096, 0);
  uintptr_t adr = filled_block(page / 2, 1);
  assert_true(paged.pages == 0 && paged.blocks == 1);
  assert_int_equal(umemLimit_used(&limit), reserved());
  umem_free(&pool, adr);
  close_metered();
}

PAGES_TEST(adaptors_count_what_failures_leave) {
  unsigned met = 0;
  for (size_t c = 0; c < 2 * (calls_of_pages + 1); c++)
    for (unsigned long nth = 1; nth <= 8; nth++)
      for (unsigned long after = 0; after < 3; after++) {
        open_metered((after == 1 ? 40 : 400) * page, growth_of(c));
        paged_fail(&paged, calls[c / 2], nth, after, umemMemoryError);
        use(true);
        met += paged.calls[calls[c / 2]] >= nth;
        assert_int_equal(umemLimit_used(&limit), reserved());
        assert_int_equal(figures().current_bytes, reserved());
        forget_failures();
        umem_clear_status(&stats);
        umem_clear_status(&limit);
        paged_fail(&paged, pagedMap, 0, 0, umemOK);
        assert_ok(umem_trim(&pool, 0));
        expect_counted(0);
        close_metered();
      }
  assert_true(met > 20);
}
