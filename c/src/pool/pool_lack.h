/* pool_lack.h - a lack of memory in a pool: why there is one, what may be done about it, and what is on
 * its way. See umem_pool.h. */
#ifndef UMEM_POOL_LACK_H
#define UMEM_POOL_LACK_H

#include "core/core.h"

/* Why there is no memory. */
typedef struct umemPoolLack {
  enum {
    umemPoolUpstream, /* it has none */
    umemPoolMaximum,
    umemPoolBooks,
    umemPoolOrder,   /* the lane's queue could not be told to wait for the upstream */
    umemPoolCapture, /* the lane's queue is being captured: it can wait for nothing */
    umemPoolLanded   /* there may be some: others' chunk, which was waited for, has come */
  } why;
  uint64_t reserved;   /* umemPoolMaximum: bytes that the pool has */
  umemAttempt attempt; /* umemPoolUpstream, umemPoolOrder: what was said */
} umemPoolLack;

/* Whether memory is lacking, and nothing else. */
static inline bool umemPoolLack_is_of_memory(umemPoolLack const *lack) {
  return lack->why == umemPoolMaximum ||
         (lack->why == umemPoolUpstream && lack->attempt.type == umemMemoryError);
}

/* How a lane that has not enough may grow. */
typedef enum umemPoolGrowth {
  umemPoolGrowNot,
  umemPoolGrowByOthers, /* by what other lanes have free */
  umemPoolGrowLeast,    /* or by a chunk of what is needed */
  umemPoolGrowWell      /* or first by one of ordinary size: one at a time, others wait for it */
} umemPoolGrowth;

/* What the upstream is being asked for. */
typedef struct umemPoolComing {
  uint64_t bytes;   /* not in reserved yet */
  unsigned count;   /* chunks */
  unsigned ample;   /* of these: larger than what they are taken for */
  unsigned lineage; /* umem_fork_count() at that time: those of before a fork come to the parent */
} umemPoolComing;

#endif
