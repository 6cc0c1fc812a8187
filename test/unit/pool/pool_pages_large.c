/* pool_pages_large.c - pools with the option growth over contexts that have large pages: these are
 * mapped and moved as a whole, and take no more memory. */
#include "pool_pages_help.h"

enum { group = pagedGroup, large = pagedLarge };

static unsigned long calls(PagedCall call) { return paged.calls[call]; }

/* Pages of two sizes. */
static void open_large(size_t maximum) {
  paged.no_middle = true;
  open_pool(&pool, &paged, 0, large, maximum);
}

static void close_empty(uintptr_t const *adr, size_t count) {
  free_blocks(&pool, adr, count);
  close_pool(&pool);
  assert_int_equal(paged.pages, 0);
}

/* ---- where they come ---- */

PAGES_TEST(only_a_large_growth_gets_large_pages) {
  size_t const growths[] = {0, large - 1, large};
  paged.no_middle = true;
  for (size_t i = 0; i < 3; i++) {
    memset(paged.calls, 0, sizeof paged.calls);
    open_pool(&pool, &paged, 0, growths[i], 0);
    uintptr_t adr = filled_block(4 * large, 1);
    assert_int_equal(calls(pagedMapLarge) > 0, growths[i] == large);
    assert_int_equal(calls(pagedMap) > 0, growths[i] != large);
    assert_true(reserved() == 4 * large && paged.pages == 4 * group);
    close_empty(&adr, 1);
  }
}

/* What a block does not fill is for the next one, up to where a large page ends. */
PAGES_TEST(growth_ends_with_a_large_page) {
  size_t const sizes[] = {2 * page, 3 * page, 2 * page};
  uintptr_t adr[3];
  open_large(0);
  for (int i = 0; i < 3; i++) adr[i] = filled_block(sizes[i], (unsigned char)i);
  assert_true(calls(pagedMap) == 0 && reserved() == 2 * large);
  for (int i = 0; i < 3; i++) assert_true(is_filled(adr[i], sizes[i], (unsigned char)i));
  close_empty(adr, 3);
}

/* A block that is larger than the growth takes what it needs: others at its end. */
PAGES_TEST(a_larger_block_takes_what_it_needs) {
  open_large(0);
  uintptr_t adr[] = {filled_block(2 * large + 3 * page, 1), 0};
  assert_true(calls(pagedMapLarge) == 1 && calls(pagedMap) == 1);
  assert_true(reserved() == 2 * large + 3 * page);
  adr[1] = filled_block(3 * large, 2); /* large ones begin with any page */
  assert_true(calls(pagedMapLarge) == 2 && calls(pagedMap) == 1);
  assert_true(reserved() == 5 * large + 3 * page);
  close_empty(adr, 2);
}

PAGES_TEST(no_more_than_the_maximum_is_mapped) {
  open_large(2 * large + 2 * page);
  uintptr_t adr[] = {filled_block(2 * large, 1), filled_block(2 * page, 2)};
  assert_true(reserved() == 2 * large + 2 * page && paged.pages == 2 * group + 2);
  assert_true(!umem_alloc(&pool, 2 * page));
  forget_failures();
  close_empty(adr, 2);
}

/* ---- where they go ---- */

PAGES_TEST(large_pages_move_as_a_whole) {
  open_large(0);
  uintptr_t adr[] = {filled_block(2 * large, 1), filled_block(large, 2), 0};
  umem_free(&pool, adr[0]);
  adr[0] = filled_block(4 * large, 3);
  assert_true(calls(pagedMoveLarge) == 1 && calls(pagedMove) == 0);
  assert_true(reserved() == 5 * large);
  assert_true(is_filled(adr[1], large, 2) && is_filled(adr[0], 4 * large, 3));
  close_empty(adr, 2);
}

