/* pool_space.h - ranges of addresses of the upstream, which of their pages have memory, and where a
 * range can be made of free memory and gaps. All under the lock. */
#ifndef UMEM_POOL_SPACE_H
#define UMEM_POOL_SPACE_H

#include "pool/pool_core.h"

/* A range of addresses. Memory of its pages is free in a list, or live. Pages without memory, the
 * gaps, are in no list.
 *
 * Memory may come in larger pages, of 1 << order others, which begin with any of these. Such a page
 * is mapped, moved and given back as a whole. */
struct umemPoolSpace {
  struct umemPoolSpace *next;
  uint64_t start; /* the first unit */
  bool separate;  /* its memory is for small ranges: see umemPoolCore_separates */
  /* Pages that may get memory. One more has none, so that two spaces are never neighbours. */
  size_t count;
  size_t top;            /* pages from here on never had memory */
  unsigned char *orders; /* [page], atomic: where it has memory, the order of that, and whether
                            this begins there */
  uint64_t *fresh;   /* a bit for each page, atomic: it was zero when it was mapped, and no block in
                        it was freed since. NULL: pages are not zero when they are mapped */
  uint64_t mapped[]; /* a bit for each page: it has memory */
};

/* Units of a page. */
static inline uint64_t umemPoolSpace_units(umemPoolCore const *core) {
  return core->pages->page_size >> umemPoolUnitShift;
}

/* Reserves a space in which `pages` pages fit; if the upstream has so many addresses, a much larger
 * one. NULL without memory or addresses. An attempt must be open. */
umemPoolSpace *umemPoolSpace_add(umemPoolCore *core, size_t pages, bool separate);

/* The space of the unit; NULL where there is none. */
umemPoolSpace *umemPoolSpace_of(umemPoolCore const *core, uint64_t unit);

static inline uint64_t umemPoolSpace_unit(umemPoolCore const *core, umemPoolSpace const *space,
                                          size_t page) {
  return space->start + page * umemPoolSpace_units(core);
}

static inline size_t umemPoolSpace_page(umemPoolCore const *core, umemPoolSpace const *space,
                                        uint64_t unit) {
  return (size_t)((unit - space->start) / umemPoolSpace_units(core));
}

static inline bool umemPoolSpace_has(umemPoolSpace const *space, size_t page) {
  return space->mapped[page / 64] >> page % 64 & 1;
}

/* The first page from `page` on that has memory, or has none; count where there is none. */
size_t umemPoolSpace_next(umemPoolSpace const *space, size_t page, bool mapped);

/* How many of these pages have no memory. */
size_t umemPoolSpace_missing(umemPoolSpace const *space, size_t first, size_t end);

/* Notes that pages have memory, or have none any more. */
void umemPoolSpace_set(umemPoolCore *core, umemPoolSpace *space, size_t first, size_t count,
                       bool mapped);

/* Notes that pages which were mapped are zero. Without the lock, by the one thread that maps. */
void umemPoolSpace_set_fresh(umemPoolSpace *space, size_t first, size_t count);

/* Notes that these units, of a range that becomes free, may have any contents. */
void umemPoolSpace_note_freed(umemPoolCore *core, uintptr_t adr, uint64_t units);

/* Finds the first part of [*begin, end), a new block in the space, that may have other bytes than
 * zeros, in whole pages: sets *begin and *used_end. False where all is zero. Without the lock. */
bool umemPoolSpace_next_used(umemPoolCore const *core, umemPoolSpace const *space, uintptr_t *begin,
                             uintptr_t end, uintptr_t *used_end);

/* Notes the order of pages that no list has yet. Without the lock, by the one thread that maps. */
void umemPoolSpace_set_order(umemPoolSpace *space, size_t first, size_t count, unsigned order);

/* So many pages, rounded up to whole ones of this order. */
static inline size_t umemPoolSpace_round(size_t pages, unsigned order) {
  size_t const mask = ((size_t)1 << order) - 1;
  return (pages + mask) & ~mask;
}

