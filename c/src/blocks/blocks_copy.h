/* blocks_copy.h - the copies that bring a block to the place, and from there to the destination. */
#ifndef UMEM_BLOCKS_COPY_H
#define UMEM_BLOCKS_COPY_H

#include "blocks/blocks_pump.h"

/* Where a block is on the place: the first of its own rows, and its results. */
uintptr_t umemPump_adr(umemPump const *pump, size_t number);
uintptr_t umemPump_out(umemPump const *pump, size_t number);

/* The queue whose copies are those of a block. */
umemVirtual *umemPump_queue(umemPump const *pump, size_t number);

/* Reads or writes a block, and returns when that is done. False, with a status, when it failed. */
bool umemPump_read(umemPump *pump, size_t number);
bool umemPump_write(umemPump *pump, size_t number);

#endif
