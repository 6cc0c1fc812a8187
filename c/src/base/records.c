/* records.c - the values and the records of live blocks.
 *
 * Numbers: the part of a block is known with its address, when it is too late to refuse the block.
 * Therefore each part keeps room for all entries that may be reserved at once: slack. Each share of
 * the threads may reserve a fixed number, which grows when more are needed at a time. A part whose
 * free room shrinks to slack, and that cannot grow, is tight. It is marked so before the
 * reservation that led to it ends, and from then on none is granted. So at most slack - 1 more
 * blocks come, and one cell remains free, where every search ends.
 *
 * Records: one array, in the order of the slots of the index. */
#include "base/records.h"

#include <stdlib.h>
#include <string.h>

enum { first_capacity = 4, sparse_capacity = 256 };

static umemValuesPart *part_of(umemValues *values, uint64_t hash) {
  return &values->part[hash >> (64 - umemValuesPartBits)];
}

/* ---- values: room, under the lock of the part ---- */

static size_t count_of(umemValuesPart const *part) {
  return part->table.count + part->taken - __atomic_load_n(&part->dropped, __ATOMIC_RELAXED);
}

/* Whether of capacity cells, count of them in use, slack are free and one more. */
static bool suffices(size_t capacity, unsigned slack, size_t count) {
  return capacity > slack && count < capacity - slack;
}

/* Whether it suffices, and searches are short. In the caches a branch that was foreseen wrongly
 * costs more than a cell does: small tables are sparse. */
static bool is_ample(size_t capacity, unsigned slack, size_t count) {
  size_t quarter = capacity / 4;
  return suffices(capacity, slack, count) &&
         count <= (capacity <= sparse_capacity ? quarter : 3 * quarter);
}

/* Gives part all the room that it should have, and marks it as tight when it has too little. */
static void extend(umemValues *values, umemValuesPart *part) {
  unsigned slack = __atomic_load_n(&values->slack, __ATOMIC_SEQ_CST);
  size_t count = count_of(part), now = part->table.capacity;
  size_t capacity = now ? now : first_capacity;
  while (!is_ample(capacity, slack, count)) capacity *= 2;
  if (capacity != now && umemTable_resize(&part->table, capacity)) now = capacity;
  bool tight = !suffices(now, slack, count);
  if (tight == part->tight) return;
  part->tight = tight;
  __atomic_fetch_add(&values->tight, tight ? 1u : -1u, __ATOMIC_SEQ_CST);
}

/* Gives most of the room back where nearly all blocks have gone. Not so often, and not in small
 * tables, that a free would cost noticeably more. */
static void shrink(umemValues *values, umemValuesPart *part) {
  unsigned slack = __atomic_load_n(&values->slack, __ATOMIC_SEQ_CST);
  size_t quarter = part->table.capacity / 4;
  if (quarter >= sparse_capacity && !part->tight && is_ample(quarter, slack, 2 * count_of(part)))
    umemTable_resize(&part->table, quarter);
}

/* ---- values: reservations ---- */

static void raise_to(unsigned *number, unsigned least) {
  unsigned old = __atomic_load_n(number, __ATOMIC_SEQ_CST);
  while (old < least && !__atomic_compare_exchange_n(number, &old, least, false, __ATOMIC_SEQ_CST,
                                                     __ATOMIC_SEQ_CST)) {
  }
}

/* Lets each share reserve so many entries, in parts that have room for them. False without
 * memory. */
static bool allow(umemValues *values, unsigned each) {
  raise_to(&values->slack, umemValuesShares * each);
  for (int i = 0; i < umemValuesParts; i++) {
    umemValuesPart *part = &values->part[i];
    umemLock_acquire(&part->lock);
    extend(values, part);
    umemLock_release(&part->lock);
  }
  if (__atomic_load_n(&values->tight, __ATOMIC_SEQ_CST)) return false;
  raise_to(&values->each, each);
  return true;
}

umemValuesShare *umemValues_reserve(umemValues *values) {
  umemValuesShare *share = &values->share[umemTable_hash((uintptr_t)&umem_thread) >> 60];
  for (;;) {
    unsigned mine = __atomic_add_fetch(&share->reserved, 1, __ATOMIC_SEQ_CST);
    unsigned each = __atomic_load_n(&values->each, __ATOMIC_SEQ_CST);
    if (mine <= each && !__atomic_load_n(&values->tight, __ATOMIC_SEQ_CST)) return share;
    umemValues_release(share);
    if (!allow(values, mine <= each ? each : each ? 2 * each : 1)) return NULL;
  }
}

/* ---- values: the table ---- */

void umemValues_init(umemValues *values) {
  memset(values, 0, sizeof *values);
  for (int i = 0; i < umemValuesParts; i++) umemLock_init(&values->part[i].lock);
}

void umemValues_fini(umemValues *values) {
  for (int i = 0; i < umemValuesParts; i++) {
    umemTable_clear(&values->part[i].table);
    umemLock_destroy(&values->part[i].lock);
  }
}