/* Pages side by side that all have memory of one order, all of each. */
typedef struct umemPoolRun {
  size_t first, count; /* pages of order 0 */
  unsigned order;
} umemPoolRun;

/* Fills in the first run of [*page, end), where all pages have memory, and sets *page to its end.
 * Leaves out large pages that are not all in it. False at the end. */
bool umemPoolSpace_next_run(umemPoolSpace const *space, size_t *page, size_t end, umemPoolRun *run);

/* ---- places ---- */

/* A place for a range. Its units are free in a list, or in gaps. */
typedef struct umemPoolPlace {
  umemPoolSpace *space; /* NULL: there is none */
  uint64_t start, end;  /* units */
  size_t first, last;   /* its pages, last included */
  size_t missing;       /* those without memory */
} umemPoolPlace;

/* The place for so many units, at a multiple of step, that needs the fewest pages; of several the
 * lowest one in the newest space: in a separate one if the range is small, else in another. It uses
 * the free memory of list, next to at least one gap. */
umemPoolPlace umemPoolPlace_find(umemPoolFreeList const *list, uint64_t units, uint64_t step);

/* The end of the piece of a place that begins at unit: of a gap or of free memory of the list. unit
 * itself where other memory begins. */
uint64_t umemPoolPlace_piece(umemPoolFreeList const *list, umemPoolSpace const *space,
                             uint64_t unit);

/* ---- the end ---- */

/* Gives all memory and all addresses back. */
void umemPoolSpace_end_all(umemPoolCore *core);

/* ==== plans: where a block gets pages, and how large these are. Under the lock ====
 *
 * Changes nothing but that it may reserve addresses. */

/* ---- pieces ---- */

/* A range of whole pages: what is free, or held. */
typedef struct umemPoolPiece {
  umemPoolFreeList *home; /* that has the range; NULL: it was given back */
  uint64_t start, units;
  size_t pages;
  size_t done; /* pages, from the first on: of a gap that have memory, of a source that have none */
  unsigned order; /* of the pages of a source */
  bool ends;      /* a source whose memory goes back to the upstream */
} umemPoolPiece;

/* A walk through the pages of home of which all is free, and may be used for the list. */
typedef struct umemPoolWalk {
  umemPoolFreeList *home;
  umemPoolMarked ranges;
  umemPoolSpace *space; /* of the free range that was found last */
  size_t page, end;     /* what is left of that */
} umemPoolWalk;

static inline umemPoolWalk umemPoolWalk_begin(umemPoolFreeList const *list,
                                              umemPoolFreeList *home) {
  return (umemPoolWalk){.home = home, .ranges = {.list = list, .from = home}};
}

/* Fills in the next ones, of one size. False at the end. */
bool umemPoolWalk_next(umemPoolWalk *walk, umemPoolPiece *piece);

/* Whether pages of home may move to a place of the list. */
bool umemPoolPlan_may_move(umemPoolFreeList const *list, umemPoolFreeList const *home);

/* ---- plans ---- */

/* How much new memory a growth may take that it does not need, in bytes. */
typedef struct umemPoolExtra {
  size_t ample;   /* mapped beside the range, for later requests */
  size_t unmoved; /* of the range itself, in place of pages that could be moved */
  bool joins;     /* large pages may take the place of several small ones, which go back for them */
} umemPoolExtra;

typedef struct umemPoolPlan {
  umemPoolPlace place;
  size_t unmoved; /* so many pages are new, although others could move */
  unsigned order; /* the largest order of new pages */
  unsigned joins; /* of new ones in place of several smaller ones that could move */
} umemPoolPlan;

/* Plans pages for size bytes, a multiple of units, at a multiple of alignment, and what extra says.
 * False without memory or addresses. An attempt must be open. */
bool umemPoolPlan_make(umemPoolFreeList *list, size_t size, size_t alignment, umemPoolExtra extra,
                       umemPoolPlan *plan);

#endif
