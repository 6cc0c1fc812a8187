/* records.h - what is known of live blocks, by their addresses, beside the memory.
 *
 * There is a table for each of the two ways to find a block:
 *
 *   umemValues    one value for each block, such as its size; found by the start of the block
 *   umemRecords   a record of any type for each block; found by any address inside, in order
 *
 * The first has many locks and costs less. Of both, the user reserves room before it allocates a
 * block; then entering the block cannot fail. The context below may return an address that is in
 * the table still: the program has freed the block directly on that context. The new block then
 * replaces the old one.
 *
 * Threads: any may use a table. fork: a child has the tables of its parent as they were, with
 * all locks open (base/thread.h). Neither table may move, because both hold locks. */
#ifndef UMEM_RECORDS_H
#define UMEM_RECORDS_H

#include "base/index.h"
#include "base/thread.h"
#include "base/table.h"

/* ---- a value for each block ---- */

/* Each part is a hash table that is at most three quarters full, with a lock of its own, which
 * is held for one search and never while a context is called. A search costs the lock and mostly
 * one cache miss, however many blocks there are. An entry has 16 bytes: the first block takes 8
 * KiB, a thousand take 64 KiB, and many take 21 to 43 bytes each. A part shrinks when nearly all
 * of its blocks are gone. */
typedef struct umemValuesPart {
  umemLock lock;
  umemTable table; /* address to value */
  size_t taken;    /* entries that were taken and not put back: room for them is kept */
  size_t dropped;  /* atomic: those of them whose room is not kept any more */
  bool tight;      /* it has no room for all that may be reserved, and no memory for more */
  char padding[128 - sizeof(umemLock) - sizeof(umemTable) - 3 * sizeof(size_t)]; /* cache lines */
} umemValuesPart;

/* The room that some of the threads have reserved. */
typedef struct umemValuesShare {
  unsigned reserved; /* atomic */
  char padding[60];  /* a cache line */
} umemValuesShare;

/* The upper bits of a hash choose the part. */
enum {
  umemValuesPartBits = umemTableSkip,
  umemValuesParts = 1 << umemValuesPartBits,
  umemValuesShares = 16
};

typedef struct umemValues {
  umemValuesPart part[umemValuesParts];
  umemValuesShare share[umemValuesShares];
  unsigned each;  /* atomic: entries that may be reserved in each share */
  unsigned slack; /* atomic: entries that each part keeps room for: at least those of all shares */
  unsigned tight; /* atomic: parts that cannot */
} umemValues;

void umemValues_init(umemValues *values);
void umemValues_fini(umemValues *values);

/* Reserves room for an entry. Returns where, for put or release; NULL, with nothing changed,
 * without memory. */
umemValuesShare *umemValues_reserve(umemValues *values);

static inline void umemValues_release(umemValuesShare *share) {
  __atomic_fetch_sub(&share->reserved, 1, __ATOMIC_SEQ_CST);
}

/* Enters the value of the block at adr into reserved room. Returns whether it replaces an
 * entry, with the value *old. */
bool umemValues_put(umemValues *values, umemValuesShare *share, uintptr_t adr, size_t value,
                    size_t *old);

/* Writes the value of the block at adr to *value. Returns false where there is none. */
bool umemValues_find(umemValues *values, uintptr_t adr, size_t *value);

/* Finds without waiting. If it would have to wait, *busy is true and the result false. */
bool umemValues_try_find(umemValues *values, uintptr_t adr, size_t *value, bool *busy);

/* Removes the entry of the block at adr, and writes its value to *value. Returns the part,
 * which keeps room for the entry until the caller drops it or puts the entry back; NULL where
 * there is none. */
umemValuesPart *umemValues_take(umemValues *values, uintptr_t adr, size_t *value);

static inline void umemValues_drop(umemValuesPart *part) {
  __atomic_fetch_add(&part->dropped, 1, __ATOMIC_RELAXED);
}

/* Enters a block that was taken from part again. Returns whether it replaces an entry, with the
 * value *old. */
