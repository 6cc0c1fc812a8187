/* growth.h - the requests for chunks that threads have open at the upstream of one owner: a pool, or a list of
 * blocks of one size.
 *
 * The owner's lock is open while the upstream is asked, because that may call functions of the program
 * (umemRetry), which may use the owner. Other threads that need memory may wait for the answer. To prevent a
 * deadlock between owners that stand on each other, or whose upstreams' callbacks use each other, a thread
 * waits only for an owner that is older than every one whose upstream this thread is asking.
 *
 * All but init and fini under the owner's lock. */
#ifndef UMEM_GROWTH_H
#define UMEM_GROWTH_H

#include "base/lock.h"

#include <stdint.h>

typedef struct umemGrowth {
  uint64_t serial;  /* an older owner has a lower one */
  uint64_t amount;  /* asked for: bytes, or blocks */
  unsigned count;   /* requests */
  unsigned ample;   /* of these, those that leave something to other threads */
  unsigned lineage; /* umem_fork_count() of the members above, and of answered */
  pthread_cond_t answered;
} umemGrowth;

/* One of the requests. */
typedef struct umemGrowthRequest {
  uint64_t amount;
  bool ample;
  unsigned lineage;
  uint64_t outer; /* what the thread was asking already */
} umemGrowthRequest;

/* For an owner that is younger than all that stand already. It must not move. */
void umemGrowth_init(umemGrowth *growth);
void umemGrowth_fini(umemGrowth *growth);

/* Around a call of the upstream. */
void umemGrowth_begin(umemGrowth *growth, umemGrowthRequest *request, uint64_t amount, bool ample);
void umemGrowth_end(umemGrowth *growth, umemGrowthRequest const *request);

/* Waits, with the owner's lock, until a request of another thread is answered, or until a spurious wake-up.
 * False at once when there is none that this thread may wait for. Nothing that was read from the owner before
 * holds afterwards. */
bool umemGrowth_await(umemGrowth *growth, umemLock *lock);

/* What is asked for; and whether any of it is ample. In a child of fork the requests of before are the
 * parent's. */
static inline uint64_t umemGrowth_amount(umemGrowth const *growth) {
  return growth->lineage == umem_fork_count() ? growth->amount : 0;
}
static inline bool umemGrowth_is_ample(umemGrowth const *growth) {
  return growth->lineage == umem_fork_count() && growth->ample;
}

#endif
