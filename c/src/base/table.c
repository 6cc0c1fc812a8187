/* table.c - what needs memory, and the walk through a table. */
#include "base/table.h"

#include <stdlib.h>

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
