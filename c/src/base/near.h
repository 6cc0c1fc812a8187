/* near.h - threads that run on the processors of one NUMA node.
 *
 * A copy between RAM and a GPU goes through memory that the threads of the library fill and empty. On a machine with
 * several nodes they do this faster on the node to which the GPU is connected. A page of RAM comes to the node of the
 * thread that touches it first: threads that share a copy or a set run on the node of the thread that has called it. */
#ifndef UMEM_NEAR_H
#define UMEM_NEAR_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

/* Reads from the system which processors are near the device of this address, such as "0000:3B:00.0". False where the
 * system does not say, or where all that the calling thread may use are near. Records nothing. */
bool umemNear_find(char const *address, cpu_set_t *near);

/* The same for the node on which the calling thread runs. */
bool umemNear_here(cpu_set_t *near);

/* Lets the calling thread run on those of near that it may use, until umemNear_leave. False where there are none: then
 * there is nothing to leave, and it runs where it did. */
bool umemNear_enter(cpu_set_t const *near, cpu_set_t *before);
void umemNear_leave(cpu_set_t const *before);

/* For tests: reads below root in place of "/sys"; NULL: "/sys" again. */
void umemNear_read_below(char const *root);

#endif
