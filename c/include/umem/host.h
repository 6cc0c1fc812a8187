/* umem/host.h - RAM of this process. */
#ifndef UMEM_HOST_H
#define UMEM_HOST_H

#include <umem/base.h>

/* Memory of libc's malloc family. Addresses are pointers. Concurrent, not ordered.
 *
 * - Blocks of 4 MiB and more ask the kernel for transparent huge pages: first touch is several times
 *   faster. The rest is malloc's.
 * - Copies, sets and connections take any memory that this process can address, by its pointer
 *   ((uintptr_t)p); its owner stays the same. umem_free may free a block of malloc, and free one of umem_alloc.
 * - To free an address that was never allocated, or to free one twice, is undefined, as it is with libc: Host
 *   has no table of its blocks.
 * - All Hosts are the same device. */
typedef struct umemHost {
  umemVirtual super;
} umemHost;

/* Constructs ctx. Cannot fail, but for ctx NULL (umemValueError). */
UMEM_EXTERN umemStatusType umemHost_ctor(umemHost *ctx);

#endif
