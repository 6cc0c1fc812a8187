/* cuda_shared.c - see cuda_shared.h. */
#include "cuda/cuda_shared.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* No umemLock, for which fork would wait: what is called under it may fork. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static umemCudaShared *all;

/* In a child no thread holds it. */
static void renew_lock(void) { pthread_mutex_init(&lock, NULL); }

__attribute__((constructor(101))) static void watch_fork(void) {
  pthread_atfork(NULL, NULL, renew_lock);
}

void umemCudaShared_lock(void) { pthread_mutex_lock(&lock); }
void umemCudaShared_unlock(void) { pthread_mutex_unlock(&lock); }

/* ---- numbers ---- */

uint64_t umemCudaShared_number(void) {
  static uint64_t last;
  return __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
}

/* They need not be secret. The time tells processes of the same number apart, also those of other namespaces. */
void umemCudaShared_process(uint64_t numbers[2]) {
  static uint64_t ours[2];
  static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&once);
  if (!ours[0]) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    ours[0] = (uint64_t)getpid() << 32 | (uint32_t)now.tv_nsec;
    ours[1] = (uint64_t)now.tv_sec << 32 ^ (uintptr_t)&now;
  }
  memcpy(numbers, ours, sizeof ours);
  pthread_mutex_unlock(&once);
}

/* ---- the list ---- */

umemCudaShared *umemCudaShared_find(uint64_t number) {
  umemCudaShared *one = all;
  while (one && one->number != number) one = one->next;
  return one;
}

umemCudaShared *umemCudaShared_around(umemCudaGpu const *gpu, uintptr_t adr) {
  umemCudaShared *one = all;
  while (one && (one->gpu != gpu || !one->attached || adr - one->base >= one->nbytes))
    one = one->next;
  return one;
}

static umemCudaShared *find_block(struct umemCudaState const *state, uintptr_t base) {
  umemCudaShared *one = all;
  while (one && (one->state != state || one->base != base)) one = one->next;
  return one;
}

uint64_t umemCudaShared_enter(struct umemCudaState *state, umemCudaGpu const *gpu, uintptr_t base,
                              size_t nbytes) {
  umemCudaShared_lock();
  umemCudaShared *one = find_block(state, base);
  if (!one && (one = calloc(1, sizeof *one))) {
    *one = (umemCudaShared){all, state, gpu, base, nbytes, umemCudaShared_number(), 0};
    all = one;
  }
  uint64_t number = one ? one->number : 0;
  umemCudaShared_unlock();
  return number;
}

void umemCudaShared_forget(struct umemCudaState const *state, uintptr_t base) {
  umemCudaShared_lock();
  for (umemCudaShared **link = &all; *link;) {
    umemCudaShared *one = *link;
    if (one->state == state && (!base || one->base == base)) {
      *link = one->next;
      free(one);
    } else {
      link = &one->next;
    }
  }
  umemCudaShared_unlock();
}
