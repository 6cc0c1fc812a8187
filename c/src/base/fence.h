/* fence.h - a memory fence in all threads at once, for pairs of threads of which one goes by far more often.
 *
 * Where each of two threads writes one variable and then reads that of the other, both need a fence between, or each
 * may miss what the other has written. With this function the one that goes rarely fences both: the other needs only
 * to keep the compiler from changing the order (D. Dice, H. Huang, M. Yang: "Asymmetric Dekker Synchronization",
 * 2001; Linux: membarrier(2)). */
#ifndef UMEM_FENCE_H
#define UMEM_FENCE_H

#include <stdbool.h>

/* Returns true when all threads of the process have passed a full memory fence since the call. It takes some
 * microseconds, and the first one of a process up to some milliseconds. Returns false where the system cannot do this:
 * before Linux 4.14, or where a filter of system calls forbids it. */
bool umem_fence_threads(void);

#endif
