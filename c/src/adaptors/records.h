/* records.h - a record of each block of an adaptor, in order of address.
 *
 * An adaptor's records are of a type of its own that begins with a umemRecord. Each belongs to a span of a
 * umemIndex, and has the number of this span. The upstream may return an address for which there is a record still:
 * the program has freed the old block directly on the upstream, or another thread is freeing it. The new record then
 * replaces the old one. Therefore functions that work without the lock name a block by its start and the number of
 * its allocation.
 *
 * The adaptor reserves room for a record before it allocates the block, so that entering the record cannot fail. */
#ifndef UMEM_RECORDS_H
#define UMEM_RECORDS_H

#include "adaptors/sites.h"
#include "base/index.h"
#include "base/lock.h"

#include <stdlib.h>

typedef struct umemRecord {
  uint64_t number; /* of the allocation, from 1 */
  void **traces;   /* owned; from malloc; NULL for none */
} umemRecord;

/* Must not move. */
typedef struct umemRecords {
  umemLock lock; /* of all that follows, and of what the adaptor counts */
  umemIndex index;
  char *records; /* owned; one for each span */
  size_t record_size;
  size_t room; /* how many of them there are */
  uint32_t reserved;
  uint64_t allocations;
  void (*erased)(struct umemRecords *records, uint32_t span);
} umemRecords;

/* Makes *records empty. erased is called, under the lock, for each record that leaves while others stay.
 * False, with nothing to release, without memory. */
bool umemRecords_init(umemRecords *records, size_t record_size,
                      void (*erased)(umemRecords *records, uint32_t span));
void umemRecords_fini(umemRecords *records);

/* Reserves room for a record, to be entered or released. False, with nothing changed, without memory. */
bool umemRecords_reserve(umemRecords *records);

/* The same for a block of ctx; also allocates *traces for so many call sites of frames addresses each, and
 * captures the first one, of *captured addresses. Both are 0 before. False with a status on ctx. */
static inline bool umemRecords_prepare(umemRecords *records, umemVirtual *ctx, unsigned sites,
                                       unsigned frames, void ***traces, uint16_t *captured) {
  if (frames) *traces = malloc(sites * frames * sizeof **traces);
  if ((!frames || *traces) && umemRecords_reserve(records)) {
    if (frames) *captured = (uint16_t)umemSite_capture(*traces, frames);
    return true;
  }
  free(*traces);
  umemVirtual_fail(ctx, umemMemoryError, "no memory to remember a block");
  return false;
}

/* Releases the room, and traces. */
void umemRecords_release(umemRecords *records, void **traces);

/* ---- all that follows under the lock ---- */

static inline void *umemRecords_at(umemRecords const *records, uint32_t span) {
  return records->records + span * records->record_size;
}

/* Enters the block of size bytes at start into reserved room, in place of all that overlap it. Returns its
 * span. The caller fills in the record; its number is records->allocations. */
uint32_t umemRecords_enter(umemRecords *records, uintptr_t start, size_t size);

void umemRecords_erase(umemRecords *records, uint32_t span);

/* Each returns a span, or 0: that of the very block that began at start and has this number; the one that
 * holds adr; the first one that begins at or after from. */
static inline uint32_t umemRecords_same(umemRecords const *records, uintptr_t start,
                                        uint64_t number) {
  uint32_t span = umemIndex_exact(&records->index, start);
  return span && ((umemRecord *)umemRecords_at(records, span))->number == number ? span : 0;
}
static inline uint32_t umemRecords_around(umemRecords const *records, uintptr_t adr) {
  uint32_t span = umemIndex_floor(&records->index, adr);
  umemSpan const *found = &records->index.spans[span];
  return span && adr - found->start < found->size ? span : 0;
}
uint32_t umemRecords_from(umemRecords const *records, uintptr_t from);

#endif
