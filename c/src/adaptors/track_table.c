/* track_table.c - see track_table.h. */
#include "adaptors/track_table.h"

#include <string.h>

static umemTrackRecord *record_at(umemTrackTable const *table, uint32_t span) {
  return umemRecords_at(&table->records, span);
}

static void count_out(umemRecords *records, uint32_t span) {
  umemTrackTable *table = (umemTrackTable *)records; /* its first member */
  table->count--;
  table->nbytes -= records->index.spans[span].size;
  free(record_at(table, span)->label);
}

bool umemTrackTable_init(umemTrackTable *table) {
  table->count = table->nbytes = table->peak = 0;
  return umemRecords_init(&table->records, sizeof(umemTrackRecord), count_out);
}

void umemTrackTable_fini(umemTrackTable *table) {
  umemSpan const *spans = table->records.index.spans;
  for (uint32_t span = spans[0].after; span; span = spans[span].after)
    free(record_at(table, span)->label);
  umemRecords_fini(&table->records);
}

/* ---- coming and going ---- */

void umemTrackTable_enter(umemTrackTable *table, uintptr_t adr, size_t nbytes,
                          umemTrackRecord const *record) {
  umemRecords *records = &table->records;
  umemLock_acquire(&records->lock);
  umemTrackRecord *entered = record_at(table, umemRecords_enter(records, adr, nbytes));
  *entered = *record;
  entered->head.number = records->allocations;
  table->count++;
  table->nbytes += nbytes;
  if (table->peak < table->nbytes) table->peak = table->nbytes;
  umemLock_release(&records->lock);
}

static void describe(umemTrackTable const *table, uint32_t span, umemTrackBlock *block) {
  umemTrackRecord const *record = record_at(table, span);
  umemSpan const *place = &table->records.index.spans[span];
  void *const *trace = record->head.traces;
  block->adr = place->start;
  block->nbytes = place->size;
  block->number = record->head.number;
  block->frames = record->frames;
  if (trace) memcpy(block->trace, trace, record->frames * sizeof *trace);
}

umemTrackAnswer umemTrackTable_leave(umemTrackTable *table, uintptr_t adr, bool aligned,
                                     size_t wanted, umemTrackBlock *block) {
  umemTrackAnswer answer = umemTrackLeaves;
  umemLock_acquire(&table->records.lock);
  uint32_t span = umemIndex_exact(&table->records.index, adr);
  umemTrackRecord *record = span ? record_at(table, span) : NULL;
  if (!record || record->leaving) {
    answer = umemTrackNone;
  } else {
    describe(table, span, block);
    if (record->aligned != aligned)
      answer = umemTrackOtherForm;
    else if (wanted && wanted != block->nbytes)
      answer = umemTrackOtherSize;
    else
      record->leaving = true;
  }
  umemLock_release(&table->records.lock);
  return answer;
}

void umemTrackTable_settle(umemTrackTable *table, uintptr_t adr, uint64_t number, bool gone) {
  umemLock_acquire(&table->records.lock);
  uint32_t span = umemRecords_same(&table->records, adr, number);
  if (span && gone)
    umemRecords_erase(&table->records, span);
  else if (span)
    record_at(table, span)->leaving = false;
  umemLock_release(&table->records.lock);
}

/* ---- finding ---- */

bool umemTrackTable_find_locked(umemTrackTable *table, uintptr_t adr, umemTrackBlock *block,
                                char *label) {
  uint32_t span = umemRecords_around(&table->records, adr);
  if (!span || record_at(table, span)->leaving) return false;
  describe(table, span, block);
  if (label && record_at(table, span)->label) strcpy(label, record_at(table, span)->label);
  return true;
}

bool umemTrackTable_exchange_label(umemTrackTable *table, uintptr_t adr, bool leaving,
                                   char **label) {
  umemLock_acquire(&table->records.lock);
  uint32_t span = umemIndex_exact(&table->records.index, adr);
  umemTrackRecord *record = span ? record_at(table, span) : NULL;
  bool found = record && record->leaving == leaving;
  if (found) {
    char *old = record->label;
    record->label = *label;
    *label = old;
  }
  umemLock_release(&table->records.lock);
  return found;
}

bool umemTrackTable_find(umemTrackTable *table, uintptr_t adr, umemTrackBlock *block) {
  umemLock_acquire(&table->records.lock);
  bool found = umemTrackTable_find_locked(table, adr, block, NULL);
  umemLock_release(&table->records.lock);
  return found;
}

bool umemTrackTable_next(umemTrackTable *table, uintptr_t from, umemTrackBlock *block) {
  umemLock_acquire(&table->records.lock);
  umemSpan const *spans = table->records.index.spans;
  uint32_t span = umemRecords_from(&table->records, from);
  while (span && record_at(table, span)->leaving) span = spans[span].after;
  if (span) describe(table, span, block);
  umemLock_release(&table->records.lock);
  return span != 0;
}
