/* debug_books.h - the blocks of a umemDebug, live and freed, in order of address.
 *
 * A span of the index is all of a block: guards and what lies between. Each block is in one state:
 *
 *     live -> freeing -> kept -> leaving -> gone
 *
 * and steps back when what it was on its way for fails. Whoever has made a block freeing or leaving
 * is the only one who moves it on. A block that is looked at without being one's own is pinned: it
 * does not leave meanwhile. If upstream hands out the place of a block (that was given back behind
 * our back, or is leaving), the new one takes it over; therefore all calls name a block by its place
 * and its number.
 *
 * Room is reserved before a block is asked for: entering cannot fail. */
#ifndef UMEM_DEBUG_BOOKS_H
#define UMEM_DEBUG_BOOKS_H

#include "core/core.h"
#include "base/index.h"
#include "base/lock.h"

#include <umem/debug.h>

/* The bytes of a block that were overwritten: those around it, those inside. */
typedef enum umemDebugPart { umemDebugAround, umemDebugInside, umemDebugParts } umemDebugPart;

typedef struct umemDebugFinding {
  size_t wrong;   /* bytes; 0: all is well */
  int64_t offset; /* of the first, from the address on */
  unsigned char found, expected;
} umemDebugFinding;

/* What the books say of a block, for work on it without the lock. */
typedef struct umemDebugBlock {
  uintptr_t origin;                         /* where upstream's block begins */
  size_t extent;                            /* its bytes */
  size_t front;                             /* those before the block proper */
  size_t nbytes;                            /* those that were asked for */
  uint64_t number;                          /* of the allocation, from 1 */
  bool aligned;                             /* of umem_aligned_alloc */
  bool poisoned;                            /* filled with UMEM_DEBUG_FREED */
  umemDebugFinding finding[umemDebugParts]; /* of umemDebug_inspect */
} umemDebugBlock;

static inline uintptr_t umemDebugBlock_adr(umemDebugBlock const *block) {
  return block->origin + block->front;
}

typedef enum umemDebugState {
  umemDebugLive,
  umemDebugFreeing,
  umemDebugKept,
  umemDebugLeaving
} umemDebugState;

typedef struct umemDebugNote {
  umemDebugBlock block;
  umemDebugState state;
  bool told[umemDebugParts]; /* what is wrong with it */
  uint16_t pins;             /* how many look at it */
  uint16_t allocated_frames, freed_frames;
  void **traces; /* owned: of the allocation, then, from books->frames on, of the free */
} umemDebugNote;

/* Thread-safe. Must not move. */
typedef struct umemDebugBooks {
  umemLock lock;
  umemIndex index; /* its span's numbers are those of the notes; lists are those of kept blocks */
  umemDebugNote *notes;    /* owned */
  size_t room;             /* how many of them there are */
  uint32_t reserved;       /* places */
  uint32_t oldest, newest; /* of those that are kept */
  unsigned frames;
  uint64_t allocations;
  size_t live_count, live_bytes; /* live, or freeing */
  size_t kept_count, kept_bytes; /* kept, or admitted */
  size_t most_count, most_bytes; /* that may be kept */
} umemDebugBooks;

/* Makes *books empty. False, with nothing to release, without memory. */
bool umemDebugBooks_init(umemDebugBooks *books);
void umemDebugBooks_fini(umemDebugBooks *books);

/* ---- coming ---- */

/* Reserves a place, to be entered or released. False, with nothing changed, without memory. */
bool umemDebugBooks_reserve(umemDebugBooks *books);
void umemDebugBooks_release(umemDebugBooks *books);

/* Enters a live block into a reserved place; its number is set here. traces: room for twice
 * books->frames, of which the first frames are there; owned by the books from now on. */
void umemDebugBooks_enter(umemDebugBooks *books, umemDebugBlock block, void **traces,
                          unsigned frames);

/* ---- going ---- */

/* Makes the live block at adr freeing, and tells it. aligned, wanted: how the caller wants to free
 * it, and how many bytes it should have (0: any number). trace: the site of the free. Otherwise
 * false, and *fault tells why. */
bool umemDebugBooks_begin(umemDebugBooks *books, uintptr_t adr, bool aligned, size_t wanted,
                          void *const *trace, unsigned frames, umemDebugBlock *block,
                          umemDebugFault *fault);

/* A block that was freeing is live again. */
void umemDebugBooks_revive(umemDebugBooks *books, umemDebugBlock const *block);

/* Whether one more block of extent bytes may be kept; it is counted from now on, until it is kept or
 * forgone. Otherwise the oldest become leaving, at most room of them, and are told: as many as must
 * go, and an eighth of all more when eighth is set. */
bool umemDebugBooks_admit(umemDebugBooks *books, size_t extent, bool eighth, umemDebugBlock *oldest,
                          unsigned room, unsigned *count);
void umemDebugBooks_forgo(umemDebugBooks *books, size_t extent);

/* A block that was freeing, and was admitted, is kept. poisoned: whether it is filled. */
void umemDebugBooks_keep(umemDebugBooks *books, umemDebugBlock const *block, bool poisoned);

/* Whether a block that is freeing may go without being kept; where somebody looks at it, it is
 * kept. */
bool umemDebugBooks_passes(umemDebugBooks *books, umemDebugBlock const *block);

/* Makes the oldest that are kept leaving, at most room of them. Returns how many. */
unsigned umemDebugBooks_take(umemDebugBooks *books, umemDebugBlock *oldest, unsigned room);

/* A block that was leaving is kept for longer. */
void umemDebugBooks_put_back(umemDebugBooks *books, umemDebugBlock const *block);

/* A block has gone. */
void umemDebugBooks_gone(umemDebugBooks *books, umemDebugBlock const *block);

/* ---- looking ---- */

/* Tells, and pins, the first blocks at or after from: those that are live or kept; all of them, when
 * nobody else is there. At most room of them. Returns how many. */
unsigned umemDebugBooks_pin(umemDebugBooks *books, uintptr_t from, bool all, umemDebugBlock *blocks,
                            unsigned room);
void umemDebugBooks_unpin(umemDebugBooks *books, umemDebugBlock const *blocks, unsigned count);

/* Whether what was found wrong with a part of block is still to be told; then *fault is it, and it
 * counts as told. */
bool umemDebugBooks_tell(umemDebugBooks *books, umemDebugBlock const *block, umemDebugPart part,
                         umemDebugFault *fault);

/* Whether the nbytes at adr lie inside a live block or touch none at all; else *fault tells what
 * they touch. */
bool umemDebugBooks_allow(umemDebugBooks *books, uintptr_t adr, size_t nbytes,
                          umemDebugFault *fault);

#endif
