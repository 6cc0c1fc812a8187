/* pool_quick.h - the quick functions of pools and their views (core/memory.h). See pool.h. */
#ifndef UMEM_POOL_QUICK_H
#define UMEM_POOL_QUICK_H

#include "pool/pool_core.h"

/* Gives a constructed pool or view its quick functions, unless its addresses are offsets. */
void umemPoolQuick_set(umemVirtual *ctx);

#endif
