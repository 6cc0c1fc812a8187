/* umem/pool.h - a pool, which makes many blocks of a few chunks of any other context.
 *
 *     umemPool pool;
 *     umemPool_ctor(&pool, &cuda, NULL);
 *     uintptr_t adr = umem_alloc(&pool, 800);    // no call of the GPU's driver
 *
 * A pool is an adaptor. It allocates large chunks from its upstream, or maps pages of it, and
 * allocates blocks inside of these. It keeps freed blocks for later requests. The pool gives memory
 * back to the upstream in umem_trim, when the upstream is out of memory, and when the pool ends.
 * Addresses, copies and sets are those of the upstream.
 *
 *   sizes      A block of up to 64 KiB has the size of one of 44 classes, four for each power of
 *              two, and comes from a span, which holds blocks of one class. A larger block is a
 *              number of units of 4 KiB.
 *   threads    The pool is concurrent if the upstream is. Any thread may free a block. Each thread
 *              has a cache of freed blocks of up to 64 KiB: at most 64 of a class, and at most 64
 *              KiB or four blocks, whichever is more; twice as many of a class that the thread
 *              allocates and frees in turns. So threads seldom need the pool's lock. The blocks of
 *              a cache count for the maximum. When its thread ends, when an allocation of any
 *              thread finds no other memory, and in umem_trim, they become free memory of the pool.
 *              (Where the system has no membarrier(2), only a thread itself empties its cache.)
 *   waiting    If a thread finds no memory while another thread allocates a chunk from the
 *              upstream, it waits for this chunk. The functions that the upstream calls in this
 *              time (that of a umemRetry, for example) may use the pool, but must not wait for
 *              another thread that allocates from it.
 *   alignment  The natural alignment is that of the upstream, but at least 16 bytes.
 *              umem_aligned_alloc accepts any power of two. A block with an alignment above 64 KiB
 *              has a chunk of its own, which the pool gives back when the block is freed.
 *   records    The pool keeps its records in RAM, outside of the chunks. umem_free, umem_realloc
 *              and umem_aligned_origin of an address that is not a live block of the pool fail with
 *              umemValueError and change nothing. The pool does not notice a write outside of a
 *              block but inside of a chunk.
 *   order      On an ordered upstream, blocks are freed and allocated again in the order of its
 *              queue. For many queues there are views: umem/pool_on.h.
 *   pages      If the upstream can map memory page by page (umemHost, umemCuda, umemCudaAsync
 *              without a maximum size; umemLimit and umemStats over these; see umemPages in
 *              umem/virtual.h), the pool reserves large ranges of addresses, and maps pages of 2
 *              MiB and more where a block needs them. Before it asks for much more memory than was
 *              ever in use at once, it moves pages of which all is free: so it holds little more
 *              than that, as the option spare says. It waits for the work of the queues that may
 *              use a page before it moves the page or gives it back. If pages cannot be mapped, and
 *              in the order of a queue that is being captured, it allocates chunks. It always does
 *              with the option umemPoolChunks: cudaIpcGetMemHandle accepts blocks of chunks alone.
 *              The options count in whole pages. Pages of a umemHost are compared with what the
 *              machine has left, as its blocks are: so a pool refuses what its upstream would
 *              refuse.
 *   zeros      umem_calloc writes no zeros to pages of RAM that no block has had before: it takes
 *              no time, and the pages take no memory until the program writes to them. Where a
 *              block was, it writes zeros; but in 32 MiB or more it gives the memory back to the
 *              system, and takes other memory as for new pages, because malloc does so, too. If a
 *              pool over RAM has chunks, it takes that for a umem_calloc above 64 KiB by
 *              umem_calloc, with 64 KiB more to align it; what is behind all blocks that were freed
 *              in it is zero.
 *   upstream   The pool allocates chunks by umem_aligned_alloc, at multiples of 64 KiB. Small
 *              blocks need a chunk of at least 64 KiB; if the upstream uses the default
 *              umemVirtual_aligned_alloc, this takes 128 KiB of it. Before a request fails, the
 *              pool asks the upstream for a chunk at most four times: for different sizes, or after
 *              it has given memory back.
 *   fork       A child may use the pool as far as it may use the upstream. If both use the same
 *              bytes (umemShared), only one of them may allocate, and the child gives no chunk of
 *              its parent back. Blocks in the caches of the parent's other threads stay unused in
 *              the child. */
#ifndef UMEM_POOL_H
#define UMEM_POOL_H

#include <umem/base.h>

/* A pool over another context, its upstream. Its blocks end when the pool ends. */
typedef struct umemPool {
  umemVirtual super;
  void *impl; /* owned */
  uintptr_t reserved[7];
} umemPool;

/* Where a pool gets its memory. */
typedef enum umemPoolMemory {
  /* pages, if the upstream can map them, else chunks: as little memory as possible */
  umemPoolPages = 0,
  umemPoolChunks /* chunks: large blocks of sizes that vary cost less time, and more memory */
} umemPoolMemory;

