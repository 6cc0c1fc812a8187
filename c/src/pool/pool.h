/* pool.h - the context of a pool, and an overview of its files.
 *
 * A file calls only files below it in this list:
 *
 *   pool.c            the context of a pool: options, trim, its end
 *   pool_on.c         the context of a view, which is bound to a queue
 *   pool_quick.c      allocates and frees small blocks by the calling thread's cache alone
 *   pool_block.c      the methods for blocks, which both contexts have, and counts
 *   pool_find.c       finds a block where the calling thread's cache has none; gets more free
 *                     memory for a free list, from others or from the upstream
 *   pool_transfer.c   begins and ends free lists, and moves free memory from one to another
 *   pool_pages.c      maps pages, moves them, and gives them back
 *   pool_cache.c      caches: each thread's small blocks, and how they pass between threads
 *   pool_chunk.c      takes chunks from the upstream and gives them back; large blocks, and the
 *                     quick lists of those that are freed
 *   pool_span.c       ranges of chunks: for spans, for large blocks, or on their way to another
 *                     list; cuts spans into small blocks, and knows which of these are free
 *   pool_paging.c     finds places for pages, and keeps the pieces that one thread maps
 *   pool_space.c      ranges of addresses of the upstream, and which of their pages have memory
 *   pool_core.c       the core: references to it, the memory of its records, and queues that wait
 *                     for other queues
 *   growth.c          the requests for chunks, and the threads that wait for them
 *
 * The core has the chunks and the records of live blocks. A free list has the free memory of one
 * queue: memory that was freed in the order of this queue, and can be used again in this order at
 * once. The pool has its own free list, whose queue is the upstream, and each view has one. A live
 * block belongs to no free list: it goes to the list of the view that frees it. Free memory moves
 * to another list only after the queue of that list was made to wait for the queue of the old one.
 *
 * The memory of a list comes in chunks or, if the upstream can map it, in pages (umemPages). Pages
 * are mapped into spaces, which are ranges of addresses. A page without memory is a gap; it is in
 * no list.
 *
 * A small block is in one of three states: free in its span (its bit there is set), in a thread's
 * cache or in the depot, or live. A byte for each block, beside the descriptor of its span, says
 * whether it is live. The thread that changes this byte from 1 to 0 owns the block. So if two
 * threads free one block, one of them fails. No thread but its own uses a cache, unless memory is
 * short: see pool_cache.c.
 *
 * Threads: the lock protects all members of the core below it, and the free lists. Descriptors of
 * spans and free lists stay until the end of the pool, because a wrong free may be reading them;
 * the page map shows whether they have changed. Failures that happen under the lock are recorded
 * after its release, because the failure hook may call the pool. The lock is released while a queue
 * is made to wait for another one, and while the upstream allocates a chunk (growth.h). */
#ifndef UMEM_POOL_PRIVATE_H
#define UMEM_POOL_PRIVATE_H

#include "pool/pool_core.h"

/* The core of ctx, a constructed context; NULL when it is not a pool. */
umemPoolCore *umemPool_core(umemVirtual *ctx);

#endif
