/* umem/fixed.h - blocks of one size, for programs that know the size of their blocks.
 *
 *     umemFixed nodes;
 *     umemFixed_ctor(&nodes, &cuda, 800, NULL);
 *     uintptr_t adr = umem_alloc(&nodes, 800);    // or any smaller size: always a whole block
 *
 * An adaptor. It allocates chunks of many blocks from its upstream, and keeps freed blocks for
 * later requests. umem_trim and umem_dtor give chunks back to the upstream. Addresses, copies and
 * sets are those of the upstream.
 *
 *   sizes      A request for more than a block fails with umemMemoryError, and does not reach the
 *              upstream. umem_realloc never moves a block.
 *   alignment  The natural alignment is that of the options; the size of a block is rounded up to a
 *              multiple of it. umem_aligned_alloc accepts a larger alignment in two cases: it is at
 *              most 64 KiB and the size of a block is a multiple of it, or size + alignment - 1
 *              bytes fit into a block.
 *   records    are in RAM, outside of the chunks: 4 bytes for each block. A free of an address that
 *              is not a live block fails with umemValueError and changes nothing.
 *   threads    ctx is concurrent if the upstream is. Any thread may free a block. Allocation and
 *              free take no lock, unless they need a chunk. While one thread allocates a chunk from
 *              the upstream, other threads that need a chunk wait for it. Functions that the
 *              upstream calls in this time, as umemRetry does, may use ctx, but must not wait for a
 *              thread that needs a chunk.
 *   order      On an ordered upstream, blocks are freed and allocated again in the order of its
 *              queue.
 *   fork       A child may use ctx as far as it may use the upstream. If both use the same bytes
 *              (umemShared), only one of them may allocate, and the child gives no chunk of its
 *              parent back. A block that another thread of the parent was allocating or freeing at
 *              that moment stays unused in the child. */
#ifndef UMEM_FIXED_H
#define UMEM_FIXED_H

#include <umem/base.h>

/* Allocates blocks of one size in chunks of its upstream. */
typedef struct umemFixed {
  umemVirtual super;
  void *impl; /* owned */
  uintptr_t reserved[7];
} umemFixed;

/* Options of the constructors, in bytes. 0 is the default. */
typedef struct umemFixedOptions {
  size_t size;      /* sizeof(umemFixedOptions) as the caller was compiled */
  size_t alignment; /* of every block, a power of two. Default: that of the upstream */
  size_t initial;   /* the constructor allocates so many bytes, as one chunk. Default: none */
  /* approximate size of each chunk; a chunk holds at least a block. Default: 1 MiB. If the upstream
   * cannot allocate such a chunk, umem tries smaller ones */
  size_t growth;
  size_t maximum; /* the most that ctx ever holds. Default: no bound */
} umemFixedOptions;

/* The defaults. */
#define UMEM_FIXED_OPTIONS_INIT                                                                    \
  { sizeof(umemFixedOptions), 0, 0, 0, 0 }

/* upstream: any context; borrowed, it must live longer than ctx. block_size: bytes of each block.
 * options: borrowed for the call; NULL: the defaults. Errors: umemValueError when upstream is NULL
 * or ctx itself, block_size is 0 or exceeds any memory, alignment is not a power of two, the size
 * of options is wrong, or maximum is less than a block or than initial; umemMemoryError; the
 * upstream's status when it is not constructed, or cannot allocate the initial bytes. */
UMEM_EXTERN umemStatusType umemFixed_ctor(umemFixed *ctx, void *upstream, size_t block_size,
                                          umemFixedOptions const *options);

/* Constructs ctx as umemFixed_ctor does, but ctx owns upstream: umem_dtor(ctx) destructs it. The
 * caller still owns the memory of the struct. After a failure the caller still owns upstream. */
UMEM_EXTERN umemStatusType umemFixed_adopt(umemFixed *ctx, void *upstream, size_t block_size,
                                           umemFixedOptions const *options);

/* Figures of umemFixed_stats. While other threads use the context, the figures are approximate, and
 * not all are of the same moment. */
typedef struct umemFixedStats {
  size_t size;            /* sizeof(umemFixedStats) as the caller was compiled; set it before the
                             call */
  uint64_t block_size;    /* bytes of a block, rounded up to the alignment */
  uint64_t blocks;        /* live now */
  uint64_t blocks_held;   /* live and free ones together */
  uint64_t reserved;      /* bytes taken from the upstream */
  uint64_t reserved_peak; /* the most ever */
  uint64_t chunks;        /* held now */
} umemFixedStats;

/* All zero, except the size. */
#define UMEM_FIXED_STATS_INIT                                                                      \
  { sizeof(umemFixedStats), 0, 0, 0, 0, 0, 0 }

/* Fills in *stats: writes at most stats->size bytes. Reads the record of each block, so it takes
 * time for many blocks. Errors: umemTypeError if ctx is not a umemFixed; umemValueError if stats is
 * NULL or its size is too small. */
UMEM_EXTERN umemStatusType umemFixed_stats(umemFixed *ctx, umemFixedStats *stats);

#endif
