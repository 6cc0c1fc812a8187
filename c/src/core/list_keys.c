/* list_keys.c - sorts the keys of a list of copies, and numbers what its items have in common: a
 * list over thousands of contexts takes time in proportion to its length. */
#include "core/copy.h"
#include "base/number.h"
#include "core/status.h"

#include <stdlib.h>
#include <string.h>

/* ---- sorting ---- */

typedef umemListKey Key;

enum { digit_bits = 11, digits = 1 << digit_bits, few_keys = 2 * umemListShort };

static bool is_sorted(Key const *keys, size_t count) {
  for (size_t i = 1; i < count; i++)
    if (umemListKey_is_before(&keys[i], &keys[i - 1])) return false;
  return true;
}

/* By insertion. */
static void sort_few(Key *keys, size_t count) {
  for (size_t i = 1; i < count; i++) {
    Key key = keys[i];
    size_t k = i;
    for (; k && umemListKey_is_before(&key, &keys[k - 1]); k--) keys[k] = keys[k - 1];
    keys[k] = key;
  }
}

static uint64_t digit_of(Key const *key, uint64_t least, unsigned shift, bool by_group) {
  return ((by_group ? key->group : key->first - least) >> shift) % digits;
}

/* By one digit, stable. */
static void sort_digit(Key const *from, Key *to, size_t count, uint64_t least, unsigned shift,
                       bool by_group) {
  size_t ends[digits] = {0};
  for (size_t i = 0; i < count; i++) ends[digit_of(&from[i], least, shift, by_group)]++;
  for (size_t k = 1; k < digits; k++) ends[k] += ends[k - 1];
  for (size_t i = count; i-- > 0;) to[--ends[digit_of(&from[i], least, shift, by_group)]] = from[i];
}

/* Sorts by all digits of values from 0 to most. Returns which of the two arrays has the result. */
static Key *sort_digits(Key *keys, Key *other, size_t count, uint64_t least, uint64_t most,
                        bool by_group) {
  for (unsigned shift = 0; shift < 64 && most >> shift; shift += digit_bits) {
    sort_digit(keys, other, count, least, shift, by_group);
    Key *sorted = other;
    other = keys;
    keys = sorted;
  }
  return keys;
}

/* By digits: Knuth, TAOCP 5.2.5, algorithm R. */
Key *umemListKey_sort(Key *keys, Key *room, size_t count) {
  if (is_sorted(keys, count)) return keys;
  if (count <= few_keys) {
    sort_few(keys, count);
    return keys;
  }
  uint64_t least = UINT64_MAX, most = 0, groups = 0;
  for (size_t i = 0; i < count; i++) {
    least = umem_lesser(least, keys[i].first);
    most = umem_greater(most, keys[i].first);
    groups = umem_greater(groups, keys[i].group);
  }
  Key *sorted = sort_digits(keys, room, count, least, most - least, false);
  return sort_digits(sorted, sorted == keys ? room : keys, count, 0, groups, true);
}

/* ---- tables ---- */

void umemListTable_begin(umemListTable *table) {
  table->heap = NULL;
  table->cells = NULL;
  table->count = table->last = 0;
  table->room = umemListFew;
}

void umemListTable_end(umemListTable *table) {
  free(table->heap);
  free(table->cells);
}

static bool is_key(umemListEntry const *entry, uint64_t const key[umemListWords]) {
  return entry->key[1] == key[1] && entry->key[2] == key[2] && entry->key[3] == key[3] &&
         entry->key[0] == key[0];
}

static uint64_t hash_of(uint64_t const key[umemListWords]) {
  uint64_t hash = 0;
  for (unsigned k = 0; k < umemListWords; k++) {
    hash = (hash ^ key[k]) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 32;
  }
  return hash;
}

/* The cell of key, or the free one where it would go. Of a table that has cells. */
static uint32_t *cell_of(umemListTable *table, uint64_t const key[umemListWords]) {
  size_t mask = table->capacity - 1, i = (size_t)hash_of(key) & mask;
  while (table->cells[i] && !is_key(&table->heap[table->cells[i] - 1], key)) i = (i + 1) & mask;
  return &table->cells[i];
}

bool umemList_fail_memory(umemList const *list) {
  return UMEM_FAIL(list->items->src, umemMemoryError, "no memory to sort the items");
}

/* Doubles the table. False, and a failure, without memory. */
static bool grow(umemList const *list, umemListTable *table) {
  size_t room = 2 * table->room, capacity = 2 * room;
  umemListEntry *entries = malloc(room * sizeof *entries);
  uint32_t *cells = calloc(capacity, sizeof *cells);
  if (!entries || !cells) {
    free(entries);
    free(cells);
    return umemList_fail_memory(list);
  }
  memcpy(entries, umemListTable_entries(table), table->count * sizeof *entries);
  free(table->heap);
  free(table->cells);
  table->heap = entries;
  table->cells = cells;
  table->room = room;
  table->capacity = capacity;
  for (size_t i = 0; i < table->count; i++) *cell_of(table, entries[i].key) = (uint32_t)i + 1;
  return true;
}

/* The number of key, or table->count. */
static size_t find_entry(umemListTable *table, uint64_t const key[umemListWords]) {
  umemListEntry const *entries = umemListTable_entries(table);
  if (table->last < table->count && is_key(&entries[table->last], key)) return table->last;
  if (table->cells) {
    uint32_t number = *cell_of(table, key);
    return number ? number - 1 : table->count;
  }
  size_t i = 0;
  while (i < table->count && !is_key(&entries[i], key)) i++;
  return i;
}

umemListEntry *umemListTable_take(umemListTable *table, umemList const *list,
                                  uint64_t const key[umemListWords], bool *is_new) {
  size_t number = find_entry(table, key);
  *is_new = number == table->count;
  if (*is_new) {
    if (number == table->room && !grow(list, table)) return NULL;
    umemListEntry *entry = &umemListTable_entries(table)[number];
    *entry = (umemListEntry){.same = (uint32_t)number};
    memcpy(entry->key, key, sizeof entry->key);
    table->count++;
    if (table->cells) *cell_of(table, key) = (uint32_t)number + 1;
  }
  table->last = (uint32_t)number;
  return &umemListTable_entries(table)[number];
}
