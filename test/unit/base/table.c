/* table.c - base/table.h: the hash table against a naive model, and without memory.
 *
 * Linked with -Wl,--wrap=calloc. */

#include "base/table.h"
#include "cases.h"
#include "random.h"
#include "wrap.h"

static bool no_memory;

WRAP(no_memory, NULL, void *, calloc, (size_t count, size_t size), (count, size))

enum { keys = 600 };

/* Offsets from 0 on, addresses, and keys whose home is among the last cells, so that searches
 * wrap. */
static uintptr_t key_of(size_t i) {
  uint64_t const inverse = 0xF1DE83E19937733Du; /* of the factor of umemTable_hash, modulo 2^64 */
  if (i % 3 == 0) return i * 16;
  if (i % 3 == 1) return (uintptr_t)0x7f0000000000 + i * 48;
  return (uintptr_t)((0x0FFFFFFFFFFFFFFFu - i) * inverse);
}

static void expect(umemTable const *table, uintptr_t const *model) {
  size_t count = 0, walked = 0;
  for (size_t i = 0; i < keys; i++) {
    umemTableCell const *cell = umemTable_find(table, key_of(i));
    assert_int_equal(cell != NULL, model[i] != 0);
    if (!cell) continue;
    assert_true(umemTable_key(cell) == key_of(i));
    assert_int_equal(cell->value, model[i]);
    count++;
  }
  assert_int_equal(table->count, count);
  for (size_t at = 0; umemTable_next(table, &at); at++) walked++;
  assert_int_equal(walked, count);
}

TEST_CASE(it_holds_what_was_put_and_not_removed) {
  umemTable table = {.count = 0};
  uintptr_t model[keys] = {0};
  uint64_t random = 1;
  for (int round = 0; round < 20000; round++) {
    size_t i = below(&random, keys);
    umemTableCell *cell = umemTable_find(&table, key_of(i));
    uintptr_t value = (uintptr_t)round + 1, old = 0;
    if (!cell) {
      assert_true(umemTable_insert(&table, key_of(i), value));
      model[i] = value;
    } else if (below(&random, 2)) {
      umemTable_remove(&table, cell);
      model[i] = 0;
    } else {
      assert_true(umemTable_put(&table, key_of(i), value, &old));
      assert_int_equal(old, model[i]);
      model[i] = value;
    }
    if (round % 500 == 0) expect(&table, model);
  }
  expect(&table, model);
  umemTable_clear(&table);
  assert_int_equal(table.count, 0);
  assert_null(umemTable_find(&table, key_of(0)));
}

TEST_CASE(an_empty_table_has_no_cells) {
  umemTable table = {.count = 0};
  size_t at = 0;
  assert_null(umemTable_find(&table, 0));
  assert_null(umemTable_next(&table, &at));
  umemTable_clear(&table);
}

/* Half of the cells are free after each insertion; one that finds no memory changes nothing. */
TEST_CASE(an_insertion_without_memory_changes_nothing) {
  umemTable table = {.count = 0};
  uintptr_t model[keys] = {0};
  int refused = 0;
  for (size_t i = 0; i < keys; i++) {
    no_memory = true;
    bool inserted = umemTable_insert(&table, key_of(i), i + 1);
    no_memory = false;
    if (!inserted) {
      refused++;
      expect(&table, model);
      assert_true(umemTable_insert(&table, key_of(i), i + 1));
    }
    model[i] = i + 1;
    assert_true(2 * table.count <= table.capacity);
  }
  assert_in_range(refused, 2, 10);
  expect(&table, model);
  umemTable_clear(&table);
}
