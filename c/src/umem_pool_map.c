/* umem_pool_map.c - see umem_pool_map.h. */
#include "umem_pool_map.h"

#include <stdlib.h>

enum { first_cells = 16 };

static umemPoolLeaves *new_leaves(size_t cells) {
  umemPoolLeaves *leaves = calloc(1, sizeof *leaves + cells * sizeof(umemPoolLeafCell));
  if (leaves) leaves->mask = cells - 1;
  return leaves;
}

bool umemPoolMap_init(umemPoolMap *map) {
  map->leaves = new_leaves(first_cells);
  return map->leaves != NULL;
}

void umemPoolMap_fini(umemPoolMap *map) {
  if (!map->leaves) return;
  for (size_t i = 0; i <= map->leaves->mask; i++) free(map->leaves->cells[i].leaf);
  for (umemPoolLeaves *leaves = map->leaves, *older; leaves; leaves = older) {
    older = leaves->older;
    free(leaves);
  }
  map->leaves = NULL;
}

/* A reader that sees the leaf sees its region too. */
static void insert(umemPoolLeaves *leaves, uint64_t region, umemPoolLeaf *leaf) {
  size_t i = umemPoolMap_home(leaves, region);
  while (leaves->cells[i].leaf) i = (i + 1) & leaves->mask;
  leaves->cells[i].region = region;
  __atomic_store_n(&leaves->cells[i].leaf, leaf, __ATOMIC_RELEASE);
  leaves->count++;
}

static bool grow(umemPoolMap *map) {
  umemPoolLeaves *old = map->leaves;
  umemPoolLeaves *larger = new_leaves(2 * (old->mask + 1));
  if (!larger) return false;
  for (size_t i = 0; i <= old->mask; i++)
    if (old->cells[i].leaf) insert(larger, old->cells[i].region, old->cells[i].leaf);
  larger->older = old;
  __atomic_store_n(&map->leaves, larger, __ATOMIC_RELEASE);
  return true;
}

static bool add_leaf(umemPoolMap *map, uint64_t region) {
  if (2 * (map->leaves->count + 1) > map->leaves->mask + 1 && !grow(map)) return false;
  umemPoolLeaf *leaf = calloc(1, sizeof *leaf);
  if (!leaf) return false;
  insert(map->leaves, region, leaf);
  return true;
}

bool umemPoolMap_prepare(umemPoolMap *map, uint64_t page, uint64_t count) {
  uint64_t last = (page + count - 1) >> umemPoolLeafShift;
  for (uint64_t region = page >> umemPoolLeafShift; region <= last; region++)
    if (!umemPoolMap_leaf(map, region) && !add_leaf(map, region)) return false;
  return true;
}

void umemPoolMap_set(umemPoolMap *map, uint64_t page, uint64_t count, uintptr_t word) {
  for (uint64_t end = page + count; page < end; page++)
    __atomic_store_n(umemPoolMap_word(map, (uintptr_t)(page << umemPoolPageShift)), word,
                     __ATOMIC_RELEASE);
}
