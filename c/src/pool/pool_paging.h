/* pool_paging.h - where a range can be made of free memory and gaps, and the pieces of memory that
 * a thread maps and moves for it while the lock is open. See pool.h. All under the lock. */
#ifndef UMEM_POOL_PAGING_H
#define UMEM_POOL_PAGING_H

#include "pool/pool_space.h"

/* ---- places ---- */

/* A place for a range. Its units are free in a list, or in gaps. */
typedef struct umemPoolPlace {
  umemPoolSpace *space; /* NULL: there is none */
  uint64_t start, end;  /* units */
  size_t first, last;   /* its pages, last included */
  size_t missing;       /* those without memory */
} umemPoolPlace;

/* The place for so many units, at a multiple of step, that needs the fewest pages; of several the
 * lowest one in the newest space. It uses the free memory of list, next to at least one gap. */
umemPoolPlace umemPoolPlace_find(umemPoolFreeList const *list, uint64_t units, uint64_t step);

/* The end of the piece of a place that begins at unit: of a gap or of free memory of the list. unit
 * itself where other memory begins. */
uint64_t umemPoolPlace_piece(umemPoolFreeList const *list, umemPoolSpace const *space,
                             uint64_t unit);

/* ---- pages ---- */

/* A live range that is no block. */
typedef struct umemPoolPiece {
  umemPoolFreeList *home; /* that has the range; NULL: it was given back */
  uint64_t start, units;
  size_t pages; /* all its pages, where it is whole pages */
  size_t
      done; /* pages, from the first on: of a gap, which have got memory; of a source, which have lost it */
  bool large; /* a source of large pages */
  bool ends;  /* a source whose memory goes back to the upstream */
} umemPoolPiece;

struct umemPoolPaging {
  unsigned lineage; /* umem_fork_count() at its begin */
  umemPoolFreeList *list;
  umemPoolPlace place;
  size_t gap_count, held_count, source_count, seen_count, room;
  umemPoolPiece *gaps;    /* of the place: will get memory */
  umemPoolPiece *held;    /* of the place: free memory */
  umemPoolPiece *sources; /* free pages elsewhere: 2 * room */
  umemPoolPiece *seen;    /* what may become sources: room */
  umemPoolPiece pieces[];
};

static inline uintptr_t umemPoolPiece_adr(umemPoolPiece const *piece, size_t page_size,
                                          size_t page) {
  return (uintptr_t)(piece->start << umemPoolUnitShift) + page * page_size;
}

/* Begins to map for the list, and takes the pieces of place; NULL: there is none. Nobody else is
 * mapping. NULL, with nothing changed, without memory. */
umemPoolPaging *umemPoolPaging_begin(umemPoolFreeList *list, umemPoolPlace const *place);

/* Takes so many pages as sources, the highest pieces first: large pages while the gaps have room
 * for whole ones, then small pages. If these are not enough, it takes further large pages, whose
 * memory goes back to the upstream; it then may take more pages, up to a group. Sources for a place
 * are of its list, and then of lists that are not blocked. Without a place all are of the list, and
 * their memory goes back. */
void umemPoolPaging_take(umemPoolPaging *paging, size_t pages);

/* Waits for the work that may use the sources. Gives back those for which that fails. Releases the
 * lock for some time. */
void umemPoolPaging_finish(umemPoolPaging *paging);

/* The pages of the sources that end, or that are moved. */
size_t umemPoolPaging_pages(umemPoolPaging const *paging, bool ends);

/* Makes all pieces free again: where they have memory now. */
void umemPoolPaging_end(umemPoolPaging *paging);

/* Of a thread of the parent, in a child of fork: what that thread was moving stays unused. */
void umemPoolPaging_abandon(umemPoolCore *core);

/* Whether this live range of the list is one of the pieces. */
bool umemPoolPaging_has(umemPoolPaging const *paging, umemPoolFreeList const *list, uint64_t start);

#endif
