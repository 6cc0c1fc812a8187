/* growth.c - counts requests to an upstream, and lets threads wait for one where no deadlock is
 * possible. */
#include "pool/growth.h"

/* The lowest serial of the owners that have a request of the calling thread. */
static _Thread_local uint64_t lowest_serial = UINT64_MAX;

void umemGrowth_init(umemGrowth *growth) {
  static uint64_t last_serial;
  *growth = (umemGrowth){.serial = __atomic_add_fetch(&last_serial, 1, __ATOMIC_RELAXED),
                         .lineage = umem_fork_count()};
  pthread_cond_init(&growth->answered, NULL);
}

/* In a child of fork there are no requests and no waiting threads. The condition variable may still
 * record waiting threads of the parent, and its end would wait for them, so the child initialises
 * it again. */
static void leave_parent(umemGrowth *growth) {
  if (growth->lineage == umem_fork_count()) return;
  *growth = (umemGrowth){.serial = growth->serial, .lineage = umem_fork_count()};
  pthread_cond_init(&growth->answered, NULL);
}

void umemGrowth_fini(umemGrowth *growth) {
  leave_parent(growth);
  pthread_cond_destroy(&growth->answered);
}

void umemGrowth_begin(umemGrowth *growth, umemGrowthRequest *request, uint64_t amount, bool ample) {
  leave_parent(growth);
  growth->amount += amount;
  growth->count++;
  growth->ample += ample;
  *request = (umemGrowthRequest){amount, ample, growth->lineage, lowest_serial};
  if (growth->serial < lowest_serial) lowest_serial = growth->serial;
}

void umemGrowth_end(umemGrowth *growth, umemGrowthRequest const *request) {
  lowest_serial = request->outer;
  leave_parent(growth);
  if (growth->lineage != request->lineage) return; /* forgotten since, after a fork */
  growth->amount -= request->amount;
  growth->count--;
  growth->ample -= request->ample;
  pthread_cond_broadcast(&growth->answered);
}

void umemGrowth_open(umemGrowth *growth, umemLock *lock, umemGrowthRequest *request,
                     uint64_t amount, bool ample, umemAttempt *attempt) {
  umemGrowth_begin(growth, request, amount, ample);
  umemLock_release(lock);
  umemAttempt_begin(attempt);
}

void umemGrowth_close(umemGrowth *growth, umemLock *lock, umemGrowthRequest const *request,
                      umemAttempt *attempt) {
  umemAttempt_end(attempt);
  umemLock_acquire(lock);
  umemGrowth_end(growth, request);
}

bool umemGrowth_await(umemGrowth *growth, umemLock *lock) {
  leave_parent(growth);
  if (!growth->count || growth->serial >= lowest_serial) return false;
  umemLock_wait(lock, &growth->answered);
  return true;
}
