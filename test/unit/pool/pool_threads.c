/* pool_threads.c - pools and many threads: blocks freed by others, second frees at once, threads
 * that end, pools that end before threads, and fork. */
#include "pool_help.h"

#include "backends.h"

#include <malloc.h>
#include <semaphore.h>

enum { thread_count = 4, box_count = 64 };

static umemHost host;

/* Runs work in so many threads; each returns whether all was right. */
typedef struct Worker {
  umemPool *pool;
  unsigned number;
  void *shared;
  bool right;
} Worker;

static void run_threads(umemPool *pool, unsigned count, void *shared, void *(*work)(void *)) {
  pthread_t threads[16];
  Worker workers[16];
  for (unsigned i = 0; i < count; i++) {
    workers[i] = (Worker){pool, i, shared, false};
    assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
  }
  for (unsigned i = 0; i < count; i++) pthread_join(threads[i], NULL);
  for (unsigned i = 0; i < count; i++) assert_true(workers[i].right);
}

/* ---- blocks that are freed by other threads ---- */

/* A block says in its first bytes how long it is and what it is filled with. */
typedef struct Head {
  size_t size;
  unsigned char byte;
} Head;

static uintptr_t new_filled(umemPool *pool, uint64_t *random) {
  size_t size = sizeof(Head) + random_size(random, below(random, 30) ? 12 : 18);
  uintptr_t adr = umem_alloc(pool, size);
  if (!adr) return 0;
  Head head = {size, (unsigned char)random64(random)};
  memset((void *)adr, head.byte, size);
  memcpy((void *)adr, &head, sizeof head);
  return adr;
}

/* Whether nobody else has written there. */
static bool free_filled(umemPool *pool, uintptr_t adr) {
  Head head;
  memcpy(&head, (void const *)adr, sizeof head);
  unsigned char const *bytes = (unsigned char const *)adr;
  bool right = head.size >= sizeof head && bytes[head.size - 1] == head.byte;
  for (size_t i = sizeof head; right && i < head.size; i += 61) right = bytes[i] == head.byte;
  memset((void *)adr, 0xDD, sizeof head);
  uint64_t before = umem_thread_failures();
  umem_free(pool, adr);
  return right && umem_thread_failures() == before;
}

/* Each exchanges new blocks for those in random boxes, which any thread may have put there. */
static void *exchange(void *argument) {
  Worker *self = argument;
  uintptr_t *boxes = self->shared;
  uint64_t random = self->number, rounds = operations() / (setting_small() ? 100 : 40);
  self->right = true;
  for (uint64_t i = 0; i < rounds && self->right; i++) {
    uintptr_t mine = below(&random, 8) ? new_filled(self->pool, &random) : 0;
    uintptr_t theirs =
        __atomic_exchange_n(&boxes[below(&random, box_count)], mine, __ATOMIC_ACQ_REL);
    if (theirs) self->right = free_filled(self->pool, theirs);
    if (i % 4096 == 0 && umem_trim(self->pool, 1 << 20) != umemOK) self->right = false;
    if (i % 1024 == 0) {
      umemPoolStats stats = UMEM_POOL_STATS_INIT;
      if (umemPool_stats(self->pool, &stats) != umemOK) self->right = false;
    }
  }
  return NULL;
}

TEST_CASE(blocks_pass_between_threads) {
  umemPool pool;
  uintptr_t boxes[box_count] = {0};
  assert_ok(umemPool_ctor(&pool, &host, NULL));
  run_threads(&pool, thread_count, boxes, exchange);
  for (size_t i = 0; i < box_count; i++)
    if (boxes[i]) assert_true(free_filled(&pool, boxes[i]));
  expect_nothing_left(&pool);
  umem_dtor(&pool);
}

/* With so little memory that it runs out again and again. */
TEST_CASE(threads_run_out_of_memory) {
  umemPool pool;
  umemPoolOptions options = {sizeof options, 0, 0, 1 << 20, umemPoolPages, 0};
  uintptr_t boxes[box_count] = {0};
  assert_ok(umemPool_ctor(&pool, &host, &options));
  run_threads(&pool, thread_count, boxes, exchange);
  for (size_t i = 0; i < box_count; i++)
    if (boxes[i]) assert_true(free_filled(&pool, boxes[i]));
  assert_true(stats_of(&pool).reserved_peak <= options.maximum);
  umem_clear_status(&pool);
  expect_nothing_left(&pool);
  umem_dtor(&pool);
}

/* ---- second frees at once ---- */

typedef struct Race {
  unsigned arrived; /* atomic */
  uintptr_t adr;
  unsigned refused; /* atomic */
  size_t size;
} Race;

/* Both threads leave it within nanoseconds, when each has a processor. */
static void meet(Race *race, unsigned *meeting) {
  *meeting += 2;
  __atomic_add_fetch(&race->arrived, 1, __ATOMIC_ACQ_REL);
  for (unsigned looks = 0; __atomic_load_n(&race->arrived, __ATOMIC_ACQUIRE) < *meeting;)
    if (++looks % 4096 == 0) sched_yield();
}

