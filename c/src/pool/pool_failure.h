/* pool_failure.h - why a pool cannot allocate. */
#ifndef UMEM_POOL_FAILURE_H
#define UMEM_POOL_FAILURE_H

#include <umem/base.h>

typedef struct umemPoolFailure {
  enum {
    umemPoolUpstreamFailed, /* the upstream has no chunk */
    umemPoolAtMaximum,
    umemPoolNoRecords,  /* no RAM for the pool's records */
    umemPoolNotOrdered, /* the queue could not be made to wait for the upstream */
    umemPoolCaptured,   /* the queue is being captured: it can wait for nothing */
    umemPoolChanged     /* another thread's chunk has come: another try may succeed */
  } reason;
  uint64_t reserved;   /* umemPoolAtMaximum: bytes that the pool has */
  umemAttempt attempt; /* umemPoolUpstreamFailed, umemPoolNotOrdered: what was recorded */
} umemPoolFailure;

/* Whether the pool is out of memory, and nothing else is wrong. */
static inline bool umemPoolFailure_is_of_memory(umemPoolFailure const *failure) {
  return failure->reason == umemPoolAtMaximum ||
         (failure->reason == umemPoolUpstreamFailed && failure->attempt.type == umemMemoryError);
}

#endif
