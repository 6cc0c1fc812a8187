/* pool_plan.h - decides where a block gets pages, and how large these are. Changes nothing but that
 * it may reserve addresses. All under the lock. */
#ifndef UMEM_POOL_PLAN_H
#define UMEM_POOL_PLAN_H

#include "pool/pool_space.h"

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
