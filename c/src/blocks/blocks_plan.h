/* blocks_plan.h - into which blocks an array is cut, and where they stand in memory. */
#ifndef UMEM_BLOCKS_PLAN_H
#define UMEM_BLOCKS_PLAN_H

#include <umem/blocks.h>

/* The options, checked, and what follows from them. */
typedef struct umemBlocksPlan {
  umemBlocksOptions
      given;   /* strides are never 0; queues borrowed for the call of the constructor only */
  size_t rows; /* of each block but the last */
  size_t blocks, depth;
  size_t ahead;      /* a block may be written when so many blocks after it have been read */
  size_t in_bytes;   /* of a block with its ghost rows, rounded to the alignment of the place */
  size_t slot_bytes; /* and with its results; slots stand one after the other */
} umemBlocksPlan;

/* Makes a plan. Returns false, and records a status, where options allow none. */
bool umemBlocksPlan_make(umemBlocksPlan *plan, umemBlocksOptions const *options);

/* Which rows of the array a block holds. */
typedef struct umemBlockRange {
  size_t first, rows;    /* its own rows */
  size_t before, after;  /* ghost rows that the array has */
  size_t missing_before; /* and those that it has not */
  size_t missing_after;
} umemBlockRange;

umemBlockRange umemBlocksPlan_range(umemBlocksPlan const *plan, size_t number);

enum { umemBlockNameSize = 160 };

/* What the messages of failures with a block begin with: "umemBlocks_next: reading block 7 of 16
 * (rows 700 to 799)". function: of at most 40 characters, as verb is of at most 10. */
void umemBlocksPlan_name(umemBlocksPlan const *plan, char const *function, char const *verb,
                         size_t number, char name[umemBlockNameSize]);

#endif
