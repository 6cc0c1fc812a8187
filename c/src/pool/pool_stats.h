/* pool_stats.h - counts of a pool. See pool.h. */
#ifndef UMEM_POOL_STATS_PRIVATE_H
#define UMEM_POOL_STATS_PRIVATE_H

#include "pool/pool_core.h"

/* Fills in all of *stats but its size, largest_free and fragmentation. Takes the lock. */
void umemPoolCore_measure(umemPoolCore *core, umemPoolStats *stats);

/* The same without waiting: false, with nothing filled in, if another thread holds the lock. */
bool umemPoolCore_try_measure(umemPoolCore *core, umemPoolStats *stats);

/* Fills in these two as well, for which all quick lists are coalesced. Takes the lock. */
void umemPoolCore_measure_free(umemPoolCore *core, umemPoolStats *stats);

#endif
