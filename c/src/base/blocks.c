/* blocks.c - see blocks.h.
 *
 * Which part a block will be in is known with its address, too late to refuse it. Therefore each part
 * keeps room for all places that may be reserved at once: slack. That is a fixed number for each share
 * of the threads, and grows when more of them are on their way at a time. A part whose room shrinks to
 * slack, and that cannot grow, is tight: it says so before the reservation by which it came to that
 * ends, and from then on none is granted. So at most slack - 1 more blocks come, and one cell stays
 * free, where every search ends. */
#include "base/blocks.h"
#include "base/thread.h"

#include <stdlib.h>
#include <string.h>

enum { first_capacity = 4, sparse_capacity = 256 };

static umemBlocksPart *part_of(umemBlocks *blocks, uintptr_t adr) {
  return &blocks->part[umemBlocks_hash(adr) >> (64 - umemBlocksPartBits)];
}

/* ---- cells: linear probing; Knuth, TAOCP 6.4, algorithms L and R ---- */

static size_t home_of(umemBlocksPart const *part, uintptr_t key) {
  return (size_t)(umemBlocks_hash(key - 1) << umemBlocksPartBits >> part->shift);
}

/* The cell of key, or the free one where it would be; NULL in a part without any. */
static umemBlocksCell *cell_of(umemBlocksPart const *part, uintptr_t key) {
  if (!part->capacity) return NULL;
  size_t i = home_of(part, key);
  while (part->cells[i].key && part->cells[i].key != key) i = (i + 1) & (part->capacity - 1);
  return &part->cells[i];
}

/* Sets the entry of key. Whether there was one, of *old. */
static bool enter(umemBlocksPart *part, uintptr_t key, size_t size, size_t *old) {
  umemBlocksCell *cell = cell_of(part, key);
  bool was = cell->key == key;
  if (was) *old = cell->size;
  *cell = (umemBlocksCell){key, size};
  return was;
}

/* Frees cell, and moves later ones up to where a search finds them. */
static void erase(umemBlocksPart *part, umemBlocksCell *cell) {
  size_t mask = part->capacity - 1, hole = (size_t)(cell - part->cells);
  for (size_t i = (hole + 1) & mask; part->cells[i].key; i = (i + 1) & mask) {
    size_t home = home_of(part, part->cells[i].key);
    if (((i - home) & mask) < ((i - hole) & mask)) continue; /* it lies behind the hole */
    part->cells[hole] = part->cells[i];
    hole = i;
  }
  part->cells[hole].key = 0;
}

/* ---- room, under the lock of the part ---- */

static size_t count_of(umemBlocksPart const *part) {
  return part->used - __atomic_load_n(&part->dropped, __ATOMIC_RELAXED);
}

/* Whether of capacity cells, count of them in use, slack are free and one more. */
static bool suffices(size_t capacity, unsigned slack, size_t count) {
  return capacity > slack && count < capacity - slack;
}

/* The same, and searches are short. In the caches a branch that was foreseen wrongly costs more than
 * a cell does: small tables are sparse. */
static bool is_ample(size_t capacity, unsigned slack, size_t count) {
  size_t quarter = capacity / 4;
  return suffices(capacity, slack, count) &&
         count <= (capacity <= sparse_capacity ? quarter : 3 * quarter);
}

/* False, with nothing changed, without memory. */
static bool resize(umemBlocksPart *part, size_t capacity) {
  umemBlocksPart other = {.capacity = capacity, .shift = 64};
  size_t none;
  other.cells = calloc(capacity, sizeof *other.cells);
  if (!other.cells) return false;
  for (size_t n = capacity; n > 1; n /= 2) other.shift--;
  for (size_t i = 0; i < part->capacity; i++)
    if (part->cells[i].key) enter(&other, part->cells[i].key, part->cells[i].size, &none);
  free(part->cells);
  part->cells = other.cells;
  part->capacity = other.capacity;
  part->shift = other.shift;
  return true;
}

/* Gives part all the room that it should have, and tells when it has too little. */
static void extend(umemBlocks *blocks, umemBlocksPart *part) {
  unsigned slack = __atomic_load_n(&blocks->slack, __ATOMIC_SEQ_CST);
  size_t count = count_of(part), capacity = part->capacity ? part->capacity : first_capacity;
  while (!is_ample(capacity, slack, count)) capacity *= 2;
  if (capacity != part->capacity) resize(part, capacity);
  bool tight = !suffices(part->capacity, slack, count);
  if (tight == part->tight) return;
  part->tight = tight;
  __atomic_fetch_add(&blocks->tight, tight ? 1u : -1u, __ATOMIC_SEQ_CST);
}

/* Gives most of the room back where nearly all blocks have gone. Not so often, and not in small tables,
 * that a free would cost noticeably more. */
