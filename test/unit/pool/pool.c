/* pool.c - what only pools promise: options, statistics, refusals, alignment, many pools. Want of
 * memory is in pool_room.c, threads in pool_threads.c. */
#include "pool_help.h"
#include "returns_null.h"

/* ---- construction ---- */

TEST(refuses_wrong_arguments) {
  assert_int_equal(umemPool_ctor(NULL, &host, NULL), umemValueError);
  umem_thread_clear();
  expect_status(&pool, umemPool_ctor(&pool, NULL, NULL), umemValueError,
                "umemPool_ctor: the upstream is NULL");
  assert_int_equal(umemPool_ctor(&pool, &pool, NULL), umemValueError);
  umem_thread_clear();

  umemPoolOptions options = {sizeof options, 2 * mebi, 0, mebi, umemPoolPages, 0};
  expect_status(&pool, umemPool_ctor(&pool, &host, &options), umemValueError, "exceed the maximum");
  options = (umemPoolOptions){3, 0, 0, 0, umemPoolPages, 0};
  expect_status(&pool, umemPool_ctor(&pool, &host, &options), umemValueError, "too small");
  assert_true(umem_is_ok(&host));
}

TEST(options_may_be_shorter) {
  umemPoolOptions options = {offsetof(umemPoolOptions, growth), 100 * kibi, 1, 1, umemPoolPages, 0};
  assert_ok(umemPool_ctor(&pool, &plain, &options)); /* growth and maximum are not looked at */
  assert_true(stats_of(&pool).reserved == 100 * kibi);
  umem_free(&pool, new_block(&pool, mebi));
}

TEST(takes_initial_bytes) {
  open_pool(&pool, &plain, 5 * mebi, 0, 0);
  umemPoolStats stats = stats_of(&pool);
  assert_true(stats.reserved == 5 * mebi && stats.chunks == 1 && stats.used == 0);
  assert_true(stats.largest_free == 5 * mebi && stats.fragmentation == 0);
  uintptr_t adr = new_block(&pool, 5 * mebi);
  assert_true(stats_of(&pool).reserved == 5 * mebi);
  umem_free(&pool, adr);
  umem_dtor(&pool);
  umemPoolOptions options = {sizeof options, SIZE_MAX / 4, 0, 0, umemPoolPages, 0};
  assert_int_equal(umemPool_ctor(&pool, &plain, &options), umemMemoryError);
  assert_int_equal(umem_get_status(&pool), umemMemoryError);
  FORGET(&plain);
}

TEST(grows_as_the_options_say) {
  open_pool(&pool, &plain, 0, 3 * mebi, 0);
  assert_true(stats_of(&pool).reserved == 0);
  uintptr_t one = new_block(&pool, 2 * mebi), other = new_block(&pool, 2 * mebi);
  umemPoolStats stats = stats_of(&pool);
  assert_true(stats.reserved == 6 * mebi && stats.chunks == 2);
  FREE(&pool, one, other);
}

TEST(adopts_its_upstream) {
  umemHost below;
  umemPool outer;
  assert_ok(umemHost_ctor(&below));
  umemPoolOptions wrong = {1, 0, 0, 0, umemPoolPages, 0};
  assert_int_equal(umemPool_adopt(&pool, &below, &wrong), umemValueError);
  umem_thread_clear();
  assert_non_null(below.super.vptr); /* still the caller's */
  assert_ok(umemPool_adopt(&pool, &below, NULL));
  assert_ok(umemPool_ctor(&outer, &pool, NULL));
  umem_free(&outer, new_block(&outer, 100));
  umem_dtor(&outer);
  assert_non_null(pool.super.vptr); /* borrowed */
  umem_dtor(&pool);
  assert_null(below.super.vptr);
}

/* ---- statistics ---- */

TEST_OF_CHUNKS(counts) {
  uintptr_t small = new_block(&pool, 100), large = new_block(&pool, 100000);
  umemPoolStats stats = stats_of(&pool);
  assert_true(stats.blocks == 2 && stats.allocations == 2 && stats.chunks == 1);
  assert_true(stats.used == 112 + 102400); /* 112: the class of 100; 25 units of 4 KiB */
  assert_true(stats.used_peak >= stats.used && stats.reserved == mebi);
  umem_free(&pool, large);
  stats = stats_of(&pool);
  assert_true(stats.blocks == 1 && stats.used == 112 && stats.used_peak >= 102400);
  assert_true(stats.largest_free == mebi - 64 * kibi);
  uintptr_t again = new_block(&pool, 112);
  assert_true(stats_of(&pool).used == 224 && stats_of(&pool).allocations == 3);
  FREE(&pool, small, again);
  stats = stats_of(&pool);
  assert_true(stats.blocks == 0 && stats.used == 0 && stats.reserved == mebi);
  expect_nothing_left(&pool);
  stats = stats_of(&pool);
  assert_true(stats.reserved_peak == mebi && stats.largest_free == 0 && stats.fragmentation == 0);
}

