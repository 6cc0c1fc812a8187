/* umem/pool_on.h - one pool for many queues: views of a pool, each in the order of one queue.
 *
 *     umemCuda gpu;                 umemCuda_ctor(&gpu, 0);
 *     umemPool pool;                umemPool_ctor(&pool, &gpu, NULL);
 *     umemCudaAsync queue[8];       // eight streams
 *     umemPoolOn view[8];           umemPoolOn_ctor(&view[i], &pool, &queue[i]);
 *     uintptr_t adr = umem_alloc(&view[3], n);     // to be used by the work of stream 3
 *     ...                                          // kernels on stream 3
 *     umem_free(&view[3], adr);                    // at once: nobody waits for the kernels
 *
 * A view is a context: its blocks are the pool's, its copies and sets those of its queue, which
 * umem_get_upstream tells. It is cheap: it takes nothing from the pool's upstream, and neither allocation
 * nor free calls the queue, but for what is told here under sharing.
 *
 *   order      A block that is freed through a view may still be used by work that its queue has before
 *              the free. What the view gives out again is used by later work of the same queue.
 *   live       blocks belong to the pool. Any view of the pool may free any of them, and so may the pool
 *              itself. The free is then in the order of the view that it goes through: what other queues
 *              do with the block must be complete, or umem_wait have ordered it before.
 *              A block of more than 64 KiB stays live, and umem_free says umemMemoryError, when there is
 *              no RAM for the books of its passing.
 *   sharing    What is freed is kept for the view. One that has nothing to suit takes from another view,
 *              or from what was freed through the pool, before the pool takes more of its upstream: its
 *              queue is told to wait (umem_wait) for what the other's queue has at that moment. When
 *              memory is out it takes whatever all others have free.
 *   the pool   itself is in the order of its upstream. If that is not ordered (Cuda), work on the legacy
 *              default stream, and no other, may still use a block that is freed through the pool: a view
 *              that takes the block waits for it. The pool waits for the queue of a view that it takes from.
 *   captures   While a CUDA stream is captured into a graph, its view gives out what it has free itself,
 *              and new memory where the upstream is not ordered; else it fails with
 *              umemNotSupportedError. Nobody takes from it. A block that the graph uses must live as long
 *              as the graph. Begin and end the capture while no other thread allocates from the pool or
 *              its views, trims or ends one of them: CUDA's driver is not safe where one thread does
 *              so and another asks for the state of the stream.
 *   threads    As concurrent as the pool and the queue both are. Views that stand on what is not
 *              concurrent take turns with their pool.
 *   trim       of a view gives what is free in it to the pool's own order; of the pool, all that is free
 *              in all views back to the upstream.
 */
#ifndef UMEM_POOL_ON_H
#define UMEM_POOL_ON_H

#include <umem/base.h>

struct umemPool; /* umem/pool.h */

/* A view of a pool. */
typedef struct umemPoolOn {
  umemVirtual super;
  void *impl; /* owned */
  uintptr_t reserved[7];
} umemPoolOn;

/* Constructs ctx, a view of pool in the order of ordered: a context in the same memory as the pool,
 * usually one that queues its work, such as a umemCudaAsync; it may be what the pool stands on. Both are
 * borrowed and must outlive ctx. When ctx ends, what is free in it goes to the pool: the pool's upstream
 * is told to wait for the queue or, where it is not ordered, this is waited for. Live blocks stay.
 * If the pool ends earlier, its blocks end with it, and ctx answers with umemValueError.
 * Errors: umemTypeError when pool is no umemPool; umemValueError when either is NULL or not
 * constructed, or ordered is in other memory; umemMemoryError.
 * At the end of ctx: umemNotSupportedError when the queue is being captured: what is free in its order is
 * of no use then until the pool ends. */
UMEM_EXTERN umemStatusType umemPoolOn_ctor(umemPoolOn *ctx, struct umemPool *pool, void *ordered);

#endif
