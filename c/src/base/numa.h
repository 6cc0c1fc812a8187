/* numa.h - the nodes of memory of a machine (NUMA), by system calls of Linux: libnuma is not needed.
 *
 * A set of nodes is a number whose bit n stands for node n. Functions that return an int return an errno: 0 is success,
 * ENOSYS a kernel without NUMA, EPERM a container that forbids the call. */
#ifndef UMEM_NUMA_H
#define UMEM_NUMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { umemNumaMost = 64 }; /* nodes that umem knows: 0 to 63 */

/* The numbers of the kernel. */
typedef enum umemNumaPolicy {
  umemNumaPrefer =
      1, /* one node, the others when it is full; with no node, that of the thread that touches a page */
  umemNumaBind = 2,      /* these nodes alone */
  umemNumaInterleave = 3 /* page after page, from node to node */
} umemNumaPolicy;

/* The nodes on which this thread may have memory. */
int umemNuma_allowed(uint64_t *nodes);

/* Where pages of a mapping will be, that have no memory yet. */
int umemNuma_place(void *adr, size_t nbytes, umemNumaPolicy policy, uint64_t nodes);

/* Where the page at adr is: -1 as long as it has no memory. */
int umemNuma_find(uintptr_t adr, int *node);

/* Bytes that the nodes have, and of them free ones, with those of caches that give way. huge_page: bytes of a page of
 * hugetlbfs, of which those that are set aside count; 0: all memory. Returns false if the kernel does not list one of the nodes. */
bool umemNuma_sizes(uint64_t nodes, uint64_t huge_page, uint64_t *capacity, uint64_t *available);

/* Reads a list as of numactl: "0", "0,2", "0-3,6". Returns 0 for what is none. */
uint64_t umemNuma_read(char const *text);

/* Writes such a list: at most size bytes. Returns text. */
char *umemNuma_write(uint64_t nodes, char *text, size_t size);

#endif
