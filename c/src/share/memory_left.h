/* memory_left.h - how much memory the system could still give to this process. */
#ifndef UMEM_MEMORY_LEFT_H
#define UMEM_MEMORY_LEFT_H

#include <stdint.h>

/* Bytes, swap included: of the machine, and of the groups (cgroups) of the process that have a limit, as those of
 * containers have. UINT64_MAX where the system does not say. An estimate: others take memory meanwhile. */
uint64_t umemMemory_left(void);

#endif