TEST_OF_PAGES(statistics_refuse_wrong_arguments) {
  umemPoolStats stats = UMEM_POOL_STATS_INIT;
  assert_int_equal(umemPool_stats(NULL, &stats), umemValueError);
  umem_thread_clear();
  expect_status(&host, umemPool_stats((umemPool *)(void *)&host, &stats), umemTypeError,
                "this Host is no umemPool");
  expect_status(&pool, umemPool_stats(&pool, NULL), umemValueError, "NULL");
  stats.size = 8;
  expect_status(&pool, umemPool_stats(&pool, &stats), umemValueError, "sizeof(umemPoolStats)");
  memset(&stats, 0xAA, sizeof stats);
  stats.size = offsetof(umemPoolStats, reserved); /* as compiled against a shorter one */
  assert_ok(umemPool_stats(&pool, &stats));
  assert_true(stats.used == 0 && stats.reserved == UINT64_C(0xAAAAAAAAAAAAAAAA));
}

TEST(info_respects_the_maximum) {
  open_pool(&pool, &host, 0, 0, 8 * mebi);
  uintptr_t adr = new_block(&pool, mebi);
  umemInfo info = info_of(&pool);
  assert_true(info.capacity == 8 * mebi && info.available == 7 * mebi);
  umem_free(&pool, adr);
}

/* It may be asked often: freed blocks go on waiting for the next of their size. If two that are
 * side by side were joined, the next block would be the first of them, whichever was freed last. */
TEST(info_joins_nothing) {
  open_pool(&pool, &plain, mebi, 0, 0);
  uintptr_t one = new_block(&pool, 100000), other = new_block(&pool, 100000);
  uintptr_t last = one < other ? other : one;
  FREE(&pool, last == one ? other : one, last);
  info_of(&pool);
  assert_true(new_block(&pool, 100000) == last);
  umem_free(&pool, last);
  assert_true(stats_of(&pool).largest_free == mebi); /* as here */
  assert_true(new_block(&pool, 100000) != last);
  umem_dtor(&pool); /* with a block */
}

/* ---- refusals ---- */

/* Wherever a freed block waits: with the thread, in the depot, in its span, with the upstream. */
TEST_OF_PAGES(refuses_second_frees) {
  enum { count = 3000 };
  static uintptr_t adr[count];
  for (size_t k = 0; k < some; k++) {
    size_t n = some_sizes[k] > 60000 ? 20 : some_sizes[k] > 5000 ? 200 : count;
    new_blocks(&pool, adr, n, some_sizes[k]);
    free_blocks(&pool, adr, n);
    for (size_t i = 0; i < n; i++) expect_refused_free(&pool, adr[i]);
    expect_nothing_left(&pool);
    for (size_t i = 0; i < n; i++) expect_refused_free(&pool, adr[i]);
  }
}

TEST_OF_PAGES(refuses_what_is_no_block) {
  umemPool other;
  open_pool(&other, &host, 0, 0, 0);
  uintptr_t of_other = new_block(&other, 100), of_host = umem_alloc(&host, 100);
  for (size_t k = 0; k < some; k++) {
    uintptr_t adr = new_block(&pool, some_sizes[k]);
    for (size_t inside = 1; inside <= some_sizes[k]; inside *= 2)
      expect_refused_free(&pool, adr + inside);
    expect_refused_free(&pool, of_other);
    expect_refused_free(&pool, of_host);
    expect_refused_free(&pool, 16);
    expect_refused_free(&pool, UINTPTR_MAX);
    expect_no_block(&pool, umem_realloc(&pool, adr + 1, 10, 20), umemValueError,
                    "umem_realloc: 0x");
    expect_no_block(&pool, umem_aligned_origin(&pool, adr + 1), umemValueError, "not a live block");
    assert_true(umem_aligned_origin(&pool, adr) == adr);
    umem_free(&pool, adr);
    expect_no_block(&pool, umem_realloc(&pool, adr, 10, 20), umemValueError, "not a live block");
  }
  umem_free(&other, of_other);
  umem_free(&host, of_host);
  DESTRUCT(&other, &pool);
}

/* ---- alignment and sizes ---- */

TEST(takes_over_the_alignment) {
  umemHost coarse; /* as a GPU's memory */
  assert_ok(umemHost_ctor(&coarse));
  size_t const alignments[] = {1, 16, 64, 256, 4096, 16384, 65536, 131072};
  for (size_t i = 0; i < sizeof alignments / sizeof *alignments; i++) {
    size_t alignment = coarse.super.alignment = alignments[i];
    assert_ok(umemPool_ctor(&pool, &coarse, NULL));
    assert_true(pool.super.alignment == (alignment < 16 ? 16 : alignment));
    for (size_t size = 1; size < 200000; size += 1 + size / 3) {
      uintptr_t adr[3];
      for (int k = 0; k < 3; k++) {
        adr[k] = new_block(&pool, size);
        assert_true(adr[k] % pool.super.alignment == 0);
        memset((void *)adr[k], k, size);
      }
      for (int k = 0; k < 3; k++) {
        assert_int_equal(*(unsigned char *)adr[k], k);
        assert_int_equal(*(unsigned char *)(adr[k] + size - 1), k);
        umem_free(&pool, adr[k]);
      }
    }
    close_pool(&pool);
  }
}

