/* pool_pages.c - pools over contexts with memory by pages: pages go to where a block is needed, no
 * more are mapped than blocks touch. Calls that fail: pool_pages_fail.c. Random calls, threads and
 * forks: pool_pages_random.c. */
#include "pool_pages_help.h"

static unsigned long mapping_calls(void) {
  return paged.calls[pagedMap] + paged.calls[pagedUnmap] + paged.calls[pagedMove];
}

/* ---- where pages go ---- */

PAGES_TEST(a_pool_maps_what_it_needs) {
  open_plain(0);
  assert_true(reserved() == 0 && paged.calls[pagedReserve] == 0);
  uintptr_t one = filled_block(3 * page, 1);
  assert_true(reserved() == 3 * page && paged.pages == 3 && stats_of(&pool).chunks == 1);
  assert_true(paged.ranges[0].size < (size_t)1 << 28); /* few addresses */
  uintptr_t other = filled_block(page + 4096, 2);
  assert_true(reserved() == 5 * page);
  uintptr_t small = filled_block(100, 3); /* whose span finds no page of 64 KiB */
  assert_true(reserved() == 6 * page);
  assert_true(is_filled(one, 3 * page, 1) && is_filled(other, page + 4096, 2) && !paged.blocks);
  FREE(&pool, one, other, small);
  expect_nothing_left(&pool);
  assert_int_equal(paged.pages, 0);
}

PAGES_TEST(a_loop_maps_nothing) {
  open_plain(0);
  uintptr_t kept = new_block(&pool, 5 * page);
  umem_free(&pool, new_block(&pool, 20 * page));
  unsigned long before = mapping_calls();
  for (int i = 0; i < 1000; i++) umem_free(&pool, new_block(&pool, (size_t)(20 - i % 5) * page));
  assert_int_equal(mapping_calls(), before);
  umem_free(&pool, kept);
}

PAGES_TEST(free_pages_move_to_a_larger_block) {
  open_plain(0);
  uintptr_t adr[6];
  for (int i = 0; i < 6; i++) adr[i] = filled_block((i % 2 ? 2 : 4) * page, (unsigned char)i);
  assert_true(reserved() == 18 * page);
  for (int i = 0; i < 6; i += 2) umem_free(&pool, adr[i]);
  unsigned long before = paged.calls[pagedMap];
  uintptr_t large = filled_block(12 * page, 9);
  assert_int_equal(paged.calls[pagedMap], before);
  assert_true(reserved() == 18 * page && stats_of(&pool).reserved_peak == 18 * page);
  for (int i = 1; i < 6; i += 2) assert_true(is_filled(adr[i], 2 * page, (unsigned char)i));
  assert_true(is_filled(large, 12 * page, 9));
  umem_free(&pool, large);
  for (int i = 1; i < 6; i += 2) umem_free(&pool, adr[i]);
}

/* The gap that a moved page has left is filled again, between memory that stayed. */
PAGES_TEST(gaps_are_stitched) {
  open_plain(0);
  uintptr_t one = new_block(&pool, 2 * page), two = new_block(&pool, 4 * page);
  uintptr_t last = filled_block(2 * page, 1);
  umem_free(&pool, two);
  uintptr_t large = new_block(&pool, 7 * page); /* takes the pages of two */
  assert_true(reserved() == 11 * page && large > last);
  umem_free(&pool, one);
  assert_true(new_block(&pool, 6 * page) == one); /* where one and two were */
  assert_true(reserved() == 15 * page);
  assert_true(is_filled(last, 2 * page, 1));
  FREE(&pool, one, large, last);
}

/* Where the fewest pages have to be mapped or moved. */
PAGES_TEST(the_place_with_most_memory_serves) {
  size_t const sizes[] = {10 * page, 2 * page, 6 * page, 4 * page, 2 * page};
  uintptr_t adr[5];
  open_plain(0);
  for (int i = 0; i < 5; i++) adr[i] = new_block(&pool, sizes[i]);
  FREE(&pool, adr[0], adr[3]);
  assert_ok(umem_trim(&pool, 0));
  umem_free(&pool, adr[2]);
  unsigned long before = paged.calls[pagedMove];
  assert_true(new_block(&pool, 9 * page) == adr[2]);
  assert_true(paged.calls[pagedMove] == before && reserved() == 13 * page);
  FREE(&pool, adr[2], adr[1], adr[4]);
}

/* In RAM so few pages more than were ever in use spare the moves. A maximum and an upstream that
 * has no more come first. */
