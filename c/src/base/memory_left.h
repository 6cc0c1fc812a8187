/* memory_left.h - how much memory the system could still give to this process.
 *
 * The kernel grants more than there is, and later ends processes. So whoever makes memory of the machine compares a
 * large request with what is left, before it takes any of it. */
#ifndef UMEM_MEMORY_LEFT_H
#define UMEM_MEMORY_LEFT_H

#include <stdbool.h>
#include <stdint.h>

/* Smaller requests are not compared. */
enum { umemMemoryLeast = 4 << 20 };

/* Bytes of RAM: of the machine, and of the groups (cgroups) of the process that have a limit, as those of containers
 * have. UINT64_MAX where the system does not say. An estimate: others take memory meanwhile. */
uint64_t umemMemory_available(void);

/* With swap, as far as the groups may use it. */
uint64_t umemMemory_left(void);

/* Whether so many bytes are left. Sets *left if they are not. Reads files of the system: no more often than ten times a
 * second, unless it has granted as much as was left then. */
bool umemMemory_has(uint64_t nbytes, uint64_t *left);

#endif