bool umemValues_put(umemValues *values, umemValuesShare *share, uintptr_t adr, size_t value,
                    size_t *old) {
  uint64_t hash = umemTable_hash(adr);
  umemValuesPart *part = part_of(values, hash);
  umemLock_acquire(&part->lock);
  umemTableCell *cell = umemTable_seek(&part->table, adr, umemTable_home(&part->table, hash));
  bool was = umemTable_put_in(&part->table, cell, adr, value, old);
  unsigned slack = __atomic_load_n(&values->slack, __ATOMIC_SEQ_CST);
  if (!is_ample(part->table.capacity, slack, count_of(part))) extend(values, part);
  umemLock_release(&part->lock);
  umemValues_release(share);
  return was;
}

/* Finds in part, which is locked, and unlocks it. */
static bool find_in(umemValuesPart *part, uintptr_t adr, uint64_t hash, size_t *value) {
  umemTableCell const *cell = umemTable_find_hashed(&part->table, adr, hash);
  if (cell) *value = cell->value;
  umemLock_release(&part->lock);
  return cell != NULL;
}

bool umemValues_find(umemValues *values, uintptr_t adr, size_t *value) {
  uint64_t hash = umemTable_hash(adr);
  umemValuesPart *part = part_of(values, hash);
  umemLock_acquire(&part->lock);
  return find_in(part, adr, hash, value);
}

bool umemValues_try_find(umemValues *values, uintptr_t adr, size_t *value, bool *busy) {
  uint64_t hash = umemTable_hash(adr);
  umemValuesPart *part = part_of(values, hash);
  *busy = !umemLock_try(&part->lock);
  return !*busy && find_in(part, adr, hash, value);
}

umemValuesPart *umemValues_take(umemValues *values, uintptr_t adr, size_t *value) {
  uint64_t hash = umemTable_hash(adr);
  umemValuesPart *part = part_of(values, hash);
  UMEM_LOCKED(&part->lock);
  umemTableCell *cell = umemTable_find_hashed(&part->table, adr, hash);
  if (cell) {
    *value = cell->value;
    umemTable_remove(&part->table, cell);
    part->taken++;
    if (16 * count_of(part) < part->table.capacity) shrink(values, part);
  }
  return cell ? part : NULL;
}

bool umemValues_put_back(umemValuesPart *part, uintptr_t adr, size_t value, size_t *old) {
  umemLock_acquire(&part->lock);
  bool was = umemTable_put(&part->table, adr, value, old);
  part->taken -= !was;
  umemLock_release(&part->lock);
  if (was) umemValues_drop(part);
  return was;
}

/* ---- records ---- */

bool umemRecords_init(umemRecords *records, size_t record_size,
                      void (*removed)(umemRecords *records, uint32_t slot)) {
  memset(records, 0, sizeof *records);
  if (!umemIndex_init(&records->index, 0)) return false;
  records->record_size = record_size;
  records->removed = removed;
  umemLock_init(&records->lock);
  return true;
}

void umemRecords_fini(umemRecords *records) {
  for (uint32_t slot = 0; (slot = umemRecords_next(records, slot));)
    records->removed(records, slot);
  free(records->records);
  umemIndex_fini(&records->index);
  umemLock_destroy(&records->lock);
}

/* Makes the array of records as long as the index has slots. */
static bool extend_records(umemRecords *records) {
  size_t room = records->index.span_slots.capacity;
  if (records->room >= room) return true;
  char *grown = realloc(records->records, room * records->record_size);
  if (!grown) return false;
  records->records = grown;
  records->room = room;
  return true;
}

bool umemRecords_reserve(umemRecords *records) {
  UMEM_LOCKED(&records->lock);
  bool done = umemIndex_reserve(&records->index, records->reserved + 1) && extend_records(records);
  records->reserved += done;
  return done;
}

void umemRecords_release(umemRecords *records) {
  UMEM_LOCKED(&records->lock);
  records->reserved--;
}

void umemRecords_remove(umemRecords *records, uint32_t slot) {
  records->removed(records, slot);
  ((umemRecord *)umemRecords_at(records, slot))->number = 0;
  umemIndex_erase(&records->index, slot);
}

/* Removes all that overlap a new block. Returns the last slot before it. */
static uint32_t make_way(umemRecords *records, uintptr_t start, size_t size) {
  umemSpan const *spans = records->index.spans;
  uint32_t before, after;
  while ((before = umemIndex_floor(&records->index, start)) != 0 &&
         start - spans[before].start < spans[before].size)
    umemRecords_remove(records, before);
  while ((after = spans[before].after) != 0 && spans[after].start - start < size)
    umemRecords_remove(records, after);
  return before;
}

uint32_t umemRecords_enter(umemRecords *records, uintptr_t start, size_t size) {
  records->reserved--;
  records->entered++;
  uint32_t before = make_way(records, start, size);
  uint32_t slot = umemIndex_insert(&records->index, before, start);
  records->index.spans[slot].size = size;
  return slot;
}

uint32_t umemRecords_from(umemRecords const *records, uintptr_t from) {
  umemSpan const *spans = records->index.spans;
  uint32_t slot = umemIndex_floor(&records->index, from);
  return slot && spans[slot].start == from ? slot : spans[slot].after;
}

bool umemRecords_usage(umemRecords *records, uint64_t *nbytes, uint64_t *peak) {
  if (!umemLock_try(&records->lock)) return false;
  *nbytes = records->live_bytes;
  if (peak) *peak = records->live_peak;
  umemLock_release(&records->lock);
  return true;
}
