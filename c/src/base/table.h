/* table.h - numbers by addresses: a hash table for owners with a lock, and a map of pages that is
 * read without one.
 *
 * The hash table has open addressing and linear probing. Keys are addresses or offsets; UINTPTR_MAX
 * cannot be stored. A cell holds its key plus 1, so that 0 stands for a free cell and cells come
 * from calloc. The home of a key is in the bits of its hash below the upper umemTableSkip, which
 * are left to an owner that spreads its keys over several tables.
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

/* The cell of key, whose home is the place `home`, or the free one where it would go. Of a table
 * that has cells. */
static inline umemTableCell *umemTable_seek(umemTable const *table, uintptr_t key, size_t home) {
  size_t i = home;
  while (table->cells[i].key_plus_1 && table->cells[i].key_plus_1 != key + 1)
    i = (i + 1) & (table->capacity - 1);
  return &table->cells[i];
}

/* The cell of key, whose hash the caller has, until the next change; NULL where there is none. */
static inline umemTableCell *umemTable_find_hashed(umemTable const *table, uintptr_t key,
                                                   uint64_t hash) {
  umemTableCell *cell =
      table->capacity ? umemTable_seek(table, key, umemTable_home(table, hash)) : NULL;
  return cell && cell->key_plus_1 ? cell : NULL;
}

static inline umemTableCell *umemTable_find(umemTable const *table, uintptr_t key) {
  return umemTable_find_hashed(table, key, umemTable_hash(key));
}

/* Sets the value of key in the cell that umemTable_seek has found; if key is not in the table yet,
 * at least two cells must be free. Returns whether it was there, with *old. */
static inline bool umemTable_put_in(umemTable *table, umemTableCell *cell, uintptr_t key,
                                    uintptr_t value, uintptr_t *old) {
  bool was = cell->key_plus_1;
  if (was) *old = cell->value;
  *cell = (umemTableCell){key + 1, value};
  table->count += !was;
  return was;
}

static inline bool umemTable_put(umemTable *table, uintptr_t key, uintptr_t value, uintptr_t *old) {
  size_t home = umemTable_home(table, umemTable_hash(key));
  return umemTable_put_in(table, umemTable_seek(table, key, home), key, value, old);
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

/* The cell of the block that contains adr, of a table that has the sizes of blocks by their
 * addresses. It is in no order, so only a block that begins at adr is found at once. */
umemTableCell *umemTable_containing(umemTable const *table, uintptr_t adr);

/* Stores key, which is not in the table, and keeps half of the cells free. False, with nothing
 * changed, without memory. */
bool umemTable_insert(umemTable *table, uintptr_t key, uintptr_t value);

/* The first cell in use at or after place *from, which becomes its place; NULL where there is
 * none. Walks through a table that does not change: start with 0, and add 1 for the next. */
umemTableCell *umemTable_next(umemTable const *table, size_t *from);

/* Releases the cells: the table is empty. */
void umemTable_clear(umemTable *table);

/* ==== maps of pages: a word for each page of the address space ====
 *
 * It says which chunk or span the page belongs to. A page is 64 KiB. Regions of 1024 pages have a
 * leaf each, a table of words; leaves are found in a hash table by the number of their region, so
 * that any 64-bit address will do.
 *
 * Threads: one writer at a time, with a lock of its own; readers need none. Leaves and outgrown
 * hash tables stay until the end, since a reader may be looking at them: 8 KiB for each 64 MiB of
 * address space that its owner has ever used. */

enum {
  umemPageShift = 16,
  umemPageLeafShift = 10,
  umemPageRegionShift = umemPageShift + umemPageLeafShift
};

typedef struct umemPageLeaf {
  uintptr_t words[1 << umemPageLeafShift]; /* atomic; 0 before they are set */
} umemPageLeaf;

typedef struct umemPageLeafCell {
  uint64_t region;    /* valid where there is a leaf */
  umemPageLeaf *leaf; /* owned by the map; NULL: free cell */
} umemPageLeafCell;

typedef struct umemPageLeaves {
  struct umemPageLeaves *older; /* the one that this has outgrown; owned */
  size_t mask;                  /* the number of cells less one, a power of two */
  size_t count;
  umemPageLeafCell cells[];
} umemPageLeaves;

typedef struct umemPageMap {
  umemPageLeaves *leaves; /* owned */
} umemPageMap;

/* False, with nothing to release, without memory. */
bool umemPageMap_init(umemPageMap *map);
void umemPageMap_fini(umemPageMap *map);

/* Empties the map: nothing was ever prepared. While no thread reads. */
void umemPageMap_clear(umemPageMap *map);

/* Makes sure that count pages from page on can be set. False without memory. */
bool umemPageMap_prepare(umemPageMap *map, uint64_t page, uint64_t count);

/* Sets count pages, which have been prepared. */
void umemPageMap_set(umemPageMap *map, uint64_t page, uint64_t count, uintptr_t word);

/* Fibonacci hashing: Knuth, TAOCP 6.4. */
static inline size_t umemPageMap_home(umemPageLeaves const *leaves, uint64_t region) {
  return (size_t)(region * 0x9E3779B97F4A7C15u >> 40) & leaves->mask;
}

static inline umemPageLeaf *umemPageMap_leaf(umemPageMap const *map, uint64_t region) {
  umemPageLeaves const *leaves = __atomic_load_n(&map->leaves, __ATOMIC_ACQUIRE);
  for (size_t i = umemPageMap_home(leaves, region);; i = (i + 1) & leaves->mask) {
    umemPageLeaf *leaf = __atomic_load_n(&leaves->cells[i].leaf, __ATOMIC_ACQUIRE);
    if (!leaf || leaves->cells[i].region == region) return leaf;
  }
}

/* The word of the page of adr in the leaf of its region. */
static inline uintptr_t const *umemPageLeaf_word(umemPageLeaf const *leaf, uintptr_t adr) {
  return &leaf->words[(uint64_t)adr >> umemPageShift & ((1 << umemPageLeafShift) - 1)];
}

/* The word of the page of adr, which does not move; NULL where none near was ever prepared. */
static inline uintptr_t *umemPageMap_word(umemPageMap const *map, uintptr_t adr) {
  uint64_t page = (uint64_t)adr >> umemPageShift;
  umemPageLeaf *leaf = umemPageMap_leaf(map, page >> umemPageLeafShift);
  return leaf ? &leaf->words[page & ((1 << umemPageLeafShift) - 1)] : NULL;
}

/* What the page of adr was set to; 0 where it never was. */
static inline uintptr_t umemPageMap_find(umemPageMap const *map, uintptr_t adr) {
  uintptr_t const *word = umemPageMap_word(map, adr);
  return word ? __atomic_load_n(word, __ATOMIC_ACQUIRE) : 0;
}

#endif