/* A part of a large page is in use: all of it stays. */
PAGES_TEST(large_pages_in_use_stay) {
  open_large(0);
  uintptr_t adr[] = {filled_block(2 * page, 1), filled_block(2 * page, 2),
                     filled_block(2 * large, 3), filled_block(2 * page, 4)};
  umem_free(&pool, adr[0]); /* half of a large page */
  umem_free(&pool, adr[2]);
  adr[0] = filled_block(3 * large, 5);
  assert_true(calls(pagedMoveLarge) == 1 && calls(pagedMove) == 0);
  assert_true(reserved() == 4 * large + 2 * page);
  adr[2] = filled_block(2 * page, 6); /* which serves others */
  assert_true(reserved() == 4 * large + 2 * page);
  assert_true(is_filled(adr[1], 2 * page, 2) && is_filled(adr[3], 2 * page, 4));
  assert_true(is_filled(adr[0], 3 * large, 5));
  close_empty(adr, 4);
}

/* Blocks in all that a pool may have. Two of them are freed, each a large page between others. */
enum { few = 7, at_most = 4 * large + 2 * page };
static void leave_two_large_pages(uintptr_t adr[few]) {
  size_t const sizes[few] = {large, 2 * page, 2 * page, large, 2 * page, 2 * page, 2 * page};
  open_large(at_most);
  for (int i = 0; i < few; i++) adr[i] = filled_block(sizes[i], (unsigned char)i);
  assert_true(reserved() == at_most);
  FREE(&pool, adr[0], adr[3]);
  adr[0] = adr[3] = 0;
}

/* Of the gap only one part can be a large page, and to hold two it would have to be much larger.
 * The memory of another one goes back, and comes anew: the pool has no more than before. */
PAGES_TEST(smaller_gaps_get_new_memory_for_it) {
  uintptr_t adr[few];
  for (size_t size = large + page; size <= large + 2 * page; size += page) {
    memset(paged.calls, 0, sizeof paged.calls);
    leave_two_large_pages(adr);
    adr[0] = filled_block(size, 9);
    assert_true(calls(pagedMoveLarge) == 1 && calls(pagedUnmapLarge) == 1);
    assert_true(reserved() == at_most - 2 * large + size && paged.pages_peak == at_most / page);
    assert_true(is_filled(adr[0], size, 9));
    for (int i = 1; i < few; i++)
      assert_true(i == 3 || is_filled(adr[i], 2 * page, (unsigned char)i));
    close_empty(adr, few);
  }
}

/* A gap that nearly has room for two large pages becomes larger: to move them takes less time. */
PAGES_TEST(large_pages_move_to_larger_gaps) {
  uintptr_t adr[few];
  memset(paged.calls, 0, sizeof paged.calls);
  leave_two_large_pages(adr);
  adr[0] = filled_block(2 * large - page, 9);
  assert_true(calls(pagedUnmapLarge) == 0 && calls(pagedMove) == 0 && reserved() == at_most);
  assert_true(is_filled(adr[0], 2 * large - page, 9));
  close_empty(adr, few);
}

/* Several small pages that could move go back for large ones, which will move faster. */
PAGES_TEST(large_pages_take_the_place_of_small_ones) {
  enum { blocks = 20 };
  uintptr_t adr[blocks];
  paged.no_middle = true;
  assert_ok(umemPool_ctor(&pool, &paged, NULL));
  for (int i = 0; i < blocks; i++) adr[i] = filled_block(2 * page, (unsigned char)i);
  for (int i = 0; i < blocks; i += 2) {
    umem_free(&pool, adr[i]);
    adr[i] = 0;
  }
  adr[0] = filled_block(4 * large, 99);
  assert_true(calls(pagedUnmap) > 0 && calls(pagedMove) == 0 && calls(pagedMapLarge) == 1);
  assert_true(reserved() == 2 * blocks * page && is_filled(adr[0], 4 * large, 99));
  for (int i = 1; i < blocks; i += 2) assert_true(is_filled(adr[i], 2 * page, (unsigned char)i));
  close_empty(adr, blocks);
}

PAGES_TEST(what_does_not_go_back_does_not_come_anew) {
  uintptr_t adr[few];
  leave_two_large_pages(adr);
  paged_fail(&paged, pagedUnmapLarge, 1, 0, umemMemoryError);
  adr[0] = umem_alloc(&pool, large + 2 * page);
  assert_true(calls(pagedUnmapLarge) > 0);
  assert_true(reserved() <= at_most && paged.pages_peak == at_most / page);
  forget_failures();
  for (int i = 1; i < few; i++)
    assert_true(i == 3 || is_filled(adr[i], 2 * page, (unsigned char)i));
  close_empty(adr, few);
}

