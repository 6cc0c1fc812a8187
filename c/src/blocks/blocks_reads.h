/* blocks_reads.h - reading of blocks, in pieces that several threads share. */
#ifndef UMEM_BLOCKS_READS_H
#define UMEM_BLOCKS_READS_H

#include "blocks/blocks_passage.h"

/* Decides how blocks are cut and read. Before anything is read. concurrent: several threads may use all contexts. */
void umemReads_begin(umemPump *pump, bool concurrent);

/* Whether there is a piece to read now, and whether nobody reads and there will be no piece. Under the lock. */
bool umemReads_can_run(umemPump const *pump);
bool umemReads_are_over(umemPump const *pump);

/* Reads until there are no pieces; one: reads one block. Called with the lock, which it releases meanwhile. */
void umemReads_run(umemPump *pump, bool one);

#endif
