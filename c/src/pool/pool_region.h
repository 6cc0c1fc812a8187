/* pool_region.h - what is where in the memory of a pool. See pool.h. */
#ifndef UMEM_POOL_REGION_H
#define UMEM_POOL_REGION_H

#include "pool/pool_core.h"

/* See umemPool_next_region. *region is zero. Takes the lock. */
bool umemPoolCore_next_region(umemPoolCore *core, uintptr_t from, umemPoolRegion *region);

#endif
