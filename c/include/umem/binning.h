/* umem/binning.h - sizes to contexts: each request goes to the one that is meant for its size.
 *
 *     umemBin const bins[] = {{256, &small}, {65536, &middle}};   // umemFixed, umemPool, ...
 *     umemBinning_ctor(&ctx, &cuda, bins, 2);                     // larger ones: to cuda itself
 *
 *   requests   go to the first bin whose largest size is not less, the rest to the upstream. One
 *              for an alignment beyond a bin's natural one counts there as size + alignment - 1
 *              bytes, so that it fits into a block of umemFixed. Where a bin has no more memory the
 *              request fails; it does not go on to the next.
 *   frees      go to where the block came from, which is kept in a table beside the memory. A free
 *              or resize of what is no live block of ctx is umemValueError, and nothing is freed.
 *              umem_realloc stays in its bin when that is where the new size belongs, and copies
 *              otherwise.
 *   one memory All must be of one memory (umem_is_same_device), since copies and sets go to the
 *              upstream, wherever a block came from; so do umem_wait, umem_synchronize, umem_flush
 *              and umem_get_info. Where addresses are offsets, or work is ordered, all must besides
 *              decorate one and the same context, or be it: one keeps the books, and there is one
 *              queue.
 *   failures   of a bin are told of ctx, not of the bin.
 *   trim       All are trimmed, each down to about keep bytes.
 *   threads    As many as all of them allow.
 */
#ifndef UMEM_BINNING_H
#define UMEM_BINNING_H

#include <umem/base.h>

/* Gives out blocks of several contexts, by their size. */
typedef struct umemBinning {
  umemVirtual super;
  void *impl; /* owned */
  uintptr_t reserved[7];
} umemBinning;

/* Where requests of at most largest bytes go. */
typedef struct umemBin {
  size_t largest;
  void *ctx; /* a context; borrowed or adopted as the constructor says */
} umemBin;

/* Constructs ctx over upstream and the contexts of count bins, which are all borrowed and must
 * outlive ctx. bins: by rising size, borrowed for the call; NULL when count is 0. A context may
 * stand in several bins, and bins may decorate upstream.
 * Capabilities are those that all have, the alignment is the least of all.
 * Errors: umemValueError for NULL, sizes that do not rise and bins of another memory;
 * umemMemoryError; the status of a context that is not constructed. */
UMEM_EXTERN umemStatusType umemBinning_ctor(umemBinning *ctx, void *upstream, umemBin const *bins,
                                            size_t count);

/* The same, but ctx owns the contexts of the bins and upstream: its end is theirs, by umem_dtor, in
 * the order of the bins and upstream last (the structs stay the caller's). After a failure all are
 * still the caller's. */
UMEM_EXTERN umemStatusType umemBinning_adopt(umemBinning *ctx, void *upstream, umemBin const *bins,
                                             size_t count);

#endif
