/* pool_threads.c - pools and many threads: blocks freed by others, second frees at once, threads
 * that end, pools that end before threads, and fork. */
#include "pool_help.h"

#include "backends.h"

#include <malloc.h>
#include <semaphore.h>

enum { box_count = 64 };

/* ---- blocks that are freed by other threads ---- */

/* A block says in its first bytes how long it is and what it is filled with. */
typedef struct Head {
  size_t size;
  unsigned char byte;
} Head;

static uintptr_t new_filled(uint64_t *random) {
  size_t size = sizeof(Head) + random_size(random, below(random, 30) ? 12 : 18);
  uintptr_t adr = umem_alloc(&pool, size);
  if (!adr) return 0;
  Head head = {size, (unsigned char)random64(random)};
  memset((void *)adr, head.byte, size);
  memcpy((void *)adr, &head, sizeof head);
  return adr;
}

/* Whether nobody else has written there. */
static bool free_filled(uintptr_t adr) {
  Head head;
  memcpy(&head, (void const *)adr, sizeof head);
  unsigned char const *bytes = (unsigned char const *)adr;
  bool right = head.size >= sizeof head && bytes[head.size - 1] == head.byte;
  for (size_t i = sizeof head; right && i < head.size; i += 61) right = bytes[i] == head.byte;
  memset((void *)adr, 0xDD, sizeof head);
  uint64_t before = umem_thread_failures();
  umem_free(&pool, adr);
  return right && umem_thread_failures() == before;
}

/* Allocates two and frees both. */
static bool use_two(uint64_t *random) {
  uintptr_t one = new_filled(random), other = new_filled(random);
  return one && other && free_filled(one) && free_filled(other);
}

static uintptr_t boxes[box_count]; /* atomic */

/* Each exchanges new blocks for those in random boxes, which any thread may have put there. What
 * this and other functions of threads return is NULL if something was wrong. */
static void *exchange(void *number) {
  uint64_t random = (uintptr_t)number, rounds = operations() / (setting_small() ? 100 : 40);
  umemPoolStats stats = UMEM_POOL_STATS_INIT;
  bool right = true;
  for (uint64_t i = 0; i < rounds && right; i++) {
    uintptr_t mine = below(&random, 8) ? new_filled(&random) : 0;
    uintptr_t theirs =
        __atomic_exchange_n(&boxes[below(&random, box_count)], mine, __ATOMIC_ACQ_REL);
    if (theirs) right = free_filled(theirs);
    if (i % 4096 == 0) right = umem_trim(&pool, 1 << 20) == umemOK && right;
    if (i % 1024 == 0) right = umemPool_stats(&pool, &stats) == umemOK && right;
  }
  return right ? boxes : NULL;
}

static void pass_between_threads(void) {
  memset(boxes, 0, sizeof boxes);
  assert_true(in_threads(exchange));
  for (size_t i = 0; i < box_count; i++)
    if (boxes[i]) assert_true(free_filled(boxes[i]));
}

TEST_OF_PAGES(blocks_pass_between_threads) { pass_between_threads(); }

/* With so little memory that it runs out again and again. */
TEST(threads_run_out_of_memory) {
  open_pool(&pool, &host, 0, 0, mebi);
  pass_between_threads();
  assert_true(stats_of(&pool).reserved_peak <= mebi);
  umem_clear_status(&pool);
}

/* ---- second frees at once ---- */

static struct {
  unsigned arrived; /* atomic */
  uintptr_t adr;
  unsigned refused; /* atomic */
  size_t size;
} race;

/* Both threads leave it within nanoseconds, when each has a processor. */
static void meet(unsigned *meeting) {
  *meeting += 2;
  __atomic_add_fetch(&race.arrived, 1, __ATOMIC_ACQ_REL);
  for (unsigned looks = 0; __atomic_load_n(&race.arrived, __ATOMIC_ACQUIRE) < *meeting;)
    if (++looks % 4096 == 0) sched_yield();
}

static void *free_at_once(void *is_first) {
  unsigned meeting = 0;
  bool right = true;
  for (int i = 0; i < (setting_small() ? 100 : 5000); i++) {
    if (is_first) {
      race.refused = 0;
      race.adr = umem_alloc(&pool, race.size);
    }
    meet(&meeting);
    uint64_t before = umem_thread_failures();
    umem_free(&pool, race.adr);
    if (umem_thread_failures() != before) __atomic_add_fetch(&race.refused, 1, __ATOMIC_RELAXED);
    meet(&meeting);
    right = __atomic_load_n(&race.refused, __ATOMIC_RELAXED) == 1 && right;
    meet(&meeting);
  }
  umem_thread_clear();
  return right ? &race : NULL;
}

TEST(one_of_two_frees_is_refused) {
  size_t const sizes[] = {16, 3000, 40000, 200000};
  for (size_t k = 0; k < 4; k++) {
    race.arrived = 0;
    race.size = sizes[k];
    assert_ok(umemPool_ctor(&pool, &host, NULL));
    pthread_t both[] = {start_thread(free_at_once, &race), start_thread(free_at_once, NULL)};
    assert_true(join_threads(both, 2));
    assert_int_equal(umem_get_status(&pool), umemValueError);
    assert_ok(umem_clear_status(&pool));
    close_pool(&pool);
  }
}

