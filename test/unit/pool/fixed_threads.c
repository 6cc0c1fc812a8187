/* fixed_threads.c - blocks of one size and many threads: blocks freed by others, second frees at
 * once, trims meanwhile, and fork. */
#include "fixed_help.h"

static umemFixed shared;

enum { block_size = 48, box_count = 32 };
static uintptr_t boxes[box_count]; /* atomic */

static int rounds(void) { return setting_small() ? 3000 : 50000; }

/* A block is filled with one byte, which its first byte shows. */
static uintptr_t new_filled(uint64_t *random) {
  uintptr_t adr = umem_alloc(&shared, block_size);
  if (adr) memset((void *)adr, (int)below(random, 256), block_size);
  return adr;
}

static void free_filled(uintptr_t adr) {
  unsigned char const *bytes = (unsigned char const *)adr;
  for (size_t i = 1; i < block_size; i++)
    if (bytes[i] != bytes[0]) abort(); /* somebody else has the block too */
  umem_free(&shared, adr);
}

/* Each exchanges new blocks for those in random boxes, which any thread may have put there. */
static void *exchange(void *number) {
  uint64_t random = (uintptr_t)number;
  for (int i = 0; i < rounds(); i++) {
    uintptr_t mine = below(&random, 8) ? new_filled(&random) : 0;
    uintptr_t theirs =
        __atomic_exchange_n(&boxes[below(&random, box_count)], mine, __ATOMIC_ACQ_REL);
    if (theirs) free_filled(theirs);
    if (i % 256 == 0) umem_trim(&shared, below(&random, 2) * 4096);
    if (i % 64 == 0) stats_of(&shared);
  }
  return number;
}

static void empty_boxes(void) {
  for (size_t i = 0; i < box_count; i++) {
    if (boxes[i]) free_filled(boxes[i]);
    boxes[i] = 0;
  }
}

static void expect_nothing_left(void) {
  assert_int_equal(stats_of(&shared).blocks, 0);
  assert_ok(umem_trim(&shared, 0));
  assert_int_equal(stats_of(&shared).reserved, 0);
}

/* Of small chunks, so that they come and go. */
static umemFixedOptions small_chunks(size_t maximum) {
  return (umemFixedOptions){sizeof(umemFixedOptions), 16, 0, 8 * block_size, maximum};
}

TEST(blocks_pass_between_threads) {
  umemFixedOptions options = small_chunks(0);
  assert_ok(umemFixed_ctor(&shared, &host, block_size, &options));
  in_threads(exchange);
  assert_true(umem_is_ok(&shared));
  empty_boxes();
  expect_nothing_left();
  end(&shared);
}

/* With so few blocks that they run out again and again. */
TEST(threads_run_out_of_blocks) {
  umemFixedOptions options = small_chunks(20 * block_size);
  assert_ok(umemFixed_ctor(&shared, &host, block_size, &options));
  in_threads(exchange);
  assert_int_equal(umem_get_status(&shared), umemMemoryError);
  umem_clear_status(&shared);
  empty_boxes();
  assert_true(stats_of(&shared).reserved_peak <= 20 * block_size);
  expect_nothing_left();
  end(&shared);
}

/* ---- the same few blocks, again and again ---- */

enum { few = 12, at_once = 3 };
static uintptr_t lowest;
static unsigned char taken[few]; /* atomic */

/* Whether nobody else had the block. */
static bool enter(uintptr_t adr) {
  return !__atomic_exchange_n(&taken[(adr - lowest) / block_size], 1, __ATOMIC_ACQ_REL);
}

static void leave(uintptr_t adr) {
  __atomic_store_n(&taken[(adr - lowest) / block_size], 0, __ATOMIC_RELEASE);
  umem_free(&shared, adr);
}

/* The first one comes back on top, where another thread has seen it, but over another block: that
 * is what the tag is for. */
static void *take_and_return(void *number) {
  for (int i = 0; i < 8 * rounds(); i++) {
    uintptr_t adr[at_once];
    for (int k = 0; k < at_once; k++) {
      adr[k] = umem_alloc(&shared, 1);
      if (!adr[k] || !enter(adr[k])) abort();
    }
    for (int k = 0; k < at_once; k++) leave(adr[k]);
  }
  return number;
}

