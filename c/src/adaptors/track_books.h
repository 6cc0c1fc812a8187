/* track_books.h - the live blocks of a umemTrack, in order of address.
 *
 * A block that is given back stays in the books as leaving until the upstream has answered: if its
 * address comes back before that, in another thread, the new block takes the place over. Room is
 * reserved before a block is asked for: entering cannot fail.
 */
#ifndef UMEM_TRACK_BOOKS_H
#define UMEM_TRACK_BOOKS_H

#include "core/core.h"
#include "base/index.h"
#include "base/lock.h"

#include <umem/track.h>

/* What is known of a block beside its place. */
typedef struct umemTrackNote {
  uint64_t number; /* of the allocation, from 1 */
  void **trace;    /* owned; NULL without frames */
  uint16_t frames;
  bool aligned; /* of umem_aligned_alloc */
  bool leaving;
} umemTrackNote;

/* Thread-safe. Must not move. */
typedef struct umemTrackBooks {
  umemLock lock;
  umemIndex index;      /* its span's numbers are those of the notes */
  umemTrackNote *notes; /* owned */
  size_t room;          /* how many of them there are */
  uint32_t reserved;    /* places */
  uint64_t allocations;
  size_t count, nbytes; /* live, or leaving */
} umemTrackBooks;

/* Makes *books empty. False, with nothing to release, without memory. */
bool umemTrackBooks_init(umemTrackBooks *books);
void umemTrackBooks_fini(umemTrackBooks *books);

/* Reserves a place, to be entered or released. False, with nothing changed, without memory. */
bool umemTrackBooks_reserve(umemTrackBooks *books);
void umemTrackBooks_release(umemTrackBooks *books);

/* Enters a block into a reserved place. note: trace is owned by the books from now on; number is
 * set here. */
void umemTrackBooks_enter(umemTrackBooks *books, uintptr_t adr, size_t nbytes, umemTrackNote note);

/* Whether the block at adr, of which *block tells all but ctx, may be given back as the caller
 * wants: as an aligned one or not, and of wanted bytes (0: any number). If so it is leaving from
 * now on. */
typedef enum umemTrackAnswer {
  umemTrackLeaves,
  umemTrackNone,      /* no block begins at adr */
  umemTrackOtherForm, /* it is aligned and should not be, or the other way round */
  umemTrackOtherSize
} umemTrackAnswer;
umemTrackAnswer umemTrackBooks_leave(umemTrackBooks *books, uintptr_t adr, bool aligned,
                                     size_t wanted, umemTrackBlock *block);

/* The block of that number at adr, which was leaving, is gone, or stays. */
void umemTrackBooks_settle(umemTrackBooks *books, uintptr_t adr, uint64_t number, bool gone);

/* The live block that adr lies in; the first one that begins at or after from. False when there is
 * none. Fills in all of *block but ctx. */
bool umemTrackBooks_find(umemTrackBooks *books, uintptr_t adr, umemTrackBlock *block);
bool umemTrackBooks_next(umemTrackBooks *books, uintptr_t from, umemTrackBlock *block);

/* The same as find for those who hold the lock. */
bool umemTrackBooks_find_locked(umemTrackBooks *books, uintptr_t adr, umemTrackBlock *block);

#endif