static void *free_at_once(void *argument) {
  Worker *self = argument;
  Race *race = self->shared;
  unsigned meeting = 0;
  self->right = true;
  for (int i = 0; i < (setting_small() ? 100 : 5000); i++) {
    if (self->number == 0) {
      race->refused = 0;
      race->adr = umem_alloc(self->pool, race->size);
    }
    meet(race, &meeting);
    uint64_t before = umem_thread_failures();
    umem_free(self->pool, race->adr);
    if (umem_thread_failures() != before) __atomic_add_fetch(&race->refused, 1, __ATOMIC_RELAXED);
    meet(race, &meeting);
    if (__atomic_load_n(&race->refused, __ATOMIC_RELAXED) != 1) self->right = false;
    meet(race, &meeting);
  }
  umem_thread_clear();
  return NULL;
}

TEST_CASE(one_of_two_frees_is_refused) {
  size_t const sizes[] = {16, 3000, 40000, 200000};
  for (size_t k = 0; k < 4; k++) {
    umemPool pool;
    Race race = {.size = sizes[k]};
    assert_ok(umemPool_ctor(&pool, &host, NULL));
    run_threads(&pool, 2, &race, free_at_once);
    assert_int_equal(umem_get_status(&pool), umemValueError);
    assert_ok(umem_clear_status(&pool));
    expect_nothing_left(&pool);
    umem_dtor(&pool);
  }
}

/* ---- the ends of threads and pools ---- */

static void *use_and_end(void *argument) {
  Worker *self = argument;
  uint64_t random = self->number;
  self->right = true;
  for (int i = 0; i < 500 && self->right; i++) {
    uintptr_t one = new_filled(self->pool, &random), other = new_filled(self->pool, &random);
    self->right = one && other && free_filled(self->pool, one) && free_filled(self->pool, other);
  }
  return NULL;
}

/* A thread that has ended keeps nothing. */
TEST_CASE(ended_threads_give_back) {
  umemPool pool;
  assert_ok(umemPool_ctor(&pool, &host, NULL));
  for (int round = 0; round < 5; round++) {
    run_threads(&pool, thread_count, NULL, use_and_end);
    assert_true(stats_of(&pool).allocations == 1000u * thread_count * (unsigned)(round + 1));
    expect_nothing_left(&pool);
  }
  umem_dtor(&pool);
}

typedef struct Steps {
  umemPool *pools;
  pthread_barrier_t barrier;
} Steps;

enum { pool_count = 10 };

/* Uses pools that the other thread constructs and destructs, and ends after them. */
static void *outlive(void *argument) {
  Worker *self = argument;
  Steps *steps = self->shared;
  self->right = true;
  for (int i = 0; i < pool_count; i++) {
    pthread_barrier_wait(&steps->barrier);
    uintptr_t adr = umem_alloc(&steps->pools[i], 100);
    self->right = self->right && adr;
    umem_free(&steps->pools[i], adr);
    if (i % 3 == 0) umem_alloc(&steps->pools[i], 100); /* lost with the pool */
    pthread_barrier_wait(&steps->barrier);
  }
  return NULL;
}

TEST_CASE(threads_outlive_pools) {
  umemPool pools[pool_count];
  Steps steps = {.pools = pools};
  Worker worker = {NULL, 0, &steps, false};
  pthread_t thread;
  assert_int_equal(pthread_barrier_init(&steps.barrier, NULL, 2), 0);
  assert_int_equal(pthread_create(&thread, NULL, outlive, &worker), 0);
  for (int i = 0; i < pool_count; i++) {
    assert_ok(umemPool_ctor(&pools[i], &host, NULL));
    umem_free(&pools[i], umem_alloc(&pools[i], 100));
    pthread_barrier_wait(&steps.barrier);
    pthread_barrier_wait(&steps.barrier);
    umem_dtor(&pools[i]);
  }
  pthread_join(thread, NULL);
  assert_true(worker.right);
  pthread_barrier_destroy(&steps.barrier);
}

/* The end of a thread that nobody waits for meets the end of the pool. */
static void *use_and_tell(void *argument) {
  Worker *self = argument;
  umem_free(self->pool, umem_alloc(self->pool, 100));
  __atomic_store_n(&self->right, true, __ATOMIC_RELEASE);
  return NULL;
}

TEST_CASE(both_may_end_at_once) {
  for (int i = 0; i < (setting_small() ? 50 : 1000); i++) {
    umemPool pool;
    pthread_t threads[thread_count];
    Worker workers[thread_count];
    assert_ok(umemPool_ctor(&pool, &host, NULL));
    for (unsigned k = 0; k < thread_count; k++) {
      workers[k] = (Worker){&pool, k, NULL, false};
      assert_int_equal(pthread_create(&threads[k], NULL, use_and_tell, &workers[k]), 0);
    }
    for (unsigned k = 0; k < thread_count; k++)
      while (!__atomic_load_n(&workers[k].right, __ATOMIC_ACQUIRE)) sched_yield();
    umem_dtor(&pool);
    for (unsigned k = 0; k < thread_count; k++) pthread_join(threads[k], NULL);
  }
}

