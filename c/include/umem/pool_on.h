/* umem/pool_on.h - one pool for many queues: views of a pool, each in the order of one queue.
 *
 *     umemCuda gpu;                 umemCuda_ctor(&gpu, 0);
 *     umemPool pool;                umemPool_ctor(&pool, &gpu, NULL);
 *     umemCudaAsync queue[8];       // eight streams
 *     umemPoolOn view[8];           umemPoolOn_ctor(&view[i], &pool, &queue[i]);
 *     uintptr_t adr = umem_alloc(&view[3], n);     // to be used by the work of stream 3
 *     ...                                          // kernels on stream 3
 *     umem_free(&view[3], adr);  // the kernels may still run: the call does not wait
 *
 * A view is a context. Its blocks are those of the pool. Its copies and sets are those of its
 * queue, which is its upstream (umem_get_upstream). The constructor of a view takes no memory from
 * the pool's upstream. Allocation and free do not call the queue, except as described under
 * sharing.
 *
 *   order      Work that was queued before a free through the view may still use the block. Later
 *              work of the same queue may use the memory again.
 *   live       A live block belongs to the pool. Any view of the pool, and the pool itself, may
 *              free it. The free is then in the order of this view. If other queues have used the
 *              block, wait for their work before the free, or make the queue of this view wait with
 *              umem_wait. If there is no RAM to record that a block of more than 64 KiB moves to
 *              another view, umem_free fails with umemMemoryError, and the block stays live.
 *   sharing    Each view has its own free memory. If this does not suffice, the view takes memory
 *              that another view has marked, or that was freed through the pool, before the pool
 *              allocates another chunk. The queue of the view then waits for the mark. Before an
 *              allocation fails, the view takes all memory that other views have marked. The
 *              message names the view that keeps most of what it has not marked.
 *   marks      No call on a view uses the queue of another view. A view marks its free memory in
 *              its own calls (CUDA: it records an event on its stream): in umem_trim,
 *              umem_synchronize and umem_dtor of the view; and in allocations and frees that need
 *              the pool's lock, if the view has freed a sixteenth of the pool, and at least 1 MiB,
 *              since its last mark, or if another view has looked for memory in vain. umem_free
 *              marks only in the thread that allocated through the view last; if no thread has,
 *              in the first that frees through this view and allocates through no other. Blocks in
 *              the caches of threads are not marked, except by umem_trim and umem_synchronize, and
 *              after an allocation of another view was about to fail. What a view has not marked
 *              stays with this view.
 *              A queue without the method mark (umem/virtual.h) needs none: other views wait for
 *              the queue itself (umem_wait), at any time.
 *   the pool   The pool itself is in the order of its upstream. If the upstream is not ordered
 *              (Cuda), only work on the legacy default stream may still use a block when you free
 *              it through the pool; a view that takes the block waits for this work. If it is
 *              ordered, calls on any view may use its queue. When the pool takes memory from a
 *              view, it waits for the mark.
 *   captures   While a CUDA stream is captured into a graph, its view allocates from its own free
 *              memory, and from new chunks if the pool's upstream is not ordered; otherwise the
 *              allocation fails with umemNotSupportedError. What the view frees meanwhile is marked
 *              after the capture. A block that the graph uses must live as long as the graph. Other
 *              threads may use the pool and its other views at any time, also while the capture
 *              begins or ends. They must not end the pool, nor use this view or its queue then,
 *              but for umem_free in a thread that does not allocate through this view. Do not
 *              capture the stream of the pool's upstream while other threads use the pool.
 *   threads    A view is concurrent if the pool and the queue are. Views over a context that is not
 *              concurrent must not be used at the same time as their pool.
 *   trim       umem_trim of a view moves its free memory to the pool's own free list. umem_trim of
 *              the pool gives back the free memory of all views that they have marked. */
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

/* Constructs ctx, a view of pool in the order of the context ordered. This uses the same memory as
 * the pool, and usually queues its work, such as a umemCudaAsync; it may be the upstream of the
 * pool. ctx borrows both, and they must outlive it. When ctx ends, its free memory goes to the
 * pool, whose upstream waits for the queue; if the upstream is not ordered, umem_dtor waits. Live
 * blocks stay live. If the pool ends earlier, its blocks end with it, and calls on ctx fail with
 * umemValueError. Errors: umemTypeError if pool is not a umemPool; umemValueError if either is NULL
 * or not constructed, or if ordered is in other memory; umemMemoryError. umem_dtor(ctx) records
 * umemNotSupportedError if the queue is being captured. The free memory of ctx then stays unused
 * until the pool ends. */
UMEM_EXTERN umemStatusType umemPoolOn_ctor(umemPoolOn *ctx, struct umemPool *pool, void *ordered);

#endif