PAGES_TEST(a_few_pages_are_new_before_others_move) {
  for (int full = 0; full < 3; full++) {
    paged.capacity = full == 1 ? 140 : 0;
    open_plain(full == 2 ? 140 * page : 0);
    uintptr_t adr[70];
    for (int i = 0; i < 70; i++) adr[i] = filled_block(2 * page, (unsigned char)i);
    for (int i = 0; i < 4; i += 2) umem_free(&pool, adr[i]);
    unsigned long before = paged.calls[pagedMove];
    uintptr_t large = filled_block(4 * page, 99);
    assert_true(reserved() == (full ? 140 : 142) * page);
    assert_true(paged.calls[pagedMove] > before);
    for (int i = 0; i < 70; i++)
      assert_true((i < 4 && !(i % 2)) || is_filled(adr[i], 2 * page, (unsigned char)i));
    before = paged.calls[pagedMap]; /* an upstream that has no more is not asked each time */
    FREE(&pool, adr[5], adr[7]);
    adr[7] = filled_block(3 * page, 7);
    umem_free(&pool, adr[7]);
    adr[5] = filled_block(2 * page, 5);
    adr[7] = filled_block(2 * page, 7);
    assert_true(!full || paged.calls[pagedMap] == before);
    umem_free(&pool, large);
    for (int i = 0; i < 70; i++)
      if (i >= 4 || i % 2) umem_free(&pool, adr[i]);
    expect_nothing_left(&pool);
    forget_failures();
    umem_dtor(&pool);
  }
}

enum { pairs = 70 }; /* blocks of two pages */

/* Frees every other one of four blocks, allocates one of all their pages, and then theirs again. */
static void move_some(uintptr_t *adr, unsigned first) {
  unsigned const at[] = {first % pairs, (first + 2) % pairs};
  for (int i = 0; i < 2; i++) umem_free(&pool, adr[at[i]]);
  umem_free(&pool, filled_block(4 * page, 99));
  for (int i = 0; i < 2; i++) adr[at[i]] = filled_block(2 * page, (unsigned char)at[i]);
}

/* The pool takes the memory for that of a GPU, which it may not waste. */
static void become_a_gpu(void) { paged.super.capabilities &= ~(uint32_t)umemCpuWritable; }

/* On a GPU a pool that seldom moves pages has no more than it needs. One that does so more often
 * takes a few more, but not from a maximum or an upstream that has no more, which is not asked each
 * time. */
PAGES_TEST(pools_that_move_pages_take_a_few_more) {
  become_a_gpu();
  for (int full = 0; full < 3; full++) {
    paged.capacity = full == 1 ? 2 * pairs : 0;
    open_plain(full == 2 ? 2 * pairs * page : 0);
    uintptr_t adr[pairs];
    for (unsigned i = 0; i < pairs; i++) adr[i] = filled_block(2 * page, (unsigned char)i);
    unsigned long before = paged.calls[pagedMove];
    move_some(adr, 0);
    assert_true(paged.calls[pagedMove] > before && reserved() == 2 * pairs * page);
    for (unsigned first = 5; first < 50; first += 5) move_some(adr, first);
    assert_true(reserved() == (full ? 2 * pairs : 2 * pairs + 2) * page);
    before = paged.calls[pagedMap];
    move_some(adr, 50);
    assert_true(paged.calls[pagedMap] == before && reserved() <= (2 * pairs + 2) * page);
    for (unsigned i = 0; i < pairs; i++) {
      assert_true(is_filled(adr[i], 2 * page, (unsigned char)i));
      umem_free(&pool, adr[i]);
    }
    expect_nothing_left(&pool);
    forget_failures();
    umem_dtor(&pool);
  }
}

/* As many pages as blocks touch, however often a large one that comes and goes takes those of
 * others. */
PAGES_TEST(seldom_moves_cost_no_memory) {
  become_a_gpu();
  open_plain(0);
  uintptr_t adr[pairs];
  for (unsigned i = 0; i < pairs; i++) adr[i] = filled_block(2 * page, (unsigned char)i);
  for (unsigned round = 0; round < 400; round++) {
    if (round % 100 == 0) move_some(adr, round / 20);
    for (int i = 0; i < 60; i++) { /* a step, whose blocks need no move */
      uintptr_t work = adr[60];
      umem_free(&pool, work);
      adr[60] = filled_block(2 * page, 60);
      assert_true(adr[60] == work);
    }
    assert_true(reserved() == 2 * pairs * page);
  }
  free_blocks(&pool, adr, pairs);
}

static void open_sparing(size_t maximum, size_t spare) {
  umemPoolOptions options = UMEM_POOL_OPTIONS_INIT;
  options.maximum = maximum;
  options.spare = spare;
  assert_ok(umemPool_ctor(&pool, &paged, &options));
}

