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
 * A view is a context. Its blocks are the pool's; its copies and sets are those of its queue, which is its
 * upstream (umem_get_upstream). A view takes no memory from the pool's upstream when it is constructed.
 * Allocation and free do not call the queue, except as described under sharing.
 *
 *   order      A block that is freed through a view may still be used by work that its queue had before the
 *              free. What the view allocates again is used by later work of the same queue.
 *   live       A live block belongs to the pool. Any view of the pool, and the pool itself, may free it.
 *              The free is then in the order of that view: other queues must have completed their work with
 *              the block, or umem_wait must have ordered it before.
 *              If there is no RAM to record that a block of more than 64 KiB moves to another view,
 *              umem_free is umemMemoryError, and the block stays live.
 *   sharing    The free memory of each view is kept apart. A view that has none that suits takes some from
 *              another view, or from what was freed through the pool, before the pool takes another chunk.
 *              For that the queue of the view waits (umem_wait) for the work that the other queue has at
 *              that moment. Before an allocation fails, the view takes what all others have free.
 *   the pool   itself is in the order of its upstream. If that is not ordered (Cuda), only work on the legacy
 *              default stream may still use a block when it is freed through the pool: a view that takes the
 *              block waits for this work. The pool waits for the queue of a view that it takes memory from.
 *   captures   While a CUDA stream is captured into a graph, its view allocates from what it has free
 *              itself, and from new chunks if the upstream is not ordered; otherwise it fails with
 *              umemNotSupportedError. Nobody takes memory from it. A block that the graph uses must live as
 *              long as the graph. Begin and end the capture while no other thread allocates from the pool
 *              or its views, or trims or ends one of them: such a call may ask CUDA for the state of the
 *              stream, and CUDA's driver is not safe when another thread begins or ends the capture at that
 *              moment.
 *   threads    As concurrent as the pool and the queue both are. Views over a context that is not
 *              concurrent must not be used at the same time as their pool.
 *   trim       of a view moves its free memory to the pool's own order. Trim of the pool gives back what is
 *              free in all views.
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

/* Constructs ctx, a view of pool in the order of ordered: a context in the same memory as the pool, usually
 * one that queues its work, such as a umemCudaAsync; it may be the upstream of the pool. ctx borrows both,
 * and they must outlive it. When ctx ends, its free memory goes to the pool, whose upstream waits for the
 * queue; if the upstream is not ordered, umem_dtor waits. Live blocks stay. If the pool ends earlier, its
 * blocks end with it, and calls of ctx are umemValueError.
 * Errors: umemTypeError when pool is not a umemPool; umemValueError when either is NULL or not constructed,
 * or ordered is in other memory; umemMemoryError.
 * When ctx ends: umemNotSupportedError when the queue is being captured. Its free memory then stays unused
 * until the pool ends. */
UMEM_EXTERN umemStatusType umemPoolOn_ctor(umemPoolOn *ctx, struct umemPool *pool, void *ordered);

#endif
