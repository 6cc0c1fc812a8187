/* umem/binning.h - a context that sends each request to one of several contexts, by its size.
 *
 *     umemBin const bins[] = {{256, &small}, {65536, &middle}};   // umemFixed, umemPool, ...
 *     umemBinning_ctor(&ctx, &cuda, bins, 2);  // larger requests: to cuda itself
 *
 *   requests   A request goes to the first bin whose largest size suffices, or else to the
 *              upstream. If the alignment is larger than the natural one of a bin, the request
 *              counts there as size + alignment - 1 bytes, so that it fits into a block of
 *              umemFixed. If a bin is out of memory, the request fails; it does not go to the next
 *              bin.
 *   frees      A free goes to the bin that the block came from. A table in RAM records which one
 *              this is. A free or resize of an address that is not a live block of ctx fails with
 *              umemValueError and changes nothing. umem_realloc stays in the bin if the new size
 *              belongs there; otherwise it copies.
 *   one memory All contexts must use the same memory (umem_is_same_device), because copies and sets
 *              go to the upstream, whichever bin a block came from. So do umem_wait,
 *              umem_synchronize, umem_flush and umem_get_info. If addresses are offsets, or work is
 *              ordered, all contexts must also be, or be over, one and the same context: then one
 *              context keeps the records, and there is one queue.
 *   failures   A failure of a bin is recorded on ctx, not on the bin.
 *   trim       umem_trim trims all contexts, each down to about keep bytes.
 *   threads    ctx is concurrent if all contexts are. */
#ifndef UMEM_BINNING_H
#define UMEM_BINNING_H

#include <umem/base.h>

/* Allocates from several contexts, by size. */
typedef struct umemBinning {
  umemVirtual super;
  void *impl; /* owned */
  uintptr_t reserved[7];
} umemBinning;

/* A bin: a context, and the largest request in bytes that goes to it. */
typedef struct umemBin {
  size_t largest;
  void *ctx; /* a context; borrowed or owned, as the constructor says */
} umemBin;

/* Constructs ctx over upstream and the contexts of count bins. ctx borrows all of them, and they
 * must outlive it. bins: sorted by size, the smallest first; borrowed for the call; NULL if count
 * is 0. Several bins may have the same context, and bins may be adaptors over upstream. ctx has the
 * capabilities that all contexts have, and the smallest of their alignments. Errors: umemValueError
 * for NULL, for bins that are not sorted, and for a bin in other memory; umemMemoryError; the
 * status of a context that is not constructed. */
UMEM_EXTERN umemStatusType umemBinning_ctor(umemBinning *ctx, void *upstream, umemBin const *bins,
                                            size_t count);

/* Constructs ctx as umemBinning_ctor does, but ctx owns the contexts of the bins and upstream.
 * umem_dtor(ctx) destructs them, in the order of the bins and upstream last. The caller still owns
 * the memory of the structs. After a failure the caller still owns all contexts. */
UMEM_EXTERN umemStatusType umemBinning_adopt(umemBinning *ctx, void *upstream, umemBin const *bins,
                                             size_t count);

/* Adds a bin while ctx is in use, by any thread: requests from now on go there if it is the first
 * bin that suffices. Blocks stay in their bins. The bin must have all capabilities of ctx, and at
 * least its alignment. ctx borrows or owns its context as those of the constructor. bin: borrowed
 * for the call. Errors: umemValueError for NULL, for a size that another bin has, for other memory
 * and for lacking capabilities; umemMemoryError; umemTypeError if ctx is not a umemBinning; the
 * status of a context that is not constructed. */
UMEM_EXTERN umemStatusType umemBinning_add(umemBinning *ctx, umemBin const *bin);

#endif