/* Frees every other one of 20 blocks of 2 pages, then allocates one of nbytes. Returns how many
 * calls moved pages. */
static unsigned long moves_for(size_t nbytes) {
  uintptr_t adr[20];
  for (int i = 0; i < 20; i++) adr[i] = filled_block(2 * page, (unsigned char)i);
  for (int i = 0; i < 20; i += 2) umem_free(&pool, adr[i]);
  unsigned long before = paged.calls[pagedMove];
  uintptr_t large = filled_block(nbytes, 99);
  for (int i = 1; i < 20; i += 2) {
    assert_true(is_filled(adr[i], 2 * page, (unsigned char)i));
    umem_free(&pool, adr[i]);
  }
  umem_free(&pool, large);
  return paged.calls[pagedMove] - before;
}

/* A pool that moves pages takes new ones, too, up to so many percent more than was in use, or to
 * its maximum. Then the moves end for which that suffices. */
PAGES_TEST(moved_pages_bring_new_ones) {
  size_t const spares[] = {10, 25, 25, 1000}, most[] = {0, 0, 45 * page, 0};
  size_t const pages[] = {43, 49, 45, 60};
  for (int i = 0; i < 4; i++) {
    open_sparing(most[i], spares[i]);
    assert_true(moves_for(10 * page) > 0 && reserved() == 40 * page);
    for (int round = 0; round < 3; round++) moves_for((size_t)(11 + round) * page);
    assert_true(reserved() > 40 * page && reserved() <= pages[i] * page);
    if (spares[i] == 1000) assert_int_equal(moves_for(9 * page), 0);
    umem_dtor(&pool);
  }
}

PAGES_TEST(wrong_spares_are_refused) {
  umemPoolOptions options = UMEM_POOL_OPTIONS_INIT;
  options.spare = 1001;
  expect_status(&pool, umemPool_ctor(&pool, &paged, &options), umemValueError,
                "spare is 1001 percent: at most 1000 are possible");
}

/* A program that was compiled before there was this member. */
PAGES_TEST(options_without_a_spare_have_the_default) {
  umemPoolOptions options = UMEM_POOL_OPTIONS_INIT;
  options.size = offsetof(umemPoolOptions, spare);
  options.spare = 1001;
  assert_ok(umemPool_ctor(&pool, &paged, &options));
  assert_true(moves_for(10 * page) > 0 && reserved() == 40 * page);
}

PAGES_TEST(options_count_in_pages) {
  paged.no_large = true;
  open_pool(&pool, &paged, 5 * page + 1, 8 * page, 0);
  assert_true(reserved() == 6 * page && stats_of(&pool).largest_free == 6 * page);
  uintptr_t adr[7];
  for (int i = 0; i < 3; i++) adr[i] = new_block(&pool, 2 * page);
  assert_true(reserved() == 6 * page);
  for (int i = 3; i < 7; i++) adr[i] = new_block(&pool, 2 * page);
  assert_true(reserved() == 14 * page);
  free_blocks(&pool, adr, 7);
}

PAGES_TEST(trim_keeps_what_it_shall) {
  open_plain(0);
  uintptr_t one = new_block(&pool, 10 * page), two = filled_block(2 * page, 1);
  umem_free(&pool, one);
  assert_ok(umem_trim(&pool, 5 * page));
  assert_true(reserved() == 5 * page && paged.pages == 5);
  assert_ok(umem_trim(&pool, 0));
  assert_true(reserved() == 2 * page && is_filled(two, 2 * page, 1));
  one = new_block(&pool, 10 * page);
  assert_true(reserved() == 12 * page);
  FREE(&pool, one, two);
  umem_dtor(&pool); /* with pages */
}

/* ---- tools ---- */

#pragma weak __lsan_do_recoverable_leak_check
int __lsan_do_recoverable_leak_check(void);

/* Where LeakSanitizer is: it sees what only a block of RAM points to. */
TEST_OF_PAGES(pointers_in_pages_are_seen) {
  void **block = (void **)new_block(&pool, 100);
  *block = malloc(123);
  assert_non_null(*block);
  if (__lsan_do_recoverable_leak_check) assert_int_equal(__lsan_do_recoverable_leak_check(), 0);
  free(*block);
  umem_free(&pool, (uintptr_t)block);
}

/* ---- addresses ---- */

