/* sizes.c - see sizes.h.
 *
 * The part of a block is known with its address, when it is too late to refuse the block. Therefore each
 * part keeps room for all entries that may be reserved at once: slack. Each share of the threads may reserve
 * a fixed number, which grows when more are needed at a time. A part whose free room shrinks to slack, and
 * that cannot grow, is tight. It is marked so before the reservation that led to it ends, and from then on
 * none is granted. So at most slack - 1 more blocks come, and one cell stays free, where every search
 * ends. */
#include "base/sizes.h"
#include "base/thread.h"

#include <stdlib.h>
#include <string.h>

enum { first_capacity = 4, sparse_capacity = 256 };

static umemSizesPart *part_of(umemSizes *blocks, uintptr_t adr) {
  return &blocks->part[umemTable_hash(adr) >> (64 - umemSizesPartBits)];
}

/* ---- room, under the lock of the part ---- */

static size_t count_of(umemSizesPart const *part) {
  return part->table.count + part->taken - __atomic_load_n(&part->dropped, __ATOMIC_RELAXED);
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

/* Gives part all the room that it should have, and marks it as tight when it has too little. */
static void extend(umemSizes *blocks, umemSizesPart *part) {
  unsigned slack = __atomic_load_n(&blocks->slack, __ATOMIC_SEQ_CST);
  size_t count = count_of(part), now = part->table.capacity;
  size_t capacity = now ? now : first_capacity;
  while (!is_ample(capacity, slack, count)) capacity *= 2;
  if (capacity != now && umemTable_resize(&part->table, capacity)) now = capacity;
  bool tight = !suffices(now, slack, count);
  if (tight == part->tight) return;
  part->tight = tight;
  __atomic_fetch_add(&blocks->tight, tight ? 1u : -1u, __ATOMIC_SEQ_CST);
}

/* Gives most of the room back where nearly all blocks have gone. Not so often, and not in small tables,
 * that a free would cost noticeably more. */
static void shrink(umemSizes *blocks, umemSizesPart *part) {
  unsigned slack = __atomic_load_n(&blocks->slack, __ATOMIC_SEQ_CST);
  size_t quarter = part->table.capacity / 4;
  if (quarter >= sparse_capacity && !part->tight && is_ample(quarter, slack, 2 * count_of(part)))
    umemTable_resize(&part->table, quarter);
}

/* ---- reservations ---- */

/* That of the calling thread. */
static umemSizesShare *share_of(umemSizes *blocks) {
  return &blocks->share[umemTable_hash((uintptr_t)&umem_thread) >> 60];
}

static void raise_to(unsigned *number, unsigned least) {
  unsigned old = __atomic_load_n(number, __ATOMIC_SEQ_CST);
  while (old < least && !__atomic_compare_exchange_n(number, &old, least, false, __ATOMIC_SEQ_CST,
                                                     __ATOMIC_SEQ_CST)) {
  }
}

/* Lets each share reserve so many entries, in parts that have room for them. False without memory. */
static bool allow(umemSizes *blocks, unsigned each) {
  raise_to(&blocks->slack, umemSizesShares * each);
  for (int i = 0; i < umemSizesParts; i++) {
    umemSizesPart *part = &blocks->part[i];
    umemLock_acquire(&part->lock);
    extend(blocks, part);
    umemLock_release(&part->lock);
  }
  if (__atomic_load_n(&blocks->tight, __ATOMIC_SEQ_CST)) return false;
  raise_to(&blocks->each, each);
  return true;
}

bool umemSizes_reserve(umemSizes *blocks) {
  umemSizesShare *share = share_of(blocks);
  for (;;) {
    unsigned mine = __atomic_add_fetch(&share->reserved, 1, __ATOMIC_SEQ_CST);
    unsigned each = __atomic_load_n(&blocks->each, __ATOMIC_SEQ_CST);
    if (mine <= each && !__atomic_load_n(&blocks->tight, __ATOMIC_SEQ_CST)) return true;
    umemSizes_release(blocks);
    if (!allow(blocks, mine <= each ? each : each ? 2 * each : 1)) return false;
  }
}

void umemSizes_release(umemSizes *blocks) {
  __atomic_fetch_sub(&share_of(blocks)->reserved, 1, __ATOMIC_SEQ_CST);
}

/* ---- the table ---- */

void umemSizes_init(umemSizes *blocks) {
  memset(blocks, 0, sizeof *blocks);
  for (int i = 0; i < umemSizesParts; i++) umemLock_init(&blocks->part[i].lock);
}

void umemSizes_fini(umemSizes *blocks) {
  for (int i = 0; i < umemSizesParts; i++) {
    umemTable_clear(&blocks->part[i].table);
    umemLock_destroy(&blocks->part[i].lock);
  }
}

bool umemSizes_put(umemSizes *blocks, uintptr_t adr, size_t size, size_t *old) {
  umemSizesPart *part = part_of(blocks, adr);
  umemLock_acquire(&part->lock);
  bool was = umemTable_put(&part->table, adr, size, old);
  unsigned slack = __atomic_load_n(&blocks->slack, __ATOMIC_SEQ_CST);
  if (!is_ample(part->table.capacity, slack, count_of(part))) extend(blocks, part);
  umemLock_release(&part->lock);
  umemSizes_release(blocks);
  return was;
}

bool umemSizes_find(umemSizes *blocks, uintptr_t adr, size_t *size) {
  umemSizesPart *part = part_of(blocks, adr);
  umemLock_acquire(&part->lock);
  umemTableCell const *cell = umemTable_find(&part->table, adr);
  if (cell) *size = cell->value;
  umemLock_release(&part->lock);
  return cell != NULL;
}

bool umemSizes_try_find(umemSizes *blocks, uintptr_t adr, size_t *size, bool *busy) {
  umemSizesPart *part = part_of(blocks, adr);
  *busy = !umemLock_try(&part->lock);
  if (*busy) return false;
  umemTableCell const *cell = umemTable_find(&part->table, adr);
  if (cell) *size = cell->value;
  umemLock_release(&part->lock);
  return cell != NULL;
}

bool umemSizes_take(umemSizes *blocks, uintptr_t adr, size_t *size) {
  umemSizesPart *part = part_of(blocks, adr);
  umemLock_acquire(&part->lock);
  umemTableCell *cell = umemTable_find(&part->table, adr);
  if (cell) {
    *size = cell->value;
    umemTable_remove(&part->table, cell);
    part->taken++;
    if (16 * count_of(part) < part->table.capacity) shrink(blocks, part);
  }
  umemLock_release(&part->lock);
  return cell != NULL;
}

void umemSizes_drop(umemSizes *blocks, uintptr_t adr) {
  __atomic_fetch_add(&part_of(blocks, adr)->dropped, 1, __ATOMIC_RELAXED);
}

bool umemSizes_put_back(umemSizes *blocks, uintptr_t adr, size_t size, size_t *old) {
  umemSizesPart *part = part_of(blocks, adr);
  umemLock_acquire(&part->lock);
  bool was = umemTable_put(&part->table, adr, size, old);
  part->taken -= !was;
  umemLock_release(&part->lock);
  if (was) umemSizes_drop(blocks, adr);
  return was;
}