TEST_OF_PAGES(aligns_all_sizes) {
  for (size_t alignment = 1; alignment <= 2 * mebi; alignment *= 2)
    for (size_t k = 0; k < some; k++) {
      uintptr_t one = umem_aligned_alloc(&pool, alignment, some_sizes[k]);
      uintptr_t other = umem_aligned_alloc(&pool, alignment, some_sizes[k]);
      assert_true(one && other && one % alignment == 0 && other % alignment == 0);
      memset((void *)one, 1, some_sizes[k]);
      memset((void *)other, 2, some_sizes[k]);
      assert_int_equal(*(unsigned char *)(one + some_sizes[k] - 1), 1);
      umem_aligned_free(&pool, one);
      umem_aligned_free(&pool, other);
    }
}

/* What was freed before is not taken for a request that needs a better alignment. */
TEST_OF_PAGES(large_blocks_that_wait_are_aligned) {
  enum { count = 20, size = 17 * 4096 }; /* every other one is aligned to 4096 only */
  uintptr_t adr[count];
  for (size_t alignment = 4096; alignment <= 65536; alignment *= 2) {
    new_blocks(&pool, adr, count, size);
    free_blocks(&pool, adr, count);
    for (size_t i = 0; i < count; i++) {
      adr[i] = umem_aligned_alloc(&pool, alignment, size);
      assert_true(adr[i] && adr[i] % alignment == 0);
    }
    free_blocks(&pool, adr, count);
  }
}

/* What an upstream of no such alignment has to add is not kept. (The pool must have no other chunk,
 * part of which may be aligned by chance.) */
TEST_OF_CHUNKS(costly_chunks_go_back_at_once) {
  uintptr_t adr = umem_aligned_alloc(&pool, 64 * mebi, 100);
  assert_true(adr && adr % (64 * mebi) == 0);
  umemPoolStats stats = stats_of(&pool);
  assert_true(stats.chunks == 1 && stats.reserved == 4096);
  uintptr_t small = new_block(&pool, 100);
  assert_true(stats_of(&pool).chunks == 2);
  umem_aligned_free(&pool, adr);
  expect_held(&pool, mebi, 1);
  umem_free(&pool, small);
}

TEST_OF_PAGES(resizes_in_place) {
  uintptr_t adr = new_block(&pool, 1000); /* of a class of 1024 bytes */
  assert_true(umem_realloc(&pool, adr, 1000, 1024) == adr);
  assert_true(umem_realloc(&pool, adr, 1024, 600) == adr);
  memset((void *)adr, 5, 600);
  uintptr_t moved = umem_realloc(&pool, adr, 600, 100);
  assert_true(moved && moved != adr); /* else most of it would stay unused */
  adr = umem_realloc(&pool, moved, 100, 3000);
  for (size_t i = 0; i < 100; i++) assert_int_equal(((unsigned char *)adr)[i], 5);
  umem_free(&pool, adr);
  adr = new_block(&pool, 101000);
  assert_true(umem_realloc(&pool, adr, 101000, 102400) == adr);
  umem_free(&pool, adr);
  adr = new_block(&pool, 3);
  assert_true(umem_realloc(&pool, adr, 3, 1) == adr);
  umem_free(&pool, adr);
  assert_true(stats_of(&pool).blocks == 0);
}

/* ---- many pools ---- */

TEST(one_thread_uses_many_pools) {
  enum { count = 20 };
  umemPool pools[count];
  uintptr_t adr[count][4];
  for (size_t i = 0; i < count; i++) open_pool(&pools[i], &host, 0, 0, 0);
  for (size_t round = 0; round < 4; round++)
    for (size_t i = 0; i < count; i++) adr[i][round] = new_block(&pools[i], 100);
  for (size_t round = 0; round < 4; round++)
    for (size_t i = count; i-- > 0;) umem_free(&pools[i], adr[i][round]);
  for (size_t i = 0; i < count; i++) {
    expect_refused_free(&pools[i], adr[i][0]);
    assert_true(stats_of(&pools[i]).allocations == 4);
    umem_dtor(&pools[i]);
  }
  for (size_t i = 0; i < 1000; i++) { /* at one place, one after the other */
    open_pool(&pools[0], &host, 0, 0, 0);
    new_block(&pools[0], 100); /* its end takes it */
    umem_dtor(&pools[0]);
  }
}
