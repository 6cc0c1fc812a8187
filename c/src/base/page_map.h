/* page_map.h - a word for each page of the address space: which chunk or span it belongs to.
 *
 * A page is 64 KiB. Regions of 1024 pages have a leaf each, a table of words; leaves are found in a
 * hash table by the number of their region, so that any 64-bit address will do.
 *
 * Threads: one writer at a time, with a lock of its own; readers need none. Leaves and outgrown
 * hash tables stay until the end, since a reader may be looking at them: 8 KiB for each 64 MiB of
 * address space that its owner has ever used. */
#ifndef UMEM_PAGE_MAP_H
#define UMEM_PAGE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
