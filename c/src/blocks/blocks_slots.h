/* blocks_slots.h - the memory of blocks on the place, and the copies between it and the arrays. */
#ifndef UMEM_BLOCKS_SLOTS_H
#define UMEM_BLOCKS_SLOTS_H

#include "blocks/blocks_plan.h"

/* Block k is in slot k % depth. */
typedef struct umemSlots {
  umemBlocksPlan plan;
  uintptr_t memory;     /* on the place */
  umemVirtual **queues; /* owned */
  size_t queue_count;   /* at least 1 */
} umemSlots;

/* Allocates the memory. False, with a status and nothing to release, when that fails. */
bool umemSlots_take(umemSlots *slots, umemBlocksPlan const *plan);
void umemSlots_release(umemSlots *slots);

/* Where a block is: the first of its own rows, and its results. */
uintptr_t umemSlots_adr(umemSlots const *slots, size_t number);
uintptr_t umemSlots_out(umemSlots const *slots, size_t number);

/* Reads or writes a block, and returns when that is done. False, with a status, when it failed. */
bool umemSlots_read(umemSlots const *slots, size_t number);
bool umemSlots_write(umemSlots const *slots, size_t number);

/* Orders what is done with the slot of a block from now on after what the program has queued on the place. False, with
 * a status, when it failed. */
bool umemSlots_order(umemSlots const *slots, size_t number);

#endif