/* Options of the constructors, in bytes but for spare. 0 is the default, but for spare. */
typedef struct umemPoolOptions {
  size_t size; /* sizeof(umemPoolOptions) as the caller was compiled */
  /* the constructor allocates so many bytes, in whole pages of 4096 bytes: rounded up, but not
   * beyond maximum. Default: none */
  size_t initial;
  /* least size of each further chunk. Default: as large as the pool up to 4 MiB, then a quarter of
   * the pool, but at least 1 MiB and at most 64 MiB. With pages, where it has no use that spare has
   * not: so many bytes are mapped at once, in pages of up to as many. Default: what is needed, in
   * pages that suit the block, see spare */
  size_t growth;
  /* the most that the pool ever holds, which is whole pages of 4096 bytes. Default: no bound */
  size_t maximum;
  umemPoolMemory memory;
  /* With pages: the time that large blocks of sizes that vary may cost. In percent of the most
   * bytes that were ever in use at once: how much more the pool may have before it moves free
   * pages, which takes longer than to use new ones. It takes 1.6 percent at once, and then a page
   * for each one that it has moved; each as large as suits the block. Within the maximum, and only
   * as long as the upstream has some. At most 1000. UMEM_POOL_OPTIONS_INIT and constructors without
   * options: 10. 0: 1.6 percent, on a GPU only when the pool has often moved pages, and the
   * smallest pages */
  size_t spare;
} umemPoolOptions;

/* The defaults. */
#define UMEM_POOL_OPTIONS_INIT                                                                     \
  { sizeof(umemPoolOptions), 0, 0, 0, umemPoolPages, 10 }

/* upstream: any context; borrowed, it must live longer than ctx. options: borrowed for the call;
 * NULL: the defaults. Errors: umemValueError when upstream is NULL or ctx itself, when the size of
 * options or memory is wrong, or when initial exceeds maximum; the upstream's status when it is not
 * constructed, or cannot allocate the initial bytes. */
UMEM_EXTERN umemStatusType umemPool_ctor(umemPool *ctx, void *upstream,
                                         umemPoolOptions const *options);

/* Constructs ctx as umemPool_ctor does, but ctx owns upstream: umem_dtor(ctx) destructs it. After a
 * failure the caller still owns upstream. */
UMEM_EXTERN umemStatusType umemPool_adopt(umemPool *ctx, void *upstream,
                                          umemPoolOptions const *options);

/* Figures of umemPool_stats. A block counts with the size of its class. While other threads use the
 * pool, the figures are approximate, and not all are of the same moment. */
typedef struct umemPoolStats {
  size_t size;        /* sizeof(umemPoolStats) as the caller was compiled; set it before the call */
  uint64_t used;      /* bytes of live blocks */
  uint64_t used_peak; /* the most ever; here, blocks in caches of threads count as used */
  uint64_t reserved;  /* bytes taken from the upstream */
  uint64_t reserved_peak; /* the most ever */
  /* Bytes of the largest block that the pool can allocate without the upstream, outside of
   * spans. */
  uint64_t largest_free;
  /* 1 - largest_free / (reserved - used): 0 when all free memory is in one piece, near 1 when it is
   * in many small pieces. Each chunk is a piece of its own, so that an empty pool of several chunks
   * is above 0. */
  double fragmentation;
  uint64_t blocks;             /* live now */
  uint64_t allocations;        /* since the pool was constructed */
  uint64_t chunks;             /* held now, and ranges of addresses with pages */
  double factor;               /* reserved_peak / used_peak; 0 if there was no block */
  char label[UMEM_LABEL_SIZE]; /* of the pool; "" without one */
} umemPoolStats;

/* All zero, except the size. */
#define UMEM_POOL_STATS_INIT                                                                       \
  { sizeof(umemPoolStats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, "" }

/* Fills in *stats: writes at most stats->size bytes. To find largest_free, it joins free large
 * blocks with their neighbours, so the next allocations of large blocks take longer: do not call it
 * often. umem_get_info does not do this. Errors: umemTypeError if ctx is not a pool; umemValueError
 * if stats is NULL or its size is too small. */
UMEM_EXTERN umemStatusType umemPool_stats(umemPool *ctx, umemPoolStats *stats);

/* A part of the pool's memory without a gap: a chunk, or pages that are mapped side by side. */
typedef struct umemPoolRegion {
  size_t size;   /* sizeof(umemPoolRegion) as the caller was compiled; set it before the call */
  uintptr_t adr; /* of the first byte */
  uint64_t nbytes;
  /* bytes of large blocks and of spans, also of spans in which no block is live any more */
  uint64_t used;
  uint64_t largest_free; /* bytes of the largest range of it that is free */
  uint64_t ranges;       /* large blocks and spans */
  /* chunks that were allocated after it; UMEM_UNKNOWN for pages, which may have moved */
  uint64_t age;
} umemPoolRegion;

/* All zero, except the size. */
#define UMEM_POOL_REGION_INIT                                                                      \
  { sizeof(umemPoolRegion), 0, 0, 0, 0, 0, 0 }

/* Describes the first region of the pool that begins at or after from: writes at most region->size
 * bytes. Returns false, and records nothing, if there is none. This loop visits all, also while
 * other threads allocate:
 *
 *     for (adr = 0; umemPool_next_region(ctx, adr, &region); adr = region.adr + 1) ...
 *
 * Joins free blocks with their neighbours, as umemPool_stats does. Errors: umemTypeError if ctx is
 * not a pool; umemValueError if region is NULL or its size is too small; the result is then
 * false. */
UMEM_EXTERN bool umemPool_next_region(umemPool *ctx, uintptr_t from, umemPoolRegion *region);

#endif
