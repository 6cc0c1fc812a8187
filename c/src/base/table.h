/* table.h - a hash table from one address to another number: open addressing, linear probing.
 *
 * Keys are addresses or offsets; UINTPTR_MAX cannot be stored. A cell holds its key plus 1, so that
 * 0 stands for a free cell and cells come from calloc. The home of a key is in the bits of its hash
 * below the upper umemTableSkip, which are left to an owner that spreads its keys over several
 * tables.
 *
 * For owners that have a lock of their own, and that know their keys exactly. Not thread-safe.
 * Knuth, TAOCP 6.4: multiplicative hashing, algorithms L and R. */
#ifndef UMEM_TABLE_H
#define UMEM_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { umemTableSkip = 4 };

typedef struct umemTableCell {
  uintptr_t key_plus_1; /* 0: free cell */
  uintptr_t value;
} umemTableCell;

/* All zero is an empty table. */
typedef struct umemTable {
  umemTableCell *cells; /* owned; NULL while capacity is 0 */
  size_t capacity;      /* 0 or a power of two */
  size_t count;         /* below capacity: a search ends at a free cell */
  unsigned shift;       /* makes a home of a hash */
} umemTable;

static inline uintptr_t umemTable_key(umemTableCell const *cell) { return cell->key_plus_1 - 1; }

/* By 2^64 / golden ratio. */
static inline uint64_t umemTable_hash(uintptr_t key) { return (uint64_t)key * 0x9E3779B97F4A7C15u; }

static inline size_t umemTable_home(umemTable const *table, uint64_t hash) {
  return (size_t)(hash << umemTableSkip >> table->shift);
}

/* The cell of key, or the free one where it would go. Of a table that has cells. */
static inline umemTableCell *umemTable_seek(umemTable const *table, uintptr_t key, uint64_t hash) {
  size_t i = umemTable_home(table, hash);
  while (table->cells[i].key_plus_1 && table->cells[i].key_plus_1 != key + 1)
    i = (i + 1) & (table->capacity - 1);
  return &table->cells[i];
}

/* The cell of key, whose hash the caller has, until the next change; NULL where there is none. */
static inline umemTableCell *umemTable_find_hashed(umemTable const *table, uintptr_t key,
                                                   uint64_t hash) {
  umemTableCell *cell = table->capacity ? umemTable_seek(table, key, hash) : NULL;
  return cell && cell->key_plus_1 ? cell : NULL;
}

static inline umemTableCell *umemTable_find(umemTable const *table, uintptr_t key) {
  return umemTable_find_hashed(table, key, umemTable_hash(key));
}

/* Sets the value of key, whose hash the caller has; if key is not in the table yet, at least two
 * cells must be free. Returns whether it was there, with *old. */
static inline bool umemTable_put_hashed(umemTable *table, uintptr_t key, uint64_t hash,
                                        uintptr_t value, uintptr_t *old) {
  umemTableCell *cell = umemTable_seek(table, key, hash);
  bool was = cell->key_plus_1;
  if (was) *old = cell->value;
  *cell = (umemTableCell){key + 1, value};
  table->count += !was;
  return was;
}

static inline bool umemTable_put(umemTable *table, uintptr_t key, uintptr_t value, uintptr_t *old) {
  return umemTable_put_hashed(table, key, umemTable_hash(key), value, old);
}

/* Frees a cell that find has returned, and moves later ones up to where a search finds them. */
static inline void umemTable_remove(umemTable *table, umemTableCell *cell) {
  umemTableCell *cells = table->cells;
  size_t mask = table->capacity - 1, hole = (size_t)(cell - cells);
  for (size_t i = (hole + 1) & mask; cells[i].key_plus_1; i = (i + 1) & mask) {
    size_t home = umemTable_home(table, umemTable_hash(umemTable_key(&cells[i])));
    if (((i - home) & mask) < ((i - hole) & mask)) continue; /* its home is behind the hole */
    cells[hole] = cells[i];
    hole = i;
  }
  cells[hole].key_plus_1 = 0;
  table->count--;
}

/* Gives the table so many cells: a power of two above count. False, with nothing changed,
 * without memory. */
bool umemTable_resize(umemTable *table, size_t capacity);

/* Stores key, which is not in the table, and keeps half of the cells free. False, with nothing
 * changed, without memory. */
bool umemTable_insert(umemTable *table, uintptr_t key, uintptr_t value);

/* The first cell in use at or after place *from, which becomes its place; NULL where there is
 * none. Walks through a table that does not change: start with 0, and add 1 for the next. */
umemTableCell *umemTable_next(umemTable const *table, size_t *from);

/* Releases the cells: the table is empty. */
void umemTable_clear(umemTable *table);

#endif
