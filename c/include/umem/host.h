/* umem/host.h - RAM of this process. */
#ifndef UMEM_HOST_H
#define UMEM_HOST_H

#include <umem/base.h>

/* Memory of libc's malloc family. Addresses are pointers. Concurrent, not ordered.
 *
 * - For blocks of 4 MiB and more, umem asks the kernel for transparent huge pages: filling a new
 *   block is then several times faster. All else is as with malloc.
 * - The kernel grants more memory than there is, and later ends processes. So an allocation of 4
 *   MiB and more fails with umemMemoryError if it is larger than what the machine, and the control
 *   groups (cgroups, of version 1 and 2) of the process, have left, with swap. Each request is
 *   compared by itself: several blocks that nobody has touched yet may be larger together. What is
 *   left is read again after 100 ms, or when requests have been granted as much. umem_get_info
 *   returns as available what is left without swap.
 * - Copies, sets and connections accept any memory that this process can address, by its pointer
 *   ((uintptr_t)p); its owner stays the same. umem_free may free a block of malloc, and free one of
 *   umem_alloc.
 * - A free of an address that was never allocated, and a second free, are undefined, as with libc:
 *   Host has no table of its blocks.
 * - All Hosts without options are the same device.
 *
 * With options (umemHost_ctor_with) the memory is on chosen nodes of the machine (NUMA), or on
 * pages of a chosen size. Then each block is a mapping of its own, of whole pages: an allocation
 * costs system calls, and at least a page. Put a pool over it for small blocks. Such a Host keeps
 * records: free and malloc do not know its blocks, a free of anything else is umemValueError, and
 * umem_dtor frees live blocks. It is a device of its own: umem_connect copies blocks of other Hosts
 * to it. Natural alignment is a page; blocks of 4 MiB and more are at multiples of 2 MiB. */
typedef struct umemHost {
  umemVirtual super;
} umemHost;

/* On which nodes pages are. */
typedef enum umemHostPolicy {
  umemHostPolicyDefault = 0, /* as the process and its threads have it; with nodes: umemHostBind */
  umemHostBind,              /* on the nodes, and nowhere else */
  umemHostPrefer,            /* on the one node, and on others when it is full */
  /* page after page on the next of the nodes; without nodes on all that the process may use */
  umemHostInterleave,
  /* each page on the node of the thread that first writes or reads it, without nodes */
  umemHostFirstTouch
} umemHostPolicy;

/* The size of pages. */
typedef enum umemHostPages {
  /* the usual ones, and transparent huge pages for blocks of 4 MiB and more */
  umemHostPagesDefault = 0,
  umemHostPages2M, /* pages of hugetlbfs, which the administrator has set aside */
  umemHostPages1G
} umemHostPages;

/* What umemHost_ctor_with asks for. */
typedef struct umemHostOptions {
  size_t size; /* sizeof(umemHostOptions) as the caller was compiled */
  umemHostPolicy policy;
  umemHostPages pages;
  uint64_t nodes; /* a set: bit n stands for node n, of 0 to 63. 0: no choice */
} umemHostOptions;

/* What options start as: their size, and zeros. */
#define UMEM_HOST_OPTIONS_INIT                                                                     \
  { sizeof(umemHostOptions), umemHostPolicyDefault, umemHostPagesDefault, 0 }

/* Constructs ctx. Fails only if ctx is NULL (umemValueError). */
UMEM_EXTERN umemStatusType umemHost_ctor(umemHost *ctx);

/* Does what umemHost_ctor does, with options. NULL, and options that choose nothing: a plain Host.
 *
 * umem touches no byte of a block, but for pages of hugetlbfs that are bound to nodes: an
 * allocation takes these at once, and fails with umemMemoryError if the nodes have too few. Other
 * memory is taken by the first touch. If the nodes of a bound block are full then, Linux ends a
 * process. Errors: umemValueError for nodes that the process may not use, and options that
 * contradict each other; umemNotSupportedError if the kernel has no NUMA or no pages of this size,
 * or if a container forbids its calls. */
UMEM_EXTERN umemStatusType umemHost_ctor_with(umemHost *ctx, umemHostOptions const *options);

/* Writes to *node on which node the page at adr is, or -1 if it has no memory yet, because nothing
 * has touched it. adr: any memory of this process. Errors: umemTypeError if ctx is no Host;
 * umemValueError if node is NULL; umemIndexError if nothing is mapped at adr; umemNotSupportedError
 * if the kernel does not tell. */
UMEM_EXTERN umemStatusType umemHost_node(umemHost *ctx, uintptr_t adr, int *node);

#endif
