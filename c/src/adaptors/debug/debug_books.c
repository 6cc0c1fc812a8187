/* debug_books.c - see umem_debug_books.h. */
#include "adaptors/debug/debug_books.h"

#include <stdlib.h>
#include <string.h>

bool umemDebugBooks_init(umemDebugBooks *books) {
  memset(books, 0, sizeof *books);
  if (!umemIndex_init(&books->index, 0)) return false;
  umemLock_init(&books->lock);
  return true;
}

void umemDebugBooks_fini(umemDebugBooks *books) {
  umemSpan const *spans = books->index.spans;
  for (uint32_t span = spans[0].after; span; span = spans[span].after)
    free(books->notes[span].traces);
  free(books->notes);
  umemIndex_fini(&books->index);
  umemLock_destroy(&books->lock);
}

/* ---- room ---- */

static bool notes_reserve(umemDebugBooks *books) {
  size_t room = books->index.span_slots.capacity;
  if (books->room >= room) return true;
  umemDebugNote *grown = realloc(books->notes, room * sizeof *grown);
  if (!grown) return false;
  books->notes = grown;
  books->room = room;
  return true;
}

bool umemDebugBooks_reserve(umemDebugBooks *books) {
  umemLock_acquire(&books->lock);
  bool done = umemIndex_reserve(&books->index, books->reserved + 1) && notes_reserve(books);
  books->reserved += done;
  umemLock_release(&books->lock);
  return done;
}

void umemDebugBooks_release(umemDebugBooks *books) {
  umemLock_acquire(&books->lock);
  books->reserved--;
  umemLock_release(&books->lock);
}

/* ---- the list of those that are kept, and what is counted ---- */

static void count_kept(umemDebugBooks *books, size_t extent, bool more) {
  books->kept_count += more ? 1 : SIZE_MAX;
  books->kept_bytes += more ? extent : -extent;
}

static void append(umemDebugBooks *books, uint32_t span) {
  umemSpan *spans = books->index.spans;
  spans[span].list_before = books->newest;
  spans[span].list_after = 0;
  if (books->newest)
    spans[books->newest].list_after = span & (UMEM_INDEX_LIMIT - 1);
  else
    books->oldest = span;
  books->newest = span;
  books->notes[span].state = umemDebugKept;
}

static void unlink_kept(umemDebugBooks *books, uint32_t span) {
  umemSpan *spans = books->index.spans;
  uint32_t before = spans[span].list_before, after = spans[span].list_after;
  if (before)
    spans[before].list_after = spans[span].list_after;
  else
    books->oldest = after;
  if (after)
    spans[after].list_before = before;
  else
    books->newest = before;
  count_kept(books, books->notes[span].block.extent, false);
}

static void end_life(umemDebugBooks *books, uint32_t span) {
  books->live_count--;
  books->live_bytes -= books->notes[span].block.nbytes;
}

/* ---- coming ---- */

static void strike_out(umemDebugBooks *books, uint32_t span) {
  umemDebugState state = books->notes[span].state;
  if (state == umemDebugKept) unlink_kept(books, span);
  if (state == umemDebugLive || state == umemDebugFreeing) end_life(books, span);
  free(books->notes[span].traces);
  umemIndex_erase(&books->index, span);
}

/* Strikes out what stands where there is a new block: leaving, or given back behind our back.
 * Returns the last block before it. */
static uint32_t make_way(umemDebugBooks *books, uintptr_t adr, size_t nbytes) {
  umemSpan const *spans = books->index.spans;
  uint32_t before, after;
  while ((before = umemIndex_floor(&books->index, adr)) != 0 &&
         adr - spans[before].start < spans[before].size)
    strike_out(books, before);
  while ((after = spans[before].after) != 0 && spans[after].start - adr < nbytes)
    strike_out(books, after);
  return before;
}

void umemDebugBooks_enter(umemDebugBooks *books, umemDebugBlock block, void **traces,
                          unsigned frames) {
  umemLock_acquire(&books->lock);
  books->reserved--;
  uint32_t before = make_way(books, block.origin, block.extent);
  uint32_t span = umemIndex_insert(&books->index, before, block.origin);
  books->index.spans[span].size = block.extent;
  block.number = ++books->allocations;
  books->notes[span] =
      (umemDebugNote){.block = block, .allocated_frames = (uint16_t)frames, .traces = traces};
  books->live_count++;
  books->live_bytes += block.nbytes;
  umemLock_release(&books->lock);
}

/* ---- finding ---- */

/* The note of the very same block, or NULL. */
static umemDebugNote *note_of(umemDebugBooks const *books, umemDebugBlock const *block) {
  uint32_t span = umemIndex_exact(&books->index, block->origin);
  umemDebugNote *note = span ? &books->notes[span] : NULL;
  return note && note->block.number == block->number ? note : NULL;
}

static uint32_t span_of(umemDebugBooks const *books, umemDebugNote const *note) {
  return (uint32_t)(note - books->notes);
}