bool umemValues_put_back(umemValuesPart *part, uintptr_t adr, size_t value, size_t *old);

/* ---- a record for each block ---- */

/* The records of a table are of a type of its user that begins with a umemRecord. */
typedef struct umemRecord {
  uint64_t number; /* of the allocation, from 1; 0 once the record is removed */
} umemRecord;

/* Names a block for work without the lock: the slot of its record and the number of its
 * allocation. */
typedef struct umemRecordName {
  uint64_t number;
  uint32_t slot;
} umemRecordName;

typedef struct umemRecords {
  umemLock lock;   /* of all that follows, and of what the user counts */
  umemIndex index; /* of the blocks: the number of a span is the slot of its record */
  char *records;   /* owned; one for each span */
  size_t record_size;
  size_t room; /* how many records there are */
  uint32_t reserved;
  uint64_t entered;                         /* allocations so far */
  size_t live_count, live_bytes, live_peak; /* see umemRecords_count */
  void (*removed)(struct umemRecords *records, uint32_t slot);
} umemRecords;

/* Makes *records empty. The user's function removed is called, under the lock, for each record
 * that is about to leave, also by umemRecords_fini. Returns false, with nothing to release,
 * without memory. */
bool umemRecords_init(umemRecords *records, size_t record_size,
                      void (*removed)(umemRecords *records, uint32_t slot));
void umemRecords_fini(umemRecords *records);

/* Reserves room for a record, for enter or release. Takes the lock. Returns false, with nothing
 * changed, without memory. */
bool umemRecords_reserve(umemRecords *records);
void umemRecords_release(umemRecords *records);

/* ---- all that follows under the lock: slots, and pointers until the next umemRecords_reserve
 * ---- */

static inline void *umemRecords_at(umemRecords const *records, uint32_t slot) {
  return records->records + slot * records->record_size;
}

static inline umemRecordName umemRecords_name(umemRecords const *records, uint32_t slot) {
  return (umemRecordName){((umemRecord *)umemRecords_at(records, slot))->number, slot};
}

/* Enters the block of size bytes at start into reserved room, in place of all that overlap it.
 * Returns its slot. The caller fills in the record, whose number is records->entered. */
uint32_t umemRecords_enter(umemRecords *records, uintptr_t start, size_t size);

void umemRecords_remove(umemRecords *records, uint32_t slot);

/* A block of so many bytes lives, or lives no more, as its user counts. */
static inline void umemRecords_count(umemRecords *records, size_t nbytes) {
  records->live_count++;
  records->live_bytes += nbytes;
  if (records->live_peak < records->live_bytes) records->live_peak = records->live_bytes;
}
static inline void umemRecords_uncount(umemRecords *records, size_t nbytes) {
  records->live_count--;
  records->live_bytes -= nbytes;
}

/* Each returns a slot, or 0 for none: of the block that begins at start; that contains adr; that
 * has this name, without a search; of the first block that begins at or after from; of the next
 * one. */
static inline uint32_t umemRecords_exact(umemRecords const *records, uintptr_t start) {
  return umemIndex_exact(&records->index, start);
}
static inline uint32_t umemRecords_inside(umemRecords const *records, uintptr_t adr) {
  uint32_t slot = umemIndex_floor(&records->index, adr);
  umemSpan const *found = &records->index.spans[slot];
  return slot && adr - found->start < found->size ? slot : 0;
}
static inline uint32_t umemRecords_named(umemRecords const *records, umemRecordName name) {
  umemRecord const *record = umemRecords_at(records, name.slot);
  return record->number == name.number ? name.slot : 0;
}
uint32_t umemRecords_from(umemRecords const *records, uintptr_t from);
static inline uint32_t umemRecords_next(umemRecords const *records, uint32_t slot) {
  return records->index.spans[slot].after;
}

/* ---- takes the lock ---- */

/* The bytes of what lives, and the most that these were; peak: or NULL. Returns false, without
 * waiting, where another thread has the lock. */
bool umemRecords_usage(umemRecords *records, uint64_t *nbytes, uint64_t *peak);

#endif
