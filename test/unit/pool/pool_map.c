/* pool_map.c - base/table.h: pages all over the address space, and readers beside the writer. */
#include "base/table.h"

#include "pool_help.h"

enum { count = 3000 };

static umemPageMap map;

static void begin(void **state UNUSED) { assert_true(umemPageMap_init(&map)); }

static void end(void **state UNUSED) { umemPageMap_fini(&map); }

#define MAP_TEST(name) TEST_CASE_WITH(name, begin, end)

/* Any 64-bit address, but often ones that are near to each other. */
static uint64_t some_page(uint64_t *random) {
  return random64(random) >> (umemPageShift + below(random, 48));
}

MAP_TEST(finds_what_was_set) {
  static uint64_t pages[count];
  static int names[count];
  uint64_t random = 1;
  for (int i = 0; i < count; i++) pages[i] = some_page(&random);
  for (int i = 0; i < count; i++) {
    assert_true(umemPageMap_prepare(&map, pages[i], 1));
    assert_true(umemPageMap_prepare(&map, pages[i], 1));
    umemPageMap_set(&map, pages[i], 1, 0);
  }
  for (int i = 0; i < count; i++) umemPageMap_set(&map, pages[i], 1, (uintptr_t)&names[i]);
  for (int i = 0; i < count; i++) {
    int *found = (int *)umemPageMap_find(&map, (uintptr_t)(pages[i] << umemPageShift | 4711));
    assert_true(found >= &names[i] && pages[found - names] == pages[i]); /* some are there twice */
  }
  for (int i = 0; i < count; i++) umemPageMap_set(&map, pages[i], 1, 0);
  for (int i = 0; i < count; i++)
    assert_true(!umemPageMap_find(&map, (uintptr_t)(pages[i] << umemPageShift)));
}

/* As if it were new; and it can be used again. */
MAP_TEST(finds_nothing_when_it_is_cleared) {
  for (int round = 0; round < 2; round++) {
    for (uint64_t i = 0; i < count; i++) { /* a leaf each */
      assert_true(!umemPageMap_word(&map, (uintptr_t)(i << 30)));
      assert_true(umemPageMap_prepare(&map, i << 14, 1));
      umemPageMap_set(&map, i << 14, 1, 4711);
    }
    umemPageMap_clear(&map);
  }
  assert_true(!umemPageMap_word(&map, 0));
}

/* A span of several pages may begin in one leaf and end in the next. */
MAP_TEST(sets_runs) {
  uint64_t const border = UINT64_C(5) << umemPageLeafShift;
  assert_true(umemPageMap_prepare(&map, border - 3, 8));
  umemPageMap_set(&map, border - 3, 8, 4711);
  for (uint64_t page = border - 6; page < border + 8; page++) {
    bool inside = page >= border - 3 && page < border + 5;
    uintptr_t found = umemPageMap_find(&map, (uintptr_t)(page << umemPageShift));
    assert_true(found == (inside ? 4711 : 0));
  }
  assert_true(!umemPageMap_find(&map, UINTPTR_MAX));
}

static bool stop; /* atomic */

/* Returns NULL if it has found something else. */
static void *read_first_page(void *right) {
  while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
    if (umemPageMap_find(&map, 0) != 4711) right = NULL;
  return right;
}

/* The table is outgrown again and again while others read. */
MAP_TEST(readers_need_no_lock) {
  assert_true(umemPageMap_prepare(&map, 0, 1));
  umemPageMap_set(&map, 0, 1, 4711);
  pthread_t thread = start_thread(read_first_page, &map);
  for (uint64_t region = 1; region < 5000; region++)
    assert_true(umemPageMap_prepare(&map, region << umemPageLeafShift, 1));
  __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
  assert_non_null(join_thread(thread));
}
