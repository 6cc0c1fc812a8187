/* blocks_pump.h - moves blocks between an array and a place, while the program works on one of
 * them. */
#ifndef UMEM_BLOCKS_PUMP_H
#define UMEM_BLOCKS_PUMP_H

#include "blocks/blocks_slots.h"

/* ---- pump ---- */

/* Begins to read. Returns NULL, and records a status, when that fails. */
umemPump *umemPump_begin(umemBlocksPlan const *plan, char const *function);

/* Takes the program's block back. False, with a status, if its queue cannot be ordered after the
 * program's work: the program keeps the block. */
bool umemPump_give_back(umemPump *pump);

/* Waits for the next block. False if there is none: all were given, or reading or writing has
 * failed, or the blocks are cancelled. */
bool umemPump_take(umemPump *pump, umemBlock *block);

/* Stops reading. Returns when all blocks that were given back are written, or writing has
 * failed. */
void umemPump_drain(umemPump *pump);

void umemPump_cancel(umemPump *pump);
bool umemPump_is_cancelled(umemPump *pump);

/* The rows that are done, as the progress of umemBlocksOptions counts them. */
uint64_t umemPump_done(umemPump *pump);

/* After umemPump_drain. */
void umemPump_end(umemPump *pump);

/* Whether this process is a child of fork of the one whose threads the pump has. */
bool umemPump_is_lost(umemPump const *pump);

/* ---- reads ---- */

/* Decides how blocks are cut and read. Before anything is read. concurrent: several threads may use
 * all contexts. */
void umemReads_begin(umemPump *pump, bool concurrent);

/* Whether there is a piece to read now, and whether no thread reads and there will be no piece.
 * Under the lock. */
bool umemReads_can_run(umemPump const *pump);
bool umemReads_are_over(umemPump const *pump);

/* Reads until there are no pieces; one: reads one block. Called with the lock, which it releases
 * meanwhile. */
void umemReads_run(umemPump *pump, bool one);

#endif
