/* umem/fixed.h - blocks of one size, out of few: for those who know how large their blocks are.
 *
 *     umemFixed nodes;
 *     umemFixed_ctor(&nodes, &cuda, 800, NULL);
 *     uintptr_t adr = umem_alloc(&nodes, 800);    // or any lesser size: a whole block
 *
 * Takes chunks of many blocks from the context that it stands on, its upstream, and keeps what is
 * freed for the next request; chunks go back when it is told to (umem_trim) and at its end. Blocks
 * lie inside the upstream's blocks: addresses, copies and sets are the upstream's own.
 *
 *   sizes      A request for more than a block has is umemMemoryError, as it is wherever a place
 *              cannot hold what is asked for, and never reaches the upstream. umem_realloc stays
 *              where it is.
 *   alignment  Natural is that of the options; a block's size is rounded up to a multiple of it.
 *              umem_aligned_alloc takes larger ones: up to 64 KiB those that a block's size is a
 *              multiple of, and any as far as size + alignment - 1 bytes fit into a block.
 *   the books  lie in RAM beside the memory and never in it: 4 bytes for a block. A free of what is
 *              no live block is umemValueError, and nothing is freed.
 *   threads    As many as the upstream allows. Allocation and free take no lock unless a chunk is
 *              needed. A block may be freed by any thread. While a thread asks the upstream for a
 *              chunk, others that need one wait for it; all else goes on. What the upstream calls
 *              meanwhile, as umemRetry does, may use ctx, but waits in vain for a thread that needs
 *              a chunk.
 *   order      On an ordered upstream blocks are freed, and given out again, in the order of its
 *              queue.
 *   fork       A child may use it as far as it may use the upstream. A block that another thread of
 *              the parent was just allocating or freeing stays unused in the child.
 */
#ifndef UMEM_FIXED_H
#define UMEM_FIXED_H

#include <umem/base.h>

/* Gives out blocks of one size, which lie in chunks of its upstream. */
typedef struct umemFixed {
  umemVirtual super;
  void *impl; /* owned */
  uintptr_t reserved[7];
} umemFixed;

/* What the constructors are told. All in bytes; 0 is the default. */
typedef struct umemFixedOptions {
  size_t size;      /* sizeof(umemFixedOptions) as the caller was compiled */
  size_t alignment; /* of every block, a power of two. Default: that of the upstream */
  size_t initial;   /* taken at construction, as one chunk. Default: nothing before the first
                       allocation */
  size_t growth;    /* of each chunk, about; at least a block. Default: 1 MiB. Where that is not to
                       be had, less will do */
  size_t maximum;   /* that is ever held at once. Default: no bound */
} umemFixedOptions;

/* What umemFixedOptions start as: the defaults. */
#define UMEM_FIXED_OPTIONS_INIT                                                                    \
  { sizeof(umemFixedOptions), 0, 0, 0, 0 }

/* Constructs ctx, whose blocks have block_size bytes, over upstream, any context, which is borrowed
 * and must outlive ctx. options are borrowed for the call; NULL: the defaults.
 * Errors: umemValueError for an upstream that is NULL or ctx itself, a block_size that is 0 or
 * exceeds any memory, an alignment that is no power of two, options whose size cannot be true, a
 * maximum that is less than a block or than initial; umemMemoryError; what the upstream says when
 * it is not constructed, or has no initial bytes. */
UMEM_EXTERN umemStatusType umemFixed_ctor(umemFixed *ctx, void *upstream, size_t block_size,
                                          umemFixedOptions const *options);

/* The same, but ctx owns upstream: its end is upstream's, by umem_dtor (the struct stays the
 * caller's). After a failure upstream is still the caller's. */
UMEM_EXTERN umemStatusType umemFixed_adopt(umemFixed *ctx, void *upstream, size_t block_size,
                                           umemFixedOptions const *options);

/* What umemFixed_stats tells. While other threads use the context the figures are each about right,
 * but not of one moment. */
typedef struct umemFixedStats {
  size_t size;            /* sizeof(umemFixedStats) as the caller was compiled; set it before the
                             call */
  uint64_t block_size;    /* bytes of a block, rounded up to the alignment */
  uint64_t blocks;        /* live now */
  uint64_t blocks_held;   /* live and free ones together */
  uint64_t reserved;      /* bytes taken from the upstream */
  uint64_t reserved_peak; /* the most there ever were */
  uint64_t chunks;        /* held now */
} umemFixedStats;

/* What umemFixedStats starts as: its size set. */
#define UMEM_FIXED_STATS_INIT                                                                      \
  { sizeof(umemFixedStats), 0, 0, 0, 0, 0, 0 }

/* Fills *stats, by a look at each block; at most stats->size bytes are written. Errors:
 * umemTypeError when ctx is no umemFixed, umemValueError when stats is NULL or its size too small
 * to be true. */
UMEM_EXTERN umemStatusType umemFixed_stats(umemFixed *ctx, umemFixedStats *stats);

#endif
