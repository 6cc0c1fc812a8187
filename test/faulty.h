/* faulty.h - a context over one of the table whose waits and frees fail when a test says so. */
#pragma once

#include <stdint.h>
#include <umem.h>

enum { faultyWaits = umemFaultSynchronize, faultyFrees = umemFaultFree };

typedef struct Faulty {
  umemFault context;
} Faulty;

/* Over upstream, which is borrowed. Nothing fails yet. Ended by umem_dtor. */
bool faulty_open(Faulty *ctx, umemVirtual *upstream);

/* From now on all of these calls fail as type; 0: none. Counts begin anew. */
void faulty_fail(Faulty *ctx, unsigned calls, umemStatusType type);

/* How many of these calls have come since. */
uint64_t faulty_count(Faulty *ctx, unsigned calls);
