/* track_table.h - the live blocks of a umemTrack, in order of address.
 *
 * A block that is given back stays in the table as leaving until the upstream has answered: if its address
 * comes back before that, in another thread, the new block takes the place over. */
#ifndef UMEM_TRACK_TABLE_H
#define UMEM_TRACK_TABLE_H

#include "adaptors/records.h"

#include <umem/track.h>

/* What the table keeps of a block beside its address and size. */
typedef struct umemTrackRecord {
  umemRecord head;
  char *label;     /* owned; NULL: none */
  uint16_t frames; /* in head.traces */
  bool aligned;    /* of umem_aligned_alloc */
  bool leaving;
} umemTrackRecord;

/* Thread-safe. Must not move. */
typedef struct umemTrackTable {
  umemRecords records;  /* umemTrackRecords */
  size_t count, nbytes; /* live, or leaving; under the lock of records */
  size_t peak;          /* of nbytes */
} umemTrackTable;

/* Makes *table empty. False, with nothing to release, without memory. */
bool umemTrackTable_init(umemTrackTable *table);
void umemTrackTable_fini(umemTrackTable *table);

/* Enters a block for which umemRecords_prepare has reserved room. The table owns head.traces from now on,
 * and sets the number. */
void umemTrackTable_enter(umemTrackTable *table, uintptr_t adr, size_t nbytes,
                          umemTrackRecord const *record);

/* Whether the block at adr may be given back as the caller wants: as an aligned one or not, and of wanted
 * bytes (0: any number). If so it is leaving from now on. Fills in all of *block but ctx, unless it returns
 * umemTrackNone. */
typedef enum umemTrackAnswer {
  umemTrackLeaves,
  umemTrackNone,      /* no block begins at adr */
  umemTrackOtherForm, /* it is aligned and should not be, or the other way round */
  umemTrackOtherSize
} umemTrackAnswer;
umemTrackAnswer umemTrackTable_leave(umemTrackTable *table, uintptr_t adr, bool aligned,
                                     size_t wanted, umemTrackBlock *block);

/* The block of that number at adr, which was leaving, is gone, or stays. */
void umemTrackTable_settle(umemTrackTable *table, uintptr_t adr, uint64_t number, bool gone);

/* Each finds a live block: the one that holds adr; the first one that begins at or after from. False when
 * there is none. Fills in all of *block but ctx. */
bool umemTrackTable_find(umemTrackTable *table, uintptr_t adr, umemTrackBlock *block);
bool umemTrackTable_next(umemTrackTable *table, uintptr_t from, umemTrackBlock *block);

/* The same as find for callers that hold the lock. label: UMEM_LABEL_SIZE bytes for the label of the block; or NULL. */
bool umemTrackTable_find_locked(umemTrackTable *table, uintptr_t adr, umemTrackBlock *block,
                                char *label);

/* Exchanges *label, NULL or from malloc, for the label of the block that begins at adr. False, with nothing changed, if
 * there is none; a block that is leaving is one only if leaving is true. */
bool umemTrackTable_exchange_label(umemTrackTable *table, uintptr_t adr, bool leaving,
                                   char **label);

#endif
