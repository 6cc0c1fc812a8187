/* table.c - grows, walks and empties hash tables, and prepares, fills and empties maps of pages. */
#include "base/table.h"

#include <stdlib.h>

/* ==== hash tables: what needs memory, and the walk ==== */

enum { first_capacity = 64 };

bool umemTable_resize(umemTable *table, size_t capacity) {
  umemTable other = {.capacity = capacity, .shift = 64};
  uintptr_t none;
  other.cells = calloc(capacity, sizeof *other.cells);
  if (!other.cells) return false;
  for (size_t n = capacity; n > 1; n /= 2) other.shift--;
  umemTableCell const *cell;
  for (size_t at = 0; (cell = umemTable_next(table, &at)); at++)
    umemTable_put(&other, umemTable_key(cell), cell->value, &none);
  free(table->cells);
  *table = other;
  return true;
}

umemTableCell *umemTable_containing(umemTable const *table, uintptr_t adr) {
  umemTableCell *cell = adr < UINTPTR_MAX ? umemTable_find(table, adr) : NULL;
  if (cell) return cell;
  for (size_t at = 0; (cell = umemTable_next(table, &at)); at++)
    if (adr - umemTable_key(cell) < cell->value) return cell;
  return NULL;
}

bool umemTable_insert(umemTable *table, uintptr_t key, uintptr_t value) {
  uintptr_t none;
  if (2 * (table->count + 1) > table->capacity &&
      !umemTable_resize(table, table->capacity ? 2 * table->capacity : first_capacity))
    return false;
  umemTable_put(table, key, value, &none);
  return true;
}

umemTableCell *umemTable_next(umemTable const *table, size_t *from) {
  for (; *from < table->capacity; ++*from)
    if (table->cells[*from].key_plus_1) return &table->cells[*from];
  return NULL;
}

void umemTable_clear(umemTable *table) {
  free(table->cells);
  *table = (umemTable){.count = 0};
}

/* ==== maps of pages ==== */

enum { first_cells = 16 };

static umemPageLeaves *new_leaves(size_t cells) {
  umemPageLeaves *leaves = calloc(1, sizeof *leaves + cells * sizeof(umemPageLeafCell));
  if (leaves) leaves->mask = cells - 1;
  return leaves;
}

bool umemPageMap_init(umemPageMap *map) {
  map->leaves = new_leaves(first_cells);
  return map->leaves != NULL;
}

void umemPageMap_clear(umemPageMap *map) {
  umemPageLeaves *leaves = map->leaves;
  for (size_t i = 0; i <= leaves->mask; i++) {
    free(leaves->cells[i].leaf);
    leaves->cells[i].leaf = NULL;
  }
  leaves->count = 0;
  for (umemPageLeaves *older; (older = leaves->older);) {
    leaves->older = older->older;
    free(older);
  }
}

void umemPageMap_fini(umemPageMap *map) {
  if (!map->leaves) return;
  umemPageMap_clear(map);
  free(map->leaves);
  map->leaves = NULL;
}

/* A reader that sees the leaf sees its region too. */
static void insert(umemPageLeaves *leaves, uint64_t region, umemPageLeaf *leaf) {
  size_t i = umemPageMap_home(leaves, region);
  while (leaves->cells[i].leaf) i = (i + 1) & leaves->mask;
  leaves->cells[i].region = region;
  __atomic_store_n(&leaves->cells[i].leaf, leaf, __ATOMIC_RELEASE);
  leaves->count++;
}

static bool grow(umemPageMap *map) {
  umemPageLeaves *old = map->leaves;
  umemPageLeaves *larger = new_leaves(2 * (old->mask + 1));
  if (!larger) return false;
  for (size_t i = 0; i <= old->mask; i++)
    if (old->cells[i].leaf) insert(larger, old->cells[i].region, old->cells[i].leaf);
  larger->older = old;
  __atomic_store_n(&map->leaves, larger, __ATOMIC_RELEASE);
  return true;
}

static bool add_leaf(umemPageMap *map, uint64_t region) {
  if (2 * (map->leaves->count + 1) > map->leaves->mask + 1 && !grow(map)) return false;
  umemPageLeaf *leaf = calloc(1, sizeof *leaf);
  if (!leaf) return false;
  insert(map->leaves, region, leaf);
  return true;
}

bool umemPageMap_prepare(umemPageMap *map, uint64_t page, uint64_t count) {
  uint64_t last = (page + count - 1) >> umemPageLeafShift;
  for (uint64_t region = page >> umemPageLeafShift; region <= last; region++)
    if (!umemPageMap_leaf(map, region) && !add_leaf(map, region)) return false;
  return true;
}

void umemPageMap_set(umemPageMap *map, uint64_t page, uint64_t count, uintptr_t word) {
  for (uint64_t end = page + count; page < end; page++)
    __atomic_store_n(umemPageMap_word(map, (uintptr_t)(page << umemPageShift)), word,
                     __ATOMIC_RELEASE);
}
