/* track_books.c - see umem_track_books.h. */
#include "adaptors/track_books.h"

#include <stdlib.h>
#include <string.h>

bool umemTrackBooks_init(umemTrackBooks *books) {
  memset(books, 0, sizeof *books);
  if (!umemIndex_init(&books->index, 0)) return false;
  umemLock_init(&books->lock);
  return true;
}

void umemTrackBooks_fini(umemTrackBooks *books) {
  umemSpan const *spans = books->index.spans;
  for (uint32_t span = spans[0].after; span; span = spans[span].after)
    free(books->notes[span].trace);
  free(books->notes);
  umemIndex_fini(&books->index);
  umemLock_destroy(&books->lock);
}

/* ---- room ---- */

static bool notes_reserve(umemTrackBooks *books) {
  size_t room = books->index.span_slots.capacity;
  if (books->room >= room) return true;
  umemTrackNote *grown = realloc(books->notes, room * sizeof *grown);
  if (!grown) return false;
  books->notes = grown;
  books->room = room;
  return true;
}

bool umemTrackBooks_reserve(umemTrackBooks *books) {
  umemLock_acquire(&books->lock);
  bool done = umemIndex_reserve(&books->index, books->reserved + 1) && notes_reserve(books);
  books->reserved += done;
  umemLock_release(&books->lock);
  return done;
}

void umemTrackBooks_release(umemTrackBooks *books) {
  umemLock_acquire(&books->lock);
  books->reserved--;
  umemLock_release(&books->lock);
}

/* ---- coming and going ---- */

static void strike_out(umemTrackBooks *books, uint32_t span) {
  books->count--;
  books->nbytes -= books->index.spans[span].size;
  free(books->notes[span].trace);
  umemIndex_erase(&books->index, span);
}

/* Strikes out what stands where there is a new block: leaving, or given back behind our back.
 * Returns the last block before it. */
static uint32_t make_way(umemTrackBooks *books, uintptr_t adr, size_t nbytes) {
  umemSpan const *spans = books->index.spans;
  uint32_t before, after;
  while ((before = umemIndex_floor(&books->index, adr)) != 0 &&
         adr - spans[before].start < spans[before].size)
    strike_out(books, before);
  while ((after = spans[before].after) != 0 && spans[after].start - adr < nbytes)
    strike_out(books, after);
  return before;
}

void umemTrackBooks_enter(umemTrackBooks *books, uintptr_t adr, size_t nbytes, umemTrackNote note) {
  umemLock_acquire(&books->lock);
  books->reserved--;
  uint32_t span = umemIndex_insert(&books->index, make_way(books, adr, nbytes), adr);
  books->index.spans[span].size = nbytes;
  books->notes[span] = note;
  books->notes[span].number = ++books->allocations;
  books->count++;
  books->nbytes += nbytes;
  umemLock_release(&books->lock);
}

static void tell(umemTrackBooks const *books, uint32_t span, umemTrackBlock *block) {
  umemTrackNote const *note = &books->notes[span];
  block->adr = books->index.spans[span].start;
  block->nbytes = books->index.spans[span].size;
  block->number = note->number;
  block->frames = note->frames;
  if (note->trace) memcpy(block->trace, note->trace, note->frames * sizeof *note->trace);
}

umemTrackAnswer umemTrackBooks_leave(umemTrackBooks *books, uintptr_t adr, bool aligned,
                                     size_t wanted, umemTrackBlock *block) {
  umemTrackAnswer answer = umemTrackLeaves;
  umemLock_acquire(&books->lock);
  uint32_t span = umemIndex_exact(&books->index, adr);
  umemTrackNote *note = span && !books->notes[span].leaving ? &books->notes[span] : NULL;
  if (!note) {
    answer = umemTrackNone;
  } else {
    tell(books, span, block);
    if (note->aligned != aligned)
      answer = umemTrackOtherForm;
    else if (wanted && wanted != block->nbytes)
      answer = umemTrackOtherSize;
    else
      note->leaving = true;
  }
  umemLock_release(&books->lock);
  return answer;
}

void umemTrackBooks_settle(umemTrackBooks *books, uintptr_t adr, uint64_t number, bool gone) {
  umemLock_acquire(&books->lock);
  uint32_t span = umemIndex_exact(&books->index, adr);
  if (span && books->notes[span].number == number) {
    books->notes[span].leaving = false;
    if (gone) strike_out(books, span);
  }
  umemLock_release(&books->lock);
}

/* ---- looking ---- */

bool umemTrackBooks_find_locked(umemTrackBooks *books, uintptr_t adr, umemTrackBlock *block) {
  uint32_t span = umemIndex_floor(&books->index, adr);
  if (!span || books->notes[span].leaving) return false;
  if (adr - books->index.spans[span].start >= books->index.spans[span].size) return false;
  tell(books, span, block);
  return true;
}

bool umemTrackBooks_find(umemTrackBooks *books, uintptr_t adr, umemTrackBlock *block) {
  umemLock_acquire(&books->lock);
  bool found = umemTrackBooks_find_locked(books, adr, block);
  umemLock_release(&books->lock);
  return found;
}

bool umemTrackBooks_next(umemTrackBooks *books, uintptr_t from, umemTrackBlock *block) {
  umemLock_acquire(&books->lock);
  umemSpan const *spans = books->index.spans;
  uint32_t span = umemIndex_floor(&books->index, from);
  if (!span || spans[span].start != from) span = spans[span].after;
  while (span && books->notes[span].leaving) span = spans[span].after;
  if (span) tell(books, span, block);
  umemLock_release(&books->lock);
  return span != 0;
}