PAGES_TEST(used_up_addresses_get_more) {
  paged.longest = 17 * page; /* 16 for blocks */
  open_plain(0);
  uintptr_t adr[10];
  for (unsigned i = 0; i < 10; i++) adr[i] = filled_block(9 * page, (unsigned char)i);
  assert_true(reserved() == 90 * page && stats_of(&pool).chunks == 10);
  for (unsigned i = 0; i < 10; i++) assert_true(is_filled(adr[i], 9 * page, (unsigned char)i));
  free_blocks(&pool, adr, 10);
  uintptr_t large = new_block(&pool, 16 * page); /* of pages of two ranges, and a new one */
  assert_true(reserved() == 91 * page);
  umem_free(&pool, large);
  paged.no_alloc = true;
  assert_true(umem_alloc(&pool, 17 * page) == 0); /* no range is so long */
  expect_failure(&pool, umemMemoryError, "no block here");
  umem_clear_status(&paged);
}

PAGES_TEST(alignments_are_kept) {
  open_plain(0);
  uintptr_t adr[40];
  size_t const alignments[] = {4096, 8192, 16384, 32768, 65536};
  for (unsigned i = 0; i < 40; i++) {
    adr[i] = umem_aligned_alloc(&pool, alignments[i % 5], page + 4096 * (size_t)(i % 7));
    assert_true(adr[i] && adr[i] % alignments[i % 5] == 0);
    if (i % 3) {
      umem_aligned_free(&pool, adr[i]);
      adr[i] = 0;
    }
  }
  for (unsigned i = 0; i < 40; i++) umem_aligned_free(&pool, adr[i]);
  uintptr_t large = umem_aligned_alloc(&pool, 1024 * page, page);
  assert_true(large && large % (1024 * page) == 0 &&
              paged.blocks <= 1); /* a chunk, but for chance */
  umem_aligned_free(&pool, large);
  assert_int_equal(paged.blocks, 0);
}

/* ---- out of memory ---- */

PAGES_TEST(the_maximum_is_used_up) {
  paged.no_alloc = true;
  open_plain(32 * page);
  uintptr_t adr[16];
  size_t const size = 2 * page;
  for (unsigned i = 0; i < 16; i++) adr[i] = filled_block(size - 4096 * (i % 2), (unsigned char)i);
  expect_no_block(&pool, umem_alloc(&pool, page + 1), umemMemoryError,
                  "the pool holds 2097152 of at most 2097152 bytes");
  for (unsigned i = 0; i < 16; i += 2) umem_free(&pool, adr[i]);
  uintptr_t large = filled_block(8 * page, 77); /* of pages that are free as a whole */
  for (unsigned i = 1; i < 16; i += 2)
    assert_true(is_filled(adr[i], size - 4096, (unsigned char)i));
  assert_true(paged.pages_peak == 32);
  umem_free(&pool, large);
  for (unsigned i = 1; i < 16; i += 2) umem_free(&pool, adr[i]);
}

PAGES_TEST(a_full_upstream_serves_what_fits) {
  paged.capacity = 10;
  paged.no_alloc = true;
  open_plain(0);
  uintptr_t one = filled_block(7 * page, 1), two = filled_block(2 * page, 2);
  umem_free(&pool, one);
  expect_no_block(&pool, umem_alloc(&pool, 10 * page), umemMemoryError, "no block here");
  umem_clear_status(&paged);
  assert_true(is_filled(two, 2 * page, 2));
  one = filled_block(8 * page, 3);
  assert_true(is_filled(two, 2 * page, 2) && reserved() == 10 * page);
  FREE(&pool, one, two);
}

PAGES_TEST(chunks_serve_where_pages_do_not) {
  open_plain(0);
  paged_fail(&paged, pagedReserve, 1, 0, umemNotSupportedError);
  paged.longest = 1; /* nor any other */
  uintptr_t one = filled_block(3 * page, 1);
  assert_true(paged.blocks == 1 && reserved() >= 3 * page);
  paged.longest = 0;
  uintptr_t two = filled_block(30 * page, 2);
  assert_true(paged.pages >= 27);
  paged_fail(&paged, pagedMap, 1, 0, umemNotSupportedError);
  uintptr_t three = filled_block(40 * page, 3);
  assert_true(paged.blocks == 2);
  assert_true(is_filled(one, 3 * page, 1) && is_filled(two, 30 * page, 2) &&
              is_filled(three, 40 * page, 3));
  FREE(&pool, one, two, three);
  expect_nothing_left(&pool);
  umem_clear_status(&paged);
}

/* Pages go back for it. */
PAGES_TEST(a_chunk_serves_where_pages_are_too_coarse) {
  size_t const rest = 40960;
  open_plain(4 * page + rest);
  umem_free(&pool, new_block(&pool, 4 * page));
  assert_true(reserved() == 4 * page);
  uintptr_t adr = filled_block(4 * page + rest, 1);
  assert_true(paged.blocks == 1 && paged.pages == 0 && reserved() == 4 * page + rest);
  umem_free(&pool, adr);
}