/* The block in which, guards included, adr lies, or NULL. */
static umemDebugNote *note_around(umemDebugBooks const *books, uintptr_t adr) {
  uint32_t span = umemIndex_floor(&books->index, adr);
  if (!span || adr - books->index.spans[span].start >= books->index.spans[span].size) return NULL;
  return &books->notes[span];
}

static bool is_freed(umemDebugNote const *note) { return note->state != umemDebugLive; }

/* Fills in what is known of the block. */
static void describe(umemDebugBooks const *books, umemDebugNote const *note,
                     umemDebugFault *fault) {
  fault->adr = umemDebugBlock_adr(&note->block);
  fault->nbytes = note->block.nbytes;
  fault->number = note->block.number;
  fault->aligned = note->block.aligned;
  fault->freed = is_freed(note);
  fault->allocated_frames = note->allocated_frames;
  fault->freed_frames = note->freed_frames;
  if (!note->traces) return;
  memcpy(fault->allocated_at, note->traces, note->allocated_frames * sizeof *note->traces);
  memcpy(fault->freed_at, note->traces + books->frames, note->freed_frames * sizeof *note->traces);
}

/* ---- going ---- */

/* What is wrong with the free of adr, which lies in note, or in none. */
static umemDebugKind wrong_free(umemDebugNote const *note, uintptr_t adr, bool aligned,
                                size_t wanted) {
  if (!note) return umemDebugUnknownFree;
  if (adr != umemDebugBlock_adr(&note->block)) return umemDebugInnerFree;
  if (is_freed(note)) return umemDebugDoubleFree;
  if (note->block.aligned != aligned) return umemDebugWrongFunction;
  return wanted && wanted != note->block.nbytes ? umemDebugWrongSize : umemDebugNothing;
}

bool umemDebugBooks_begin(umemDebugBooks *books, uintptr_t adr, bool aligned, size_t wanted,
                          void *const *trace, unsigned frames, umemDebugBlock *block,
                          umemDebugFault *fault) {
  umemLock_acquire(&books->lock);
  umemDebugNote *note = note_around(books, adr);
  fault->kind = wrong_free(note, adr, aligned, wanted);
  if (fault->kind == umemDebugNothing) {
    note->state = umemDebugFreeing;
    note->freed_frames = (uint16_t)frames;
    if (frames) memcpy(note->traces + books->frames, trace, frames * sizeof *trace);
    *block = note->block;
  } else if (note) {
    describe(books, note, fault);
    fault->offset = (int64_t)(adr - fault->adr);
    if (fault->kind == umemDebugWrongSize) fault->wrong = wanted;
  } else {
    fault->adr = adr;
  }
  umemLock_release(&books->lock);
  return fault->kind == umemDebugNothing;
}

void umemDebugBooks_revive(umemDebugBooks *books, umemDebugBlock const *block) {
  umemLock_acquire(&books->lock);
  umemDebugNote *note = note_of(books, block);
  if (note) {
    note->state = umemDebugLive;
    note->freed_frames = 0;
  }
  umemLock_release(&books->lock);
}

/* Whether count more blocks of so many bytes in all can be kept. */
static bool fits(umemDebugBooks const *books, size_t count, size_t bytes) {
  return books->kept_count + count <= books->most_count && bytes <= books->most_bytes &&
         books->kept_bytes <= books->most_bytes - bytes;
}

/* Makes the oldest one that nobody looks at leaving. False where there is none. */
static bool take_oldest(umemDebugBooks *books, umemDebugBlock *block) {
  uint32_t span = books->oldest;
  while (span && books->notes[span].pins) span = books->index.spans[span].list_after;
  if (!span) return false;
  unlink_kept(books, span);
  books->notes[span].state = umemDebugLeaving;
  *block = books->notes[span].block;
  return true;
}

bool umemDebugBooks_admit(umemDebugBooks *books, size_t extent, bool eighth, umemDebugBlock *oldest,
                          unsigned room, unsigned *count) {
  size_t more_blocks = 1 + (eighth ? books->most_count / 8 : 0);
  size_t more_bytes = eighth ? books->most_bytes / 8 : 0;
  if (more_bytes < extent) more_bytes = extent;
  *count = 0;
  umemLock_acquire(&books->lock);
  bool admitted = fits(books, 1, extent);
  if (!admitted) {
    while (*count < room && !fits(books, more_blocks, more_bytes) &&
           take_oldest(books, &oldest[*count]))
      ++*count;
    admitted = !*count; /* others look at all of them: it becomes more for a while */
  }
  if (admitted) count_kept(books, extent, true);
  umemLock_release(&books->lock);
  return admitted;
}

void umemDebugBooks_forgo(umemDebugBooks *books, size_t extent) {
  umemLock_acquire(&books->lock);
  count_kept(books, extent, false);
  umemLock_release(&books->lock);
}

void umemDebugBooks_keep(umemDebugBooks *books, umemDebugBlock const *block, bool poisoned) {
  umemLock_acquire(&books->lock);
  umemDebugNote *note = note_of(books, block);
  if (note) {
    end_life(books, span_of(books, note));
    append(books, span_of(books, note));
    note->block.poisoned = poisoned;
  } else {
    count_kept(books, block->extent, false);
  }
  umemLock_release(&books->lock);
}

