/* debug_blocks.c - the records of the blocks of a umemDebug, and the states that they pass
 * through. */
#include "adaptors/debug/debug.h"

#include <stdlib.h>
#include <string.h>

static umemDebugRecord *record_at(umemDebugTable const *table, uint32_t slot) {
  return umemRecords_at(&table->records, slot);
}

/* ---- the list of those that are kept, and what is counted ---- */

static void count_kept(umemDebugTable *table, size_t extent, bool more) {
  table->kept_count += more ? 1 : SIZE_MAX;
  table->kept_bytes += more ? extent : -extent;
}

static void append_kept(umemDebugTable *table, uint32_t slot) {
  umemSpan *spans = table->records.index.spans;
  spans[slot].list_before = table->newest;
  spans[slot].list_after = 0;
  if (table->newest)
    spans[table->newest].list_after = slot & (UMEM_INDEX_LIMIT - 1);
  else
    table->oldest = slot;
  table->newest = slot;
  record_at(table, slot)->state = umemDebugKept;
}

static void unlink_kept(umemDebugTable *table, uint32_t slot) {
  umemSpan *spans = table->records.index.spans;
  uint32_t before = spans[slot].list_before, after = spans[slot].list_after;
  if (before)
    spans[before].list_after = spans[slot].list_after;
  else
    table->oldest = after;
  if (after)
    spans[after].list_before = before;
  else
    table->newest = before;
  count_kept(table, record_at(table, slot)->block.extent, false);
}

static void end_life(umemDebugTable *table, uint32_t slot) {
  umemRecords_uncount(&table->records, record_at(table, slot)->block.nbytes);
}

/* ---- new blocks ---- */

/* The function removed of the records. */
static void end_record(umemRecords *records, uint32_t slot) {
  umemDebugTable *table = (umemDebugTable *)records; /* its first member */
  umemDebugState state = record_at(table, slot)->state;
  if (state == umemDebugKept) unlink_kept(table, slot);
  if (state == umemDebugLive || state == umemDebugFreeing) end_life(table, slot);
  free(record_at(table, slot)->traces);
}

bool umemDebugTable_init(umemDebugTable *table) {
  memset(table, 0, sizeof *table);
  return umemRecords_init(&table->records, sizeof(umemDebugRecord), end_record);
}

void umemDebugTable_enter(umemDebugTable *table, umemDebugBlock block, void **traces,
                          unsigned frames) {
  UMEM_LOCKED(&table->records.lock);
  uint32_t slot = umemRecords_enter(&table->records, block.origin, block.extent);
  block.name = (umemRecordName){table->records.entered, slot};
  *record_at(table, slot) = (umemDebugRecord){.head = {table->records.entered},
                                              .traces = traces,
                                              .block = block,
                                              .allocated_frames = (uint16_t)frames};
  umemRecords_count(&table->records, block.nbytes);
}

/* ---- finding a block ---- */

static uint32_t slot_of(umemDebugTable const *table, umemDebugBlock const *block) {
  return umemRecords_named(&table->records, block->name);
}

static umemDebugRecord *record_or_null(umemDebugTable const *table, uint32_t slot) {
  return slot ? record_at(table, slot) : NULL;
}

static umemDebugRecord *record_of(umemDebugTable const *table, umemDebugBlock const *block) {
  return record_or_null(table, slot_of(table, block));
}

/* The block in which, red zones included, adr is, or NULL. */
static umemDebugRecord *record_with(umemDebugTable const *table, uintptr_t adr) {
  return record_or_null(table, umemRecords_inside(&table->records, adr));
}

static bool is_freed(umemDebugRecord const *record) { return record->state != umemDebugLive; }

/* Fills in what is known of the block. */
static void describe_block(umemDebugTable const *table, umemDebugRecord const *record,
                           umemDebugFault *finding) {
  finding->adr = umemDebugBlock_adr(&record->block);
  finding->nbytes = record->block.nbytes;
  finding->number = record->head.number;
  finding->aligned = record->block.aligned;
  finding->freed = is_freed(record);
  finding->allocated_frames = record->allocated_frames;
  finding->freed_frames = record->freed_frames;
  void *const *traces = record->traces;
  if (!traces) return;
  memcpy(finding->allocated_at, traces, record->allocated_frames * sizeof *traces);
  memcpy(finding->freed_at, traces + table->frames, record->freed_frames * sizeof *traces);
}

/* ---- freed blocks ---- */

