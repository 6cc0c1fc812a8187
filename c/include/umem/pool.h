/* umem/pool.h - many blocks out of few: a pool over any context.
 *
 *     umemPool pool;
 *     umemPool_ctor(&pool, &cuda, NULL);
 *     uintptr_t adr = umem_alloc(&pool, 800);    // no call of the GPU's driver
 *
 * A pool takes large chunks from the context that it stands on, its upstream, and hands out parts of
 * them. It keeps what is freed, and gives chunks back when it is told to (umem_trim), when the upstream
 * has no more memory, and at its end. Its blocks lie inside the upstream's blocks: addresses, copies
 * and sets are the upstream's own.
 *
 *   sizes      Blocks up to 64 KiB come in classes of size, four for each power of two, from spans that
 *              hold blocks of one class; larger ones in units of 4 KiB.
 *   threads    Each thread keeps some freed blocks of up to 64 KiB for itself (at most 64 of a class, and
 *              not more than 64 KiB or four of them), so that threads seldom meet at the pool's lock. They
 *              go back when the thread ends, and not before: what other threads keep counts for the
 *              maximum, and neither umem_trim nor a lack of memory takes it from them. A block may be freed
 *              by any thread. As concurrent as the upstream.
 *   waiting    A thread that finds no memory waits while another one asks the upstream for some. So what the
 *              upstream calls meanwhile (a function of umemRetry) may use the pool, but must not wait for
 *              another thread that allocates from it.
 *   alignment  Natural is that of the upstream, 16 bytes at least. umem_aligned_alloc takes any power of
 *              two; more than 64 KiB costs a chunk of its own, which goes back when it is freed.
 *   the books  lie in RAM beside the memory and never in it. A free of what is no live block of the pool
 *              is umemValueError, and nothing is freed. So are umem_realloc and umem_aligned_origin.
 *              Writing outside of a block, but inside the upstream's, is not noticed.
 *   order      On an ordered upstream blocks are freed, and given out again, in the order of its queue. For
 *              many queues there are views: umem/pool_on.h.
 *   upstream   Chunks are asked for with umem_aligned_alloc, at multiples of 64 KiB; small blocks need one
 *              of 64 KiB. Where umem_aligned_alloc is umemVirtual's own, that takes 128 KiB. A request that
 *              fails has asked four times at most, for different sizes or after chunks were given back.
 *   fork       A child may use the pool as far as it may use the upstream. What other threads of the
 *              parent had kept for themselves stays unused in the child.
 */
#ifndef UMEM_POOL_H
#define UMEM_POOL_H

#include <umem/base.h>

/* A pool over another context, its upstream. Its blocks end with it. */
typedef struct umemPool {
  umemVirtual super;
  void *impl; /* owned */
  uintptr_t reserved[7];
} umemPool;

/* What the constructors are told. All in bytes; 0 is the default. */
typedef struct umemPoolOptions {
  size_t size;    /* sizeof(umemPoolOptions) as the caller was compiled */
  size_t initial; /* taken at construction. Default: nothing before the first allocation */
  size_t growth; /* of each further chunk, at least. Default: as much as the pool holds already, but
                     1 MiB at least and 64 MiB at most */
  size_t maximum; /* that the pool ever holds at once. Default: no bound */
} umemPoolOptions;

/* What umemPoolOptions start as: the defaults. */
#define UMEM_POOL_OPTIONS_INIT                                                                     \
  { sizeof(umemPoolOptions), 0, 0, 0 }

/* Constructs ctx over upstream, any context, which is borrowed and must outlive ctx. options are borrowed
 * for the call; NULL: the defaults.
 * Errors: umemValueError for an upstream that is NULL or ctx itself, options whose size cannot be true,
 * and an initial above the maximum; what the upstream says when it is not constructed, or has no initial
 * bytes. */
UMEM_EXTERN umemStatusType umemPool_ctor(umemPool *ctx, void *upstream,
                                         umemPoolOptions const *options);

/* The same, but the pool owns upstream: it destructs it at its own end. If this fails, upstream stays the
 * caller's. */
UMEM_EXTERN umemStatusType umemPool_adopt(umemPool *ctx, void *upstream,
                                          umemPoolOptions const *options);

/* What umemPool_stats tells. A block counts with the size of its class. While other threads use the pool
 * the figures are each about right, but not of one moment. */
typedef struct umemPoolStats {
  size_t size;        /* sizeof(umemPoolStats) as the caller was compiled; set it before the call */
  uint64_t used;      /* bytes of live blocks */
  uint64_t used_peak; /* the most there ever were; what waits in caches of threads counts as used */
  uint64_t reserved;  /* bytes taken from the upstream */
  uint64_t reserved_peak; /* the most there ever were */
  /* Bytes of the largest block that could be had without the upstream, leaving out spans in use. */
  uint64_t largest_free;
  /* 1 - largest_free / (reserved - used): 0 when all that is free is in one piece, near 1 when it is in
   * small ones. Each chunk is a piece of its own, so that an empty pool of several is above 0. */
  double fragmentation;
  uint64_t blocks;      /* live now */
  uint64_t allocations; /* that the pool has served in its life */
  uint64_t chunks;      /* held now */
} umemPoolStats;

/* What umemPoolStats starts as: its size set. */
#define UMEM_POOL_STATS_INIT                                                                       \
  { sizeof(umemPoolStats), 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* Fills *stats; at most stats->size bytes are written. For largest_free all large blocks that were freed and
 * wait for the next of their size are joined, so that the next ones cost more: not for every frame. (What
 * umem_get_info tells costs no such thing.) Errors: umemTypeError when ctx is no pool,
 * umemValueError when stats is NULL or its size too small to be true. */
UMEM_EXTERN umemStatusType umemPool_stats(umemPool *ctx, umemPoolStats *stats);

#endif
