/* parallel.h - one job done in a few pieces at the same time.
 *
 * The threads that help are the process's: see umem/threads.h. */
#ifndef UMEM_PARALLEL_H
#define UMEM_PARALLEL_H

#include <stddef.h>

enum { umemParallelMost = 16 }; /* pieces, and threads */

typedef void umemPiece(void *job, unsigned piece);

/* How many pieces of at least least bytes a job of size bytes should be done in: 1 to most, and not
 * more than umem_parallel_threads(). */
unsigned umem_parallel_pieces(size_t size, size_t least, unsigned most);

/* Calls work(data, 0) ... work(data, pieces - 1), the first in the calling thread, each other one in a
 * thread that is free or, while there is none, in the calling one too, and returns when all have
 * returned. So no piece may wait for another one to begin. pieces is 1 ... umemParallelMost; work may
 * call umem_parallel. What work records counts as the caller's failure; of several pieces that fail,
 * the lowest one's is kept.
 *
 * Where work forks: the child goes on with the pieces that nobody had begun, and those that other
 * threads were at have failed in it. The child of a thread that helps ends with its piece. */
void umem_parallel(unsigned pieces, umemPiece *work, void *data);

/* What umem_set_threads and umem_get_threads do; count is 0 ... umemParallelMost. */
void umem_parallel_set(unsigned count);
unsigned umem_parallel_threads(void);

#endif
