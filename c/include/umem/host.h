/* umem/host.h - RAM of this process. */
#ifndef UMEM_HOST_H
#define UMEM_HOST_H

#include <umem/base.h>

/* Memory of libc's malloc family. Addresses are pointers. Concurrent, not ordered.
 *
 * - Blocks of 4 MiB and more ask the kernel for transparent huge pages: first touch is several times
 *   faster. The rest is malloc's.
 * - Any memory that this process can address may be named in copies, sets and connections by its
 *   pointer, ((uintptr_t)p), and stays its owner's. A block of malloc may be freed by umem_free and
 *   the other way round.
 * - An address that was never given out, or a second free, is undefined, as it is with libc: Host
 *   keeps no books.
 * - All Hosts are the same device. */
typedef struct umemHost {
  umemVirtual super;
} umemHost;

/* Constructs ctx. Cannot fail, but for ctx NULL (umemValueError). */
UMEM_EXTERN umemStatusType umemHost_ctor(umemHost *ctx);

#endif
