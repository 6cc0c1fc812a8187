/* umem/host.h - RAM of this process. */
#ifndef UMEM_HOST_H
#define UMEM_HOST_H

#include <umem/base.h>

/* Memory of libc's malloc family. Addresses are pointers. Concurrent, not ordered.
 *
 * - For blocks of 4 MiB and more, umem asks the kernel for transparent huge pages: filling a new block is then several
 *   times faster. All else is as with malloc.
 * - Copies, sets and connections accept any memory that this process can address, by its pointer
 *   ((uintptr_t)p); its owner stays the same. umem_free may free a block of malloc, and free one of umem_alloc.
 * - A free of an address that was never allocated, and a second free, are undefined, as with libc: Host has no table
 *   of its blocks.
 * - All Hosts are the same device. */
typedef struct umemHost {
  umemVirtual super;
} umemHost;

/* Constructs ctx. Fails only if ctx is NULL (umemValueError). */
UMEM_EXTERN umemStatusType umemHost_ctor(umemHost *ctx);

#endif
