/* umem/fixed.h - blocks of one size, for programs that know the size of their blocks.
 *
 *     umemFixed nodes;
 *     umemFixed_ctor(&nodes, &cuda, 800, NULL);
 *     uintptr_t adr = umem_alloc(&nodes, 800);    // or any smaller size: always a whole block
 *
 * An adaptor. It takes chunks of many blocks from its upstream, and keeps what is freed for the next request.
 * Chunks go back to the upstream by umem_trim, and when ctx ends. Addresses, copies and sets are the
 * upstream's own.
 *
 *   sizes      A request for more than a block is umemMemoryError, and does not reach the upstream.
 *              umem_realloc never moves a block.
 *   alignment  The natural alignment is that of the options; the size of a block is rounded up to a
 *              multiple of it. umem_aligned_alloc takes larger ones: up to 64 KiB those that the size of a
 *              block is a multiple of, and any alignment with size + alignment - 1 bytes within a block.
 *   records    are kept in RAM, beside the memory and never in it: 4 bytes for a block. A free of an
 *              address that is not a live block is umemValueError, and changes nothing.
 *   threads    As concurrent as the upstream. Any thread may free a block. Allocation and free take no lock
 *              unless they need a chunk. While one thread asks the upstream for a chunk, other threads that
 *              need one wait for it. Functions that the upstream calls meanwhile, as umemRetry does, may
 *              use ctx, but must not wait for a thread that needs a chunk.
 *   order      On an ordered upstream, blocks are freed and allocated again in the order of its queue.
 *   fork       A child may use ctx as far as it may use the upstream. A block that another thread of the
 *              parent was allocating or freeing at that moment stays unused in the child.
 */
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
  size_t initial;   /* allocated by the constructor, as one chunk. Default: nothing before the first
                       allocation */
  size_t growth; /* size of each chunk, about; at least a block. Default: 1 MiB. If the upstream has
                       no such chunk, it is asked for a smaller one */
  size_t maximum; /* the most that ctx ever holds. Default: no bound */
} umemFixedOptions;

/* The defaults. */
#define UMEM_FIXED_OPTIONS_INIT                                                                    \
  { sizeof(umemFixedOptions), 0, 0, 0, 0 }

/* Constructs ctx, whose blocks have block_size bytes, over upstream, any context. ctx borrows upstream, which
 * must outlive it, and options for the call; NULL means the defaults.
 * Errors: umemValueError when upstream is NULL or ctx itself, block_size is 0 or exceeds any memory,
 * alignment is not a power of two, the size of options is wrong, or maximum is less than a block or than
 * initial; umemMemoryError; the upstream's status when it is not constructed, or cannot allocate the
 * initial bytes. */
UMEM_EXTERN umemStatusType umemFixed_ctor(umemFixed *ctx, void *upstream, size_t block_size,
                                          umemFixedOptions const *options);

/* The same, but ctx owns upstream, and destroys it by umem_dtor when it ends; the struct stays the
 * caller's. After a failure the caller still owns upstream. */
UMEM_EXTERN umemStatusType umemFixed_adopt(umemFixed *ctx, void *upstream, size_t block_size,
                                           umemFixedOptions const *options);

/* Figures of umemFixed_stats. While other threads use the context, each figure is about right, but not all
 * are of the same moment. */
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

/* An empty one, whose size is set. */
#define UMEM_FIXED_STATS_INIT                                                                      \
  { sizeof(umemFixedStats), 0, 0, 0, 0, 0, 0 }

/* Fills *stats; reads the record of each block, and writes at most stats->size bytes. Errors: umemTypeError
 * when ctx is not a umemFixed; umemValueError when stats is NULL or its size is too small. */
UMEM_EXTERN umemStatusType umemFixed_stats(umemFixed *ctx, umemFixedStats *stats);

#endif
