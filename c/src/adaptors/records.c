/* records.c - see records.h. */
#include "adaptors/records.h"

#include <stdlib.h>
#include <string.h>

bool umemRecords_init(umemRecords *records, size_t record_size,
                      void (*erased)(umemRecords *records, uint32_t span)) {
  memset(records, 0, sizeof *records);
  if (!umemIndex_init(&records->index, 0)) return false;
  records->record_size = record_size;
  records->erased = erased;
  umemLock_init(&records->lock);
  return true;
}

static umemRecord *record_at(umemRecords const *records, uint32_t span) {
  return umemRecords_at(records, span);
}

void umemRecords_fini(umemRecords *records) {
  umemSpan const *spans = records->index.spans;
  for (uint32_t span = spans[0].after; span; span = spans[span].after)
    free(record_at(records, span)->traces);
  free(records->records);
  umemIndex_fini(&records->index);
  umemLock_destroy(&records->lock);
}

/* ---- room ---- */

static bool follow_index(umemRecords *records) {
  size_t room = records->index.span_slots.capacity;
  if (records->room >= room) return true;
  char *grown = realloc(records->records, room * records->record_size);
  if (!grown) return false;
  records->records = grown;
  records->room = room;
  return true;
}

bool umemRecords_reserve(umemRecords *records) {
  umemLock_acquire(&records->lock);
  bool done = umemIndex_reserve(&records->index, records->reserved + 1) && follow_index(records);
  records->reserved += done;
  umemLock_release(&records->lock);
  return done;
}

void umemRecords_release(umemRecords *records, void **traces) {
  umemLock_acquire(&records->lock);
  records->reserved--;
  umemLock_release(&records->lock);
  free(traces);
}

/* ---- coming and going ---- */

void umemRecords_erase(umemRecords *records, uint32_t span) {
  records->erased(records, span);
  free(record_at(records, span)->traces);
  umemIndex_erase(&records->index, span);
}

/* Erases all that overlap a new block. Returns the last span before it. */
static uint32_t make_way(umemRecords *records, uintptr_t start, size_t size) {
  umemSpan const *spans = records->index.spans;
  uint32_t before, after;
  while ((before = umemIndex_floor(&records->index, start)) != 0 &&
         start - spans[before].start < spans[before].size)
    umemRecords_erase(records, before);
  while ((after = spans[before].after) != 0 && spans[after].start - start < size)
    umemRecords_erase(records, after);
  return before;
}

uint32_t umemRecords_enter(umemRecords *records, uintptr_t start, size_t size) {
  records->reserved--;
  records->allocations++;
  uint32_t before = make_way(records, start, size);
  uint32_t span = umemIndex_insert(&records->index, before, start);
  records->index.spans[span].size = size;
  return span;
}

/* ---- finding ---- */

uint32_t umemRecords_from(umemRecords const *records, uintptr_t from) {
  umemSpan const *spans = records->index.spans;
  uint32_t span = umemIndex_floor(&records->index, from);
  return span && spans[span].start == from ? span : spans[span].after;
}
