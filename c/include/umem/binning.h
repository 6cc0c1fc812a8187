/* umem/binning.h - sends each request to the context that is meant for its size.
 *
 *     umemBin const bins[] = {{256, &small}, {65536, &middle}};   // umemFixed, umemPool, ...
 *     umemBinning_ctor(&ctx, &cuda, bins, 2);                     // larger requests: to cuda itself
 *
 *   requests   go to the first bin whose largest size suffices, others to the upstream. With an alignment
 *              above a bin's natural one, a request counts there as size + alignment - 1 bytes, so that it
 *              fits into a block of umemFixed. When a bin is out of memory the request fails; it does not
 *              go to the next bin.
 *   frees      go to the bin that a block came from, which is recorded in a table beside the memory. A free
 *              or resize of an address that is not a live block of ctx is umemValueError, and changes
 *              nothing. umem_realloc stays in the bin if the new size belongs there; otherwise it copies.
 *   one memory All contexts must be of one memory (umem_is_same_device), because copies and sets go to the
 *              upstream, wherever a block came from; so do umem_wait, umem_synchronize, umem_flush and
 *              umem_get_info. If addresses are offsets, or work is ordered, all must also stand on the same
 *              context, or be it: then one context keeps the records, and there is one queue.
 *   failures   of a bin are recorded on ctx, not on the bin.
 *   trim       trims all contexts, each down to about keep bytes.
 *   threads    As concurrent as the least concurrent of them.
 */
#ifndef UMEM_BINNING_H
#define UMEM_BINNING_H

#include <umem/base.h>

/* Allocates from several contexts, by size. */
typedef struct umemBinning {
  umemVirtual super;
  void *impl; /* owned */
  uintptr_t reserved[7];
} umemBinning;

/* Where requests of at most largest bytes go. */
typedef struct umemBin {
  size_t largest;
  void *ctx; /* a context; borrowed or owned, as the constructor says */
} umemBin;

/* Constructs ctx over upstream and the contexts of count bins. ctx borrows them all, and they must outlive
 * it. bins: by rising size, borrowed for the call; NULL when count is 0. Several bins may have the same
 * context, and bins may be adaptors of upstream.
 * ctx has the capabilities that all of them have, and the least alignment of all.
 * Errors: umemValueError for NULL, sizes that do not rise, and bins of another memory; umemMemoryError; the
 * status of a context that is not constructed. */
UMEM_EXTERN umemStatusType umemBinning_ctor(umemBinning *ctx, void *upstream, umemBin const *bins,
                                            size_t count);

/* The same, but ctx owns the contexts of the bins and upstream. When it ends it destroys them by umem_dtor,
 * in the order of the bins and upstream last; the structs stay the caller's. After a failure the caller
 * still owns all of them. */
UMEM_EXTERN umemStatusType umemBinning_adopt(umemBinning *ctx, void *upstream, umemBin const *bins,
                                             size_t count);

#endif