/* What is wrong with the free of adr, which is in the block of record, or in none. */
static umemDebugKind wrong_free(umemDebugRecord const *record, uintptr_t adr, bool aligned,
                                size_t wanted) {
  if (!record) return umemDebugUnknownFree;
  if (adr != umemDebugBlock_adr(&record->block)) return umemDebugInnerFree;
  if (is_freed(record)) return umemDebugDoubleFree;
  if (record->block.aligned != aligned) return umemDebugWrongFunction;
  return wanted && wanted != record->block.nbytes ? umemDebugWrongSize : umemDebugNothing;
}

bool umemDebugTable_begin(umemDebugTable *table, uintptr_t adr, bool aligned, size_t wanted,
                          void *const *trace, unsigned frames, umemDebugBlock *block,
                          umemDebugFault *finding) {
  UMEM_LOCKED(&table->records.lock);
  umemDebugRecord *record = record_with(table, adr);
  finding->kind = wrong_free(record, adr, aligned, wanted);
  if (finding->kind == umemDebugNothing) {
    record->state = umemDebugFreeing;
    record->freed_frames = (uint16_t)frames;
    if (frames) memcpy(record->traces + table->frames, trace, frames * sizeof *trace);
    *block = record->block;
  } else if (record) {
    describe_block(table, record, finding);
    finding->offset = (int64_t)(adr - finding->adr);
    if (finding->kind == umemDebugWrongSize) finding->wrong = wanted;
  } else {
    finding->adr = adr;
  }
  return finding->kind == umemDebugNothing;
}

void umemDebugTable_revive(umemDebugTable *table, umemDebugBlock const *block) {
  UMEM_LOCKED(&table->records.lock);
  umemDebugRecord *record = record_of(table, block);
  if (!record) return;
  record->state = umemDebugLive;
  record->freed_frames = 0;
}

/* Whether count more blocks of so many bytes in all can be kept. */
static bool fits_among_kept(umemDebugTable const *table, size_t count, size_t bytes) {
  return table->kept_count + count <= table->most_count && bytes <= table->most_bytes &&
         table->kept_bytes <= table->most_bytes - bytes;
}

/* Makes the oldest one that no thread looks at leaving. False where there is none. */
static bool take_oldest(umemDebugTable *table, umemDebugBlock *block) {
  uint32_t slot = table->oldest;
  while (slot && record_at(table, slot)->pins) slot = table->records.index.spans[slot].list_after;
  if (!slot) return false;
  unlink_kept(table, slot);
  record_at(table, slot)->state = umemDebugLeaving;
  *block = record_at(table, slot)->block;
  return true;
}

bool umemDebugTable_admit(umemDebugTable *table, size_t extent, bool eighth, umemDebugBlock *oldest,
                          unsigned room, unsigned *count) {
  size_t more_blocks = 1 + (eighth ? table->most_count / 8 : 0);
  size_t more_bytes = eighth ? table->most_bytes / 8 : 0;
  if (more_bytes < extent) more_bytes = extent;
  *count = 0;
  UMEM_LOCKED(&table->records.lock);
  bool fits = fits_among_kept(table, 1, extent);
  while (!fits && *count < room && !fits_among_kept(table, more_blocks, more_bytes) &&
         take_oldest(table, &oldest[*count]))
    ++*count;
  if (*count) return false;
  count_kept(table, extent, true); /* more for a while where others look at all of them */
  return true;
}

void umemDebugTable_forgo(umemDebugTable *table, size_t extent) {
  UMEM_LOCKED(&table->records.lock);
  count_kept(table, extent, false);
}

void umemDebugTable_keep_block(umemDebugTable *table, umemDebugBlock const *block, bool poisoned) {
  UMEM_LOCKED(&table->records.lock);
  uint32_t slot = slot_of(table, block);
  if (slot) {
    end_life(table, slot);
    append_kept(table, slot);
    record_at(table, slot)->block.poisoned = poisoned;
  } else {
    count_kept(table, block->extent, false);
  }
}

bool umemDebugTable_passes(umemDebugTable *table, umemDebugBlock const *block) {
  UMEM_LOCKED(&table->records.lock);
  uint32_t slot = slot_of(table, block);
  if (!slot || !record_at(table, slot)->pins) return true;
  end_life(table, slot);
  append_kept(table, slot);
  count_kept(table, block->extent, true);
  return false;
}

unsigned umemDebugTable_take(umemDebugTable *table, umemDebugBlock *oldest, unsigned room) {
  unsigned count = 0;
  UMEM_LOCKED(&table->records.lock);
  while (count < room && take_oldest(table, &oldest[count])) count++;
  return count;
}

