/* table.c - see table.h. */
#include "base/table.h"

#include <stdlib.h>

enum { first_capacity = 64 };

static size_t home(umemTable const *table, uintptr_t key) {
  uint64_t mixed = (uint64_t)key * 0x9E3779B97F4A7C15u; /* 2^64 / golden ratio: Knuth, TAOCP 6.4 */
  return (size_t)(mixed >> 32) & (table->capacity - 1);
}

/* The cell of key, or the free cell where it would go. */
static umemTableCell *cell_of(umemTable const *table, uintptr_t key) {
  size_t i = home(table, key);
  while (table->cells[i].key != key && table->cells[i].key != table->null)
    i = (i + 1) & (table->capacity - 1);
  return &table->cells[i];
}

static bool grow(umemTable *table) {
  umemTable larger = {table->capacity ? 2 * table->capacity : first_capacity, table->count,
                      table->null, NULL};
  larger.cells = malloc(larger.capacity * sizeof *larger.cells);
  if (!larger.cells) return false;
  for (size_t i = 0; i < larger.capacity; i++) larger.cells[i].key = table->null;
  for (size_t i = 0; i < table->capacity; i++)
    if (table->cells[i].key != table->null)
      *cell_of(&larger, table->cells[i].key) = table->cells[i];
  free(table->cells);
  *table = larger;
  return true;
}

bool umemTable_insert(umemTable *table, uintptr_t key, uintptr_t value) {
  if (2 * (table->count + 1) > table->capacity && !grow(table)) return false;
  *cell_of(table, key) = (umemTableCell){key, value};
  table->count++;
  return true;
}

umemTableCell *umemTable_find(umemTable const *table, uintptr_t key) {
  umemTableCell *cell = table->count ? cell_of(table, key) : NULL;
  return cell && cell->key == key ? cell : NULL;
}

/* Moves back the cells that had to go past this one (Knuth, TAOCP 6.4, algorithm R). */
void umemTable_remove(umemTable *table, umemTableCell *cell) {
  size_t mask = table->capacity - 1;
  size_t hole = (size_t)(cell - table->cells);
  for (size_t i = (hole + 1) & mask; table->cells[i].key != table->null; i = (i + 1) & mask) {
    size_t wanted = home(table, table->cells[i].key);
    if (((i - wanted) & mask) < ((i - hole) & mask)) continue;
    table->cells[hole] = table->cells[i];
    hole = i;
  }
  table->cells[hole].key = table->null;
  table->count--;
}

umemTableCell *umemTable_next(umemTable const *table, size_t *from) {
  for (; *from < table->capacity; ++*from)
    if (table->cells[*from].key != table->null) return &table->cells[*from];
  return NULL;
}

void umemTable_clear(umemTable *table) {
  free(table->cells);
  *table = (umemTable){.null = table->null};
}