TEST(nobody_is_given_what_another_has) {
  umemFixedOptions options = {sizeof options, 16, few * block_size, few * block_size,
                              few * block_size};
  assert_ok(umemFixed_ctor(&shared, &host, block_size, &options));
  lowest = umem_alloc(&shared, 1); /* of the one chunk */
  umem_free(&shared, lowest);
  in_threads(take_and_return);
  assert_true(umem_is_ok(&shared));
  expect_nothing_left();
  end(&shared);
}

/* ---- second frees at once ---- */

static uintptr_t contested;
static unsigned refused; /* atomic */
static pthread_barrier_t barrier;

static void *free_at_once(void *number) {
  for (int i = 0; i < (setting_small() ? 100 : 5000); i++) {
    if (!number) contested = umem_alloc(&shared, 1);
    pthread_barrier_wait(&barrier);
    uint64_t before = umem_thread_failures();
    umem_free(&shared, contested);
    if (umem_thread_failures() != before) __atomic_add_fetch(&refused, 1, __ATOMIC_RELAXED);
    pthread_barrier_wait(&barrier);
    if (!number && __atomic_exchange_n(&refused, 0, __ATOMIC_RELAXED) != worker_count - 1) abort();
  }
  return number;
}

TEST(one_of_many_frees_succeeds) {
  assert_int_equal(pthread_barrier_init(&barrier, NULL, worker_count), 0);
  assert_ok(umemFixed_ctor(&shared, &host, block_size, NULL));
  in_threads(free_at_once);
  assert_int_equal(umem_get_status(&shared), umemValueError);
  umem_clear_status(&shared);
  expect_nothing_left();
  end(&shared);
  pthread_barrier_destroy(&barrier);
}

/* ---- wrong frees while chunks come and go ---- */

static bool stop; /* atomic */

/* Frees addresses near live blocks that never begin one. */
static void *free_wrongly(void *number) {
  uint64_t random = 7;
  uintptr_t adr = (uintptr_t)number;
  while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
    umemAttempt attempt;
    umemAttempt_begin(&attempt);
    umem_free(&shared, adr + 1 + below(&random, block_size - 1));
    umemAttempt_end(&attempt);
    if (!umemAttempt_failed(&attempt)) abort();
  }
  return NULL;
}

TEST(wrong_frees_meet_trims) {
  pthread_t thread;
  umemFixedOptions options = small_chunks(0);
  assert_ok(umemFixed_ctor(&shared, &host, block_size, &options));
  uintptr_t adr = umem_alloc(&shared, 1);
  umem_free(&shared, adr);
  stop = false;
  assert_int_equal(pthread_create(&thread, NULL, free_wrongly, (void *)adr), 0);
  in_threads(exchange);
  __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
  pthread_join(thread, NULL);
  assert_true(umem_is_ok(&shared));
  empty_boxes();
  expect_nothing_left();
  end(&shared);
}

/* ---- fork ---- */

static void *churn(void *number) {
  uint64_t random = (uintptr_t)number;
  for (int i = 0; !__atomic_load_n(&stop, __ATOMIC_RELAXED); i++) {
    uintptr_t adr = new_filled(&random);
    if (adr) free_filled(adr);
    if (i % 16 == 0) umem_trim(&shared, 0);
  }
  return NULL;
}

/* What a child does, whatever the parent's threads were doing. */
static bool works_in_child(uintptr_t adr) {
  uint64_t random = 7;
  uintptr_t mine[50];
  free_filled(adr);
  for (int i = 0; i < 50; i++)
    if (!(mine[i] = new_filled(&random))) return false;
  for (int i = 0; i < 50; i++) free_filled(mine[i]);
  if (umem_trim(&shared, 0) != umemOK) return false;
  umem_dtor(&shared);
  return umem_thread_status() == umemOK;
}

TEST(a_child_goes_on) {
  pthread_t threads[worker_count];
  uint64_t random = 1;
  umemFixedOptions options = small_chunks(0);
  assert_ok(umemFixed_ctor(&shared, &host, block_size, &options));
  stop = false;
  for (uintptr_t i = 0; i < worker_count; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, churn, (void *)i), 0);
  for (int i = 0; i < (setting_small() ? 5 : 50); i++) {
    uintptr_t adr = new_filled(&random);
    assert_true(adr);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) _exit(works_in_child(adr) ? 0 : 1);
    int status = -1;
    assert_true(waitpid(child, &status, 0) == child);
    assert_int_equal(status, 0);
    free_filled(adr);
  }
  __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
  for (int i = 0; i < worker_count; i++) pthread_join(threads[i], NULL);
  expect_nothing_left();
  end(&shared);
}

int main(void) { return run_cases(NULL, NULL); }
