/* umem/memfd.h - memory that other processes can map. */
#ifndef UMEM_MEMFD_H
#define UMEM_MEMFD_H

#include <umem/base.h>

struct umemFileOptions; /* umem/file.h */

/* Blocks in one piece of memory that has a descriptor (memfd_create): a process that receives the
 * descriptor maps the same bytes. Addresses are pointers. The memory goes when the context has
 * ended and no process maps it.
 *
 * Threads: any number at once. */
typedef struct umemMemfd {
  umemVirtual super;
  void *impl; /* owned */
  uintptr_t reserved[7];
} umemMemfd;

/* Makes an empty piece of memory, which grows with its blocks.
 * Errors: umemValueError for NULL; umemMemoryError. */
UMEM_EXTERN umemStatusType umemMemfd_ctor(umemMemfd *ctx);

/* options: NULL for the defaults. */
UMEM_EXTERN umemStatusType umemMemfd_ctor_with(umemMemfd *ctx,
                                               struct umemFileOptions const *options);

/* The descriptor of the memory, borrowed. -1, with a status, for a context that is not constructed,
 * or of another kind: umemTypeError. */
UMEM_EXTERN int umemMemfd_descriptor(umemMemfd *ctx);

#endif