bool umemDebugBooks_passes(umemDebugBooks *books, umemDebugBlock const *block) {
  umemLock_acquire(&books->lock);
  umemDebugNote *note = note_of(books, block);
  bool passes = !note || !note->pins;
  if (!passes) {
    end_life(books, span_of(books, note));
    append(books, span_of(books, note));
    count_kept(books, block->extent, true);
  }
  umemLock_release(&books->lock);
  return passes;
}

unsigned umemDebugBooks_take(umemDebugBooks *books, umemDebugBlock *oldest, unsigned room) {
  unsigned count = 0;
  umemLock_acquire(&books->lock);
  while (count < room && take_oldest(books, &oldest[count])) count++;
  umemLock_release(&books->lock);
  return count;
}

void umemDebugBooks_put_back(umemDebugBooks *books, umemDebugBlock const *block) {
  umemLock_acquire(&books->lock);
  umemDebugNote *note = note_of(books, block);
  if (note) {
    append(books, span_of(books, note));
    count_kept(books, block->extent, true);
  }
  umemLock_release(&books->lock);
}

void umemDebugBooks_gone(umemDebugBooks *books, umemDebugBlock const *block) {
  umemLock_acquire(&books->lock);
  umemDebugNote *note = note_of(books, block);
  if (note) strike_out(books, span_of(books, note));
  umemLock_release(&books->lock);
}

/* ---- looking ---- */

unsigned umemDebugBooks_pin(umemDebugBooks *books, uintptr_t from, bool all, umemDebugBlock *blocks,
                            unsigned room) {
  unsigned count = 0;
  umemLock_acquire(&books->lock);
  umemSpan const *spans = books->index.spans;
  uint32_t span = umemIndex_floor(&books->index, from);
  if (!span || spans[span].start != from) span = spans[span].after;
  for (; span && count < room; span = spans[span].after) {
    umemDebugNote *note = &books->notes[span];
    if (!all && note->state != umemDebugLive && note->state != umemDebugKept) continue;
    note->pins++;
    blocks[count++] = note->block;
  }
  umemLock_release(&books->lock);
  return count;
}

void umemDebugBooks_unpin(umemDebugBooks *books, umemDebugBlock const *blocks, unsigned count) {
  umemLock_acquire(&books->lock);
  for (unsigned i = 0; i < count; i++) {
    umemDebugNote *note = note_of(books, &blocks[i]);
    if (note) note->pins--;
  }
  umemLock_release(&books->lock);
}

static umemDebugKind kind_of(umemDebugBlock const *block, int64_t offset) {
  if (offset < 0) return umemDebugUnderflow;
  return (uint64_t)offset < block->nbytes ? umemDebugWriteAfterFree : umemDebugOverflow;
}

bool umemDebugBooks_tell(umemDebugBooks *books, umemDebugBlock const *block, umemDebugPart part,
                         umemDebugFault *fault) {
  umemDebugFinding const *finding = &block->finding[part];
  umemLock_acquire(&books->lock);
  umemDebugNote *note = finding->wrong ? note_of(books, block) : NULL;
  bool first = note && !note->told[part];
  if (first) {
    note->told[part] = true;
    describe(books, note, fault);
    if (note->state == umemDebugFreeing) { /* the call that tells frees nothing */
      fault->freed = false;
      fault->freed_frames = 0;
    }
    fault->kind = kind_of(block, finding->offset);
    fault->offset = finding->offset;
    fault->wrong = finding->wrong;
    fault->found = finding->found;
    fault->expected = finding->expected;
  }
  umemLock_release(&books->lock);
  return first;
}

/* The block that [adr, adr + nbytes) touches first, guards included, or NULL. */
static umemDebugNote *first_touched(umemDebugBooks const *books, uintptr_t adr, size_t nbytes) {
  umemSpan const *spans = books->index.spans;
  umemDebugNote *note = note_around(books, adr);
  if (note) return note;
  uint32_t after = spans[umemIndex_floor(&books->index, adr)].after;
  return after && spans[after].start - adr < nbytes ? &books->notes[after] : NULL;
}

bool umemDebugBooks_allow(umemDebugBooks *books, uintptr_t adr, size_t nbytes,
                          umemDebugFault *fault) {
  umemLock_acquire(&books->lock);
  umemDebugNote *note = first_touched(books, adr, nbytes);
  bool allowed = !note;
  if (note) {
    int64_t offset = (int64_t)(adr - umemDebugBlock_adr(&note->block));
    bool before = offset < 0, freed = is_freed(note);
    size_t room =
        before || (size_t)offset > note->block.nbytes ? 0 : note->block.nbytes - (size_t)offset;
    allowed = !freed && !before && nbytes <= room;
    if (!allowed) {
      describe(books, note, fault);
      fault->kind = umemDebugBadAccess;
      fault->offset = freed || before ? offset : offset + (int64_t)room;
    }
  }
  umemLock_release(&books->lock);
  return allowed;
}
