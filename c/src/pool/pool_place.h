/* pool_place.h - where in the spaces of a pool a range is made of free memory and gaps. See pool.h. Under the lock. */
#ifndef UMEM_POOL_PLACE_H
#define UMEM_POOL_PLACE_H

#include "pool/pool_space.h"

/* A place for a range. Its units are free in a list, or in gaps. */
typedef struct umemPoolPlace {
  umemPoolSpace *space; /* NULL: there is none */
  uint64_t start, end;  /* units */
  size_t first, last;   /* its pages, last included */
  size_t missing;       /* those without memory */
} umemPoolPlace;

/* The place for so many units, at a multiple of step, that needs the fewest pages; of several the lowest one in the
 * newest space. It uses the free memory of list, next to at least one gap. */
umemPoolPlace umemPoolPlace_find(umemPoolFreeList const *list, uint64_t units, uint64_t step);

/* The end of the piece of a place that begins at unit: of a gap or of free memory of the list. unit itself where other
 * memory begins. */
uint64_t umemPoolPlace_piece(umemPoolFreeList const *list, umemPoolSpace const *space,
                             uint64_t unit);

#endif