PAGES_TEST(trim_gives_back_whole_ones) {
  open_large(0);
  uintptr_t adr[] = {new_block(&pool, 2 * large), filled_block(2 * page, 2)};
  umem_free(&pool, adr[0]);
  assert_ok(umem_trim(&pool, 2 * large + page)); /* a part of one */
  assert_true(reserved() == 3 * large);
  assert_ok(umem_trim(&pool, 2 * large));
  assert_true(reserved() == 2 * large && calls(pagedUnmapLarge) == 1);
  assert_ok(umem_trim(&pool, 0));
  assert_true(reserved() == large && is_filled(adr[1], 2 * page, 2));
  close_empty(adr + 1, 1);
}

/* ---- adaptors ---- */

/* Each large page is one block for them. */
PAGES_TEST(adaptors_count_large_pages) {
  umemStats stats;
  umemStatsFigures found = UMEM_STATS_FIGURES_INIT;
  paged.no_middle = true;
  CONTEXT(umemLimit, limit, &paged, 4 * large);
  assert_ok(umemStats_ctor(&stats, &limit));
  open_pool(&pool, &stats, 0, large, 0);
  uintptr_t adr[] = {filled_block(2 * large, 1), filled_block(large, 2)};
  assert_true(calls(pagedMapLarge) == 2 && umemLimit_used(&limit) == 3 * large);
  umem_free(&pool, adr[0]);
  adr[0] = filled_block(3 * large, 3);
  assert_true(calls(pagedMoveLarge) == 1 && umemLimit_used(&limit) == 4 * large);
  assert_ok(umemStats_get(&stats, &found));
  assert_true(found.current_count == 4 && found.current_bytes == 4 * large);
  assert_true(!umem_alloc(&pool, 2 * large) && umem_thread_status() == umemMemoryError);
  forget_failures();
  umem_clear_status(&stats);
  umem_clear_status(&limit);
  close_empty(adr, 2);
  umem_dtor(&stats);
  assert_int_equal(umemLimit_used(&limit), 0);
}

/* ---- at random ---- */

enum { most_blocks = 32, most_pages = 150 };

/* The bytes of all blocks stay. The pool's figure is what there is, and never above its maximum.
 * longest: of a range. */
static void use_at_random(size_t longest, bool middle) {
  static Block blocks[most_blocks];
  uint64_t seed = 21, refused = 0;
  uint64_t const rounds = setting_small() ? 1500 : setting_operations(4000);
  memset(paged.calls, 0, sizeof paged.calls);
  paged.no_alloc = true;
  paged.longest = longest;
  open_large(most_pages * page);
  if (middle) {
    umem_dtor(&pool);
    paged.no_middle = false;
    open_pool(&pool, &paged, 0, large, most_pages * page);
  }
  for (uint64_t round = 0; round < rounds; round++) {
    Block *block = &blocks[below(&seed, most_blocks)];
    if (block->adr) {
      assert_true(is_whole(block));
      umem_free(&pool, block->adr);
      block->adr = 0;
    } else {
      size_t size = page + 4096 + below(&seed, (below(&seed, 4) ? 6 : 40) * page);
      *block = try_block(size, (unsigned char)round);
      if (!block->adr) refused++;
      forget_failures();
    }
    if (below(&seed, 400) == 0) assert_ok(umem_trim(&pool, below(&seed, most_pages) * page));
    if (paged.misuse[0]) fail_msg("round %zu: %s", (size_t)round, paged.misuse);
    assert_true(reserved() == paged.pages * page && paged.pages <= most_pages);
  }
  assert_true(refused > rounds / 100 && refused < rounds / 2);
  assert_true(calls(pagedMoveLarge) > rounds / 200 && calls(pagedUnmapLarge) > rounds / 200);
  for (int i = 0; i < most_blocks; i++) {
    umem_free(&pool, blocks[i].adr);
    blocks[i].adr = 0;
  }
  close_empty(NULL, 0);
}

/* Also where ranges end with pages that are no whole large one, and pages move from range to range,
 * and with pages of a third size. */
PAGES_TEST(blocks_keep_their_bytes) {
  for (int middle = 0; middle < 2; middle++) {
    use_at_random(0, middle);
    use_at_random(51 * page, middle);
  }
}
