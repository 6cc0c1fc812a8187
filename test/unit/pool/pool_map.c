/* pool_map.c - base/table.h: pages all over the address space, and readers beside the writer. */
#include "base/table.h"

#include "pool_help.h"

enum { count = 3000 };

/* Any 64-bit address, but often ones that are near to each other. */
static uint64_t some_page(uint64_t *random) {
  return random64(random) >> (umemPageShift + below(random, 48));
}

TEST_CASE(finds_what_was_set) {
  static uint64_t pages[count];
  static int names[count];
  umemPageMap map;
  uint64_t random = 1;
  assert_true(umemPageMap_init(&map));
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
  umemPageMap_fini(&map);
}

/* As if it were new; and it can be used again. */
TEST_CASE(finds_nothing_when_it_is_cleared) {
  umemPageMap map;
  assert_true(umemPageMap_init(&map));
  for (int round = 0; round < 2; round++) {
    for (uint64_t i = 0; i < count; i++) { /* a leaf each */
      assert_true(!umemPageMap_word(&map, (uintptr_t)(i << 30)));
      assert_true(umemPageMap_prepare(&map, i << 14, 1));
      umemPageMap_set(&map, i << 14, 1, 4711);
    }
    umemPageMap_clear(&map);
  }
  assert_true(!umemPageMap_word(&map, 0));
  umemPageMap_fini(&map);
}

/* A span of several pages may begin in one leaf and end in the next. */
TEST_CASE(sets_runs) {
  umemPageMap map;
  uint64_t const border = UINT64_C(5) << umemPageLeafShift;
  assert_true(umemPageMap_init(&map));
  assert_true(umemPageMap_prepare(&map, border - 3, 8));
  umemPageMap_set(&map, border - 3, 8, 4711);
  for (uint64_t page = border - 6; page < border + 8; page++) {
    bool inside = page >= border - 3 && page < border + 5;
    uintptr_t found = umemPageMap_find(&map, (uintptr_t)(page << umemPageShift));
    assert_true(found == (inside ? 4711 : 0));
  }
  assert_true(!umemPageMap_find(&map, UINTPTR_MAX));
  umemPageMap_fini(&map);
}

typedef struct Reader {
  umemPageMap *map;
  bool stop, right; /* atomic */
} Reader;

static void *read_first_page(void *argument) {
  Reader *self = argument;
  while (!__atomic_load_n(&self->stop, __ATOMIC_RELAXED))
    if (umemPageMap_find(self->map, 0) != 4711) self->right = false;
  return NULL;
}

/* The table is outgrown again and again while others read. */
TEST_CASE(readers_need_no_lock) {
  umemPageMap map;
  assert_true(umemPageMap_init(&map) && umemPageMap_prepare(&map, 0, 1));
  umemPageMap_set(&map, 0, 1, 4711);
  Reader reader = {&map, false, true};
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, read_first_page, &reader), 0);
  for (uint64_t region = 1; region < 5000; region++)
    assert_true(umemPageMap_prepare(&map, region << umemPageLeafShift, 1));
  __atomic_store_n(&reader.stop, true, __ATOMIC_RELAXED);
  pthread_join(thread, NULL);
  assert_true(reader.right);
  umemPageMap_fini(&map);
}

int main(void) { return run_cases(NULL, NULL); }
