/* growth.h - the running requests for chunks of one owner (a pool, or a list of blocks of one size)
 * to its upstream.
 *
 * The owner releases its lock during a request, because the upstream may call functions of the
 * program (umemRetry), which may use the owner. Other threads that need memory may wait for the
 * result. Deadlocks are possible if one owner is over another, or if the callbacks of their
 * upstreams use each other. To prevent them, a thread waits only for an owner that was created
 * before every owner that has a request of this thread.
 *
 * All functions except init and fini are called under the owner's lock. */
#ifndef UMEM_GROWTH_H
#define UMEM_GROWTH_H

#include "core/status.h"

#include <stdint.h>

typedef struct umemGrowth {
  uint64_t serial;  /* lower for an owner that was created earlier */
  uint64_t amount;  /* of all requests: bytes, or blocks */
  unsigned count;   /* requests */
  unsigned ample;   /* requests for more than their thread needs: other threads can use the rest */
  unsigned lineage; /* umem_fork_count() of the members above, and of answered */
  pthread_cond_t answered;
} umemGrowth;

/* One of the requests. */
typedef struct umemGrowthRequest {
  uint64_t amount;
  bool ample;
  unsigned lineage;
  uint64_t outer; /* the lowest serial of the requests that the thread already had */
} umemGrowthRequest;

/* For a new owner, which must not move. */
void umemGrowth_init(umemGrowth *growth);
void umemGrowth_fini(umemGrowth *growth);

/* Count a request that begins, and that ends. */
void umemGrowth_begin(umemGrowth *growth, umemGrowthRequest *request, uint64_t amount, bool ample);
void umemGrowth_end(umemGrowth *growth, umemGrowthRequest const *request);

/* Stand around a call of the upstream: they count it, release the owner's lock in between, and hold
 * failures back in *attempt. */
void umemGrowth_open(umemGrowth *growth, umemLock *lock, umemGrowthRequest *request,
                     uint64_t amount, bool ample, umemAttempt *attempt);
void umemGrowth_close(umemGrowth *growth, umemLock *lock, umemGrowthRequest const *request,
                      umemAttempt *attempt);

/* Waits, with the owner's lock, until a request of another thread has ended, or until a spurious
 * wake-up. Returns false at once if there is no request for which this thread may wait. The lock is
 * released during the wait, so read the owner again afterwards. */
bool umemGrowth_await(umemGrowth *growth, umemLock *lock);

/* The amount of all requests, and whether one of them is ample. In a child of fork the earlier
 * requests are those of the parent, and do not count. */
static inline uint64_t umemGrowth_amount(umemGrowth const *growth) {
  return growth->lineage == umem_fork_count() ? growth->amount : 0;
}
static inline bool umemGrowth_is_ample(umemGrowth const *growth) {
  return growth->lineage == umem_fork_count() && growth->ample;
}

#endif
