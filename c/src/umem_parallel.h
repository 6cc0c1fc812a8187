/* umem_parallel.h - one job done in a few pieces at the same time. */
#ifndef UMEM_PARALLEL_H
#define UMEM_PARALLEL_H

#include <stddef.h>

enum { umemParallelMost = 8 }; /* pieces */

typedef void umemPiece(void *job, unsigned piece);

/* How many pieces of at least least bytes a job of size bytes should be done in: 1 to most, and not
 * more than there are processors for this process. */
unsigned umem_parallel_pieces(size_t size, size_t least, unsigned most);

/* Calls work(job, 0) ... work(job, pieces - 1), the first in the calling thread, the others in threads
 * of their own (where the system gives none, in the calling one too), and returns when all have
 * returned. pieces is 1 ... umemParallelMost. What work records counts as the caller's failure; of
 * several pieces that fail, the lowest one's is kept. */
void umem_parallel(unsigned pieces, umemPiece *work, void *job);

#endif