static void shrink(umemBlocks *blocks, umemBlocksPart *part) {
  unsigned slack = __atomic_load_n(&blocks->slack, __ATOMIC_SEQ_CST);
  size_t quarter = part->capacity / 4;
  if (quarter >= sparse_capacity && !part->tight && is_ample(quarter, slack, 2 * count_of(part)))
    resize(part, quarter);
}

/* ---- reservations ---- */

/* That of the calling thread. */
static umemBlocksShare *share_of(umemBlocks *blocks) {
  return &blocks->share[umemBlocks_hash((uintptr_t)&umem_thread) >> 60];
}

static void raise_to(unsigned *number, unsigned least) {
  unsigned old = __atomic_load_n(number, __ATOMIC_SEQ_CST);
  while (old < least && !__atomic_compare_exchange_n(number, &old, least, false, __ATOMIC_SEQ_CST,
                                                     __ATOMIC_SEQ_CST)) {
  }
}

/* Lets each share have so many places, in parts that have room for them. False without memory. */
static bool allow(umemBlocks *blocks, unsigned each) {
  raise_to(&blocks->slack, umemBlocksShares * each);
  for (int i = 0; i < umemBlocksParts; i++) {
    umemBlocksPart *part = &blocks->part[i];
    umemLock_acquire(&part->lock);
    extend(blocks, part);
    umemLock_release(&part->lock);
  }
  if (__atomic_load_n(&blocks->tight, __ATOMIC_SEQ_CST)) return false;
  raise_to(&blocks->each, each);
  return true;
}

bool umemBlocks_reserve(umemBlocks *blocks) {
  umemBlocksShare *share = share_of(blocks);
  for (;;) {
    unsigned mine = __atomic_add_fetch(&share->reserved, 1, __ATOMIC_SEQ_CST);
    unsigned each = __atomic_load_n(&blocks->each, __ATOMIC_SEQ_CST);
    if (mine <= each && !__atomic_load_n(&blocks->tight, __ATOMIC_SEQ_CST)) return true;
    umemBlocks_release(blocks);
    if (!allow(blocks, mine <= each ? each : each ? 2 * each : 1)) return false;
  }
}

void umemBlocks_release(umemBlocks *blocks) {
  __atomic_fetch_sub(&share_of(blocks)->reserved, 1, __ATOMIC_SEQ_CST);
}

/* ---- the table ---- */

void umemBlocks_init(umemBlocks *blocks) {
  memset(blocks, 0, sizeof *blocks);
  for (int i = 0; i < umemBlocksParts; i++) umemLock_init(&blocks->part[i].lock);
}

void umemBlocks_fini(umemBlocks *blocks) {
  for (int i = 0; i < umemBlocksParts; i++) {
    free(blocks->part[i].cells);
    umemLock_destroy(&blocks->part[i].lock);
  }
}

bool umemBlocks_put(umemBlocks *blocks, uintptr_t adr, size_t size, size_t *old) {
  umemBlocksPart *part = part_of(blocks, adr);
  umemLock_acquire(&part->lock);
  bool was = enter(part, adr + 1, size, old);
  part->used += !was;
  if (!is_ample(part->capacity, __atomic_load_n(&blocks->slack, __ATOMIC_SEQ_CST), count_of(part)))
    extend(blocks, part);
  umemLock_release(&part->lock);
  umemBlocks_release(blocks);
  return was;
}

bool umemBlocks_find(umemBlocks *blocks, uintptr_t adr, size_t *size) {
  umemBlocksPart *part = part_of(blocks, adr);
  umemLock_acquire(&part->lock);
  umemBlocksCell const *cell = cell_of(part, adr + 1);
  bool found = cell && cell->key;
  if (found) *size = cell->size;
  umemLock_release(&part->lock);
  return found;
}

bool umemBlocks_take(umemBlocks *blocks, uintptr_t adr, size_t *size) {
  umemBlocksPart *part = part_of(blocks, adr);
  umemLock_acquire(&part->lock);
  umemBlocksCell *cell = cell_of(part, adr + 1);
  bool found = cell && cell->key;
  if (found) {
    *size = cell->size;
    erase(part, cell);
    if (16 * count_of(part) < part->capacity) shrink(blocks, part);
  }
  umemLock_release(&part->lock);
  return found;
}

void umemBlocks_drop(umemBlocks *blocks, uintptr_t adr) {
  __atomic_fetch_add(&part_of(blocks, adr)->dropped, 1, __ATOMIC_RELAXED);
}

bool umemBlocks_put_back(umemBlocks *blocks, uintptr_t adr, size_t size, size_t *old) {
  umemBlocksPart *part = part_of(blocks, adr);
  umemLock_acquire(&part->lock);
  bool was = enter(part, adr + 1, size, old);
  umemLock_release(&part->lock);
  if (was) umemBlocks_drop(blocks, adr);
  return was;
}
