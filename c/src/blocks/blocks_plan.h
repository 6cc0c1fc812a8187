/* blocks_plan.h - into which blocks an array is cut, and the memory that they pass through. */
#ifndef UMEM_BLOCKS_PLAN_H
#define UMEM_BLOCKS_PLAN_H

#include <umem/blocks.h>
#include <umem/virtual.h>

/* ==== blocks ==== */

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

/* ==== slots ==== */

/* Block k is in slot k % depth. */
typedef struct umemSlots {
  umemBlocksPlan plan;
  uintptr_t memory;     /* on the place */
  unsigned generation;  /* of the process that has allocated it */
  umemVirtual **queues; /* owned */
  size_t queue_count;   /* at least 1 */
} umemSlots;

/* Allocates the memory. False, with a status and nothing to release, when that fails. */
bool umemSlots_take(umemSlots *slots, umemBlocksPlan const *plan);
void umemSlots_release(umemSlots *slots);

/* Where a block is: the first of its own rows, and its results. */
uintptr_t umemSlots_adr(umemSlots const *slots, size_t number);
uintptr_t umemSlots_out(umemSlots const *slots, size_t number);

/* The context in whose order block number is read and written. */
umemVirtual *umemSlots_queue(umemSlots const *slots, size_t number);

/* Bytes of a block with its ghost rows, of any kind. */
size_t umemSlots_nbytes(umemSlots const *slots, size_t number);

/* Bytes of a block in its memory, [at, at + nbytes) from its first ghost row on. */
typedef struct umemSlotPart {
  size_t number; /* of the block */
  size_t at, nbytes;
} umemSlotPart;

/* The part of block number that begins at at, and has about wanted bytes. */
umemSlotPart umemSlots_part(umemSlots const *slots, size_t number, size_t at, size_t wanted);

/* Whether the part stands in the source as one run, too. If so, fills in *piece. */
bool umemSlots_piece(umemSlots const *slots, umemSlotPart const *part, umemCopyPiece *piece);

/* Reads a part, or writes a block, and returns when that is done. False, with a status, when it
 * failed. */
bool umemSlots_read(umemSlots const *slots, umemSlotPart const *part);
bool umemSlots_write(umemSlots const *slots, size_t number);

/* Orders what the queue of a block does from now on after what the program has queued on the place.
 * False, with a status, if it fails. */
bool umemSlots_order(umemSlots const *slots, size_t number);

#endif