/* ---- the ends of threads and pools ---- */

static void *use_and_end(void *number) {
  uint64_t random = (uintptr_t)number;
  bool right = true;
  for (int i = 0; i < 500 && right; i++) right = use_two(&random);
  return right ? &pool : NULL;
}

/* A thread that has ended keeps nothing. */
TEST_OF_PAGES(ended_threads_give_back) {
  for (unsigned round = 1; round <= 5; round++) {
    assert_true(in_threads(use_and_end));
    assert_true(stats_of(&pool).allocations == 1000 * worker_count * round);
    expect_nothing_left(&pool);
  }
}

enum { pool_count = 10 };
static umemPool pools[pool_count];
static pthread_barrier_t barrier;

/* Uses pools that the other thread constructs and destructs, and ends after them. */
static void *outlive(void *right) {
  for (int i = 0; i < pool_count; i++) {
    pthread_barrier_wait(&barrier);
    uintptr_t adr = umem_alloc(&pools[i], 100);
    if (!adr) right = NULL;
    umem_free(&pools[i], adr);
    if (i % 3 == 0) umem_alloc(&pools[i], 100); /* lost with the pool */
    pthread_barrier_wait(&barrier);
  }
  return right;
}

TEST(threads_outlive_pools) {
  assert_int_equal(pthread_barrier_init(&barrier, NULL, 2), 0);
  pthread_t thread = start_thread(outlive, pools);
  for (int i = 0; i < pool_count; i++) {
    assert_ok(umemPool_ctor(&pools[i], &host, NULL));
    umem_free(&pools[i], umem_alloc(&pools[i], 100));
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    umem_dtor(&pools[i]);
  }
  assert_non_null(join_thread(thread));
  pthread_barrier_destroy(&barrier);
}

static unsigned ready; /* atomic: threads that have used the pool */

static void await_ready(void) {
  while (__atomic_load_n(&ready, __ATOMIC_ACQUIRE) < worker_count) sched_yield();
}

/* The end of a thread that nobody waits for meets the end of the pool. */
static void *use_and_report(void *unused) {
  umem_free(&pool, umem_alloc(&pool, 100));
  __atomic_add_fetch(&ready, 1, __ATOMIC_RELEASE);
  return unused;
}

TEST(both_may_end_at_once) {
  for (int i = 0; i < (setting_small() ? 50 : 1000); i++) {
    pthread_t threads[worker_count];
    ready = 0;
    assert_ok(umemPool_ctor(&pool, &host, NULL));
    start_threads(threads, worker_count, use_and_report, NULL);
    await_ready();
    umem_dtor(&pool);
    join_threads(threads, worker_count);
  }
}

/* ---- fork ---- */

static bool stop; /* atomic */

/* Each class once: from now on the thread asks malloc for nothing, but under the pool's lock. (In a
 * child of a program with threads AddressSanitizer's malloc may wait for ever for a lock that one
 * of them held.) */
static bool warm_up(void) {
  bool right = true;
  for (size_t size = 16; size <= 1 << 16; size += size < 128 ? 16 : size / 8) {
    uintptr_t adr = umem_alloc(&pool, size);
    umem_free(&pool, adr);
    right = right && adr;
  }
  return right;
}

static void *churn(void *unused UNUSED) {
  uint64_t random = (uintptr_t)&random;
  bool right = warm_up();
  __atomic_add_fetch(&ready, 1, __ATOMIC_RELEASE);
  while (right && !__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
    uintptr_t adr = new_filled(&random);
    right = adr && free_filled(adr);
  }
  return right ? &pool : NULL;
}

/* What a child does with the pool, whatever the parent's threads were doing. */
static bool works_in_child(uintptr_t adr) {
  uint64_t random = 7;
  bool right = free_filled(adr);
  for (int i = 0; i < 200 && right; i++) right = use_two(&random);
  if (!right || umem_trim(&pool, 0) != umemOK) return false;
  umem_dtor(&pool);
  return umem_thread_status() == umemOK;
}

TEST(a_child_goes_on) {
  pthread_t threads[worker_count];
  uint64_t random = 1;
  open_pool(&pool, &host, 64 * mebi, 0, 0);
  stop = false;
  ready = 0;
  start_threads(threads, worker_count, churn, NULL);
  await_ready();
  bool right = true; /* to be asserted when no other thread uses the pool any more */
  for (int i = 0; i < (setting_small() ? 5 : 50) && right; i++) {
    uintptr_t adr = new_filled(&random);
    pid_t child = fork();
    if (child == 0) _exit(works_in_child(adr) ? 0 : 1);
    right = child_wait(child) == 0;
    right = free_filled(adr) && right;
  }
  __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
  assert_true(join_threads(threads, worker_count) && right);
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
#ifdef M_PERTURB
  mallopt(M_PERTURB, 0x5a);
#endif
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

TEST(pools_work_until_the_process_ends) {
  pid_t child = fork();
  if (child == 0) exit_before_a_thread();
  assert_int_equal(child_wait(child), 0);
}