/* ---- fork ---- */

static bool stop;      /* atomic */
static unsigned ready; /* atomic: threads that have what they take for themselves */

/* Each class once: from now on the thread asks malloc for nothing, but under the pool's lock. (In a
 * child of a program with threads AddressSanitizer's malloc may wait for ever for a lock that one
 * of them held.) */
static bool warm_up(umemPool *pool) {
  bool right = true;
  for (size_t size = 16; size <= 1 << 16; size += size < 128 ? 16 : size / 8) {
    uintptr_t adr = umem_alloc(pool, size);
    umem_free(pool, adr);
    right = right && adr;
  }
  return right;
}

static void *churn(void *argument) {
  Worker *self = argument;
  uint64_t random = self->number;
  self->right = warm_up(self->pool);
  __atomic_add_fetch(&ready, 1, __ATOMIC_RELEASE);
  while (self->right && !__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
    uintptr_t adr = new_filled(self->pool, &random);
    self->right = adr && free_filled(self->pool, adr);
  }
  return NULL;
}

/* What a child does with the pool, whatever the parent's threads were doing. */
static bool works_in_child(umemPool *pool, uintptr_t adr) {
  uint64_t random = 7;
  if (!free_filled(pool, adr)) return false;
  for (int i = 0; i < 200; i++) {
    uintptr_t one = new_filled(pool, &random), other = new_filled(pool, &random);
    if (!one || !other || !free_filled(pool, one) || !free_filled(pool, other)) return false;
  }
  if (umem_trim(pool, 0) != umemOK) return false;
  umem_dtor(pool);
  return umem_thread_status() == umemOK;
}

TEST_CASE(a_child_goes_on) {
  umemPool pool;
  pthread_t threads[thread_count];
  Worker workers[thread_count];
  uint64_t random = 1;
  umemPoolOptions options = {sizeof options, 64 << 20, 0, 0, umemPoolPages, 0};
  assert_ok(umemPool_ctor(&pool, &host, &options));
  stop = false;
  ready = 0;
  for (unsigned i = 0; i < thread_count; i++) {
    workers[i] = (Worker){&pool, i, NULL, false};
    assert_int_equal(pthread_create(&threads[i], NULL, churn, &workers[i]), 0);
  }
  while (__atomic_load_n(&ready, __ATOMIC_ACQUIRE) < thread_count) sched_yield();
  bool right = true; /* to be asserted when no other thread uses the pool any more */
  for (int i = 0; i < (setting_small() ? 5 : 50) && right; i++) {
    uintptr_t adr = new_filled(&pool, &random);
    pid_t child = fork();
    if (child == 0) _exit(works_in_child(&pool, adr) ? 0 : 1);
    int status = -1;
    right = child > 0 && waitpid(child, &status, 0) == child && status == 0;
    right = free_filled(&pool, adr) && right;
  }
  __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
  for (unsigned i = 0; i < thread_count; i++) pthread_join(threads[i], NULL);
  assert_true(right);
  for (unsigned i = 0; i < thread_count; i++) assert_true(workers[i].right);
  expect_nothing_left(&pool);
  umem_dtor(&pool);
}

/* ---- the end of the process ---- */

/* At exit the library ends before the process: a thread that goes on still has caches of pools
 * that another one has ended. Freed memory is overwritten, so that whoever reads it is found
 * out. */
enum { many_pools = 130 };
static umemPool many[many_pools];
static sem_t goes_on, is_done;
static bool outlives_library;

static void *use_pools(void *unused) {
  for (int i = 0; i < many_pools; i++) umem_free(&many[i], umem_alloc(&many[i], 100));
  sem_post(&is_done);
  sem_wait(&goes_on);
  uintptr_t adr = umem_alloc(&many[0], 100);
  if (!adr) _exit(1);
  umem_free(&many[0], adr);
  sem_post(&is_done);
  return unused;
}

/* After the destructors of the library. */
__attribute__((destructor(101))) static void let_thread_go_on(void) {
  if (!outlives_library) return;
  sem_post(&goes_on);
  sem_wait(&is_done);
  _exit(0);
}

static void exit_before_a_thread(void) {
  pthread_t thread;
  mallopt(M_PERTURB, 0x5a);
  sem_init(&goes_on, 0, 0);
  sem_init(&is_done, 0, 0);
  for (int i = 0; i < many_pools; i++)
    if (umemPool_ctor(&many[i], &host, NULL) != umemOK) _exit(2);
  if (pthread_create(&thread, NULL, use_pools, NULL) != 0) _exit(3);
  pthread_detach(thread); /* it goes on when the process ends */
  sem_wait(&is_done);
  for (int i = 1; i < many_pools; i++) umem_dtor(&many[i]);
  outlives_library = true;
  exit(4);
}

TEST_CASE(pools_work_until_the_process_ends) {
  pid_t child = fork();
  if (child == 0) exit_before_a_thread();
  int status = -1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}

int main(void) {
  umemHost_ctor(&host);
  return run_cases(NULL, NULL);
}
