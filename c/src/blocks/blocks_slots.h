/* blocks_slots.h - the memory of blocks on the place, and the copies between it and the arrays. */
#ifndef UMEM_BLOCKS_SLOTS_H
#define UMEM_BLOCKS_SLOTS_H

#include <umem/virtual.h>

#include "blocks/blocks_plan.h"

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

/* Reads a part, or writes a block, and returns when that is done. False, with a status, when it failed. */
bool umemSlots_read(umemSlots const *slots, umemSlotPart const *part);
bool umemSlots_write(umemSlots const *slots, size_t number);

/* Orders what the queue of a block does from now on after what the program has queued on the place. False, with a
 * status, if it fails. */
bool umemSlots_order(umemSlots const *slots, size_t number);

#endif
