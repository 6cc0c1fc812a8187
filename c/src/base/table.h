/* table.h - a hash table from one address to another number: open addressing, linear probing.
 *
 * Not thread-safe. Keys equal to the null that the table was made with cannot be stored. */
#ifndef UMEM_TABLE_H
#define UMEM_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct umemTableCell {
  uintptr_t key; /* null: free cell */
  uintptr_t value;
} umemTableCell;

/* All zero is an empty table whose null is 0. */
typedef struct umemTable {
  size_t capacity; /* 0 or a power of two, at least twice count */
  size_t count;
  uintptr_t null;
  umemTableCell *cells; /* owned */
} umemTable;

/* Stores key, which is not in the table. False, with nothing changed, without memory. */
bool umemTable_insert(umemTable *table, uintptr_t key, uintptr_t value);

/* The cell of key, until the next insertion or removal; NULL where there is none. */
umemTableCell *umemTable_find(umemTable const *table, uintptr_t key);

/* Removes a cell that find has returned. */
void umemTable_remove(umemTable *table, umemTableCell *cell);

/* The first cell in use at or after place *from, which becomes its place; NULL where there is none. Walks
 * through a table that does not change: start with 0, and add 1 for the next. */
umemTableCell *umemTable_next(umemTable const *table, size_t *from);

/* Releases the cells: the table is empty. */
void umemTable_clear(umemTable *table);

#endif