void umemDebugTable_put_back(umemDebugTable *table, umemDebugBlock const *block) {
  UMEM_LOCKED(&table->records.lock);
  uint32_t slot = slot_of(table, block);
  if (!slot) return;
  append_kept(table, slot);
  count_kept(table, block->extent, true);
}

void umemDebugTable_gone(umemDebugTable *table, umemDebugBlock const *block) {
  UMEM_LOCKED(&table->records.lock);
  uint32_t slot = slot_of(table, block);
  if (slot) umemRecords_remove(&table->records, slot);
}

/* ---- checks ---- */

unsigned umemDebugTable_pin(umemDebugTable *table, uintptr_t from, bool all, umemDebugBlock *blocks,
                            unsigned room) {
  unsigned count = 0;
  UMEM_LOCKED(&table->records.lock);
  umemSpan const *spans = table->records.index.spans;
  uint32_t slot = umemRecords_from(&table->records, from);
  for (; slot && count < room; slot = spans[slot].after) {
    umemDebugRecord *record = record_at(table, slot);
    if (!all && record->state != umemDebugLive && record->state != umemDebugKept) continue;
    record->pins++;
    blocks[count++] = record->block;
  }
  return count;
}

void umemDebugTable_unpin(umemDebugTable *table, umemDebugBlock const *blocks, unsigned count) {
  UMEM_LOCKED(&table->records.lock);
  for (unsigned i = 0; i < count; i++) {
    umemDebugRecord *record = record_of(table, &blocks[i]);
    if (record) record->pins--;
  }
}

static umemDebugKind kind_of(umemDebugBlock const *block, int64_t offset) {
  if (offset < 0) return umemDebugUnderflow;
  return (uint64_t)offset < block->nbytes ? umemDebugWriteAfterFree : umemDebugOverflow;
}

bool umemDebugTable_take_finding(umemDebugTable *table, umemDebugBlock const *block,
                                 umemDebugPart part, umemDebugFault *finding) {
  umemDebugOverwritten const *bytes = &block->overwritten[part];
  UMEM_LOCKED(&table->records.lock);
  umemDebugRecord *record = bytes->wrong ? record_of(table, block) : NULL;
  if (!record || record->reported[part]) return false;
  record->reported[part] = true;
  describe_block(table, record, finding);
  if (record->state == umemDebugFreeing) { /* the call that reports frees nothing */
    finding->freed = false;
    finding->freed_frames = 0;
  }
  finding->kind = kind_of(block, bytes->offset);
  finding->offset = bytes->offset;
  finding->wrong = bytes->wrong;
  finding->found = bytes->found;
  finding->expected = bytes->expected;
  return true;
}

/* The block that [adr, adr + nbytes) touches first, red zones included, or NULL. */
static umemDebugRecord *first_touched(umemDebugTable const *table, uintptr_t adr, size_t nbytes) {
  umemSpan const *spans = table->records.index.spans;
  uint32_t slot = umemIndex_floor(&table->records.index, adr), after = spans[slot].after;
  if (slot && adr - spans[slot].start < spans[slot].size) return record_at(table, slot);
  return after && spans[after].start - adr < nbytes ? record_at(table, after) : NULL;
}

bool umemDebugTable_allow(umemDebugTable *table, uintptr_t adr, size_t nbytes,
                          umemDebugFault *finding) {
  UMEM_LOCKED(&table->records.lock);
  umemDebugRecord *record = first_touched(table, adr, nbytes);
  if (!record) return true;
  int64_t offset = (int64_t)(adr - umemDebugBlock_adr(&record->block));
  bool before = offset < 0, freed = is_freed(record);
  size_t room =
      before || (size_t)offset > record->block.nbytes ? 0 : record->block.nbytes - (size_t)offset;
  if (!freed && !before && nbytes <= room) return true;
  describe_block(table, record, finding);
  finding->kind = umemDebugBadAccess;
  finding->offset = freed || before ? offset : offset + (int64_t)room;
  return false;
}

umemSearch umemDebug_find(umemVirtual *ctx, uintptr_t adr, umemFound *found) {
  umemDebugTable *table = &umemDebug_impl(ctx)->table;
  if (!umemLock_try(&table->records.lock)) return umemSearchBusy;
  umemDebugRecord const *record = record_with(table, adr);
  bool has = record && record->state == umemDebugLive;
  if (has) {
    found->adr = umemDebugBlock_adr(&record->block);
    found->nbytes = record->block.nbytes;
  }
  umemLock_release(&table->records.lock);
  return has && adr - found->adr < found->nbytes ? umemSearchFound : umemSearchNone;
}
