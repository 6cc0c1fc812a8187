/* fixed_threads.c - blocks of one size and many threads: blocks freed by others, second frees at
 * once, trims meanwhile, and fork. */
#include "fixed_help.h"

enum { block_size = 48, box_count = 32 };
static uintptr_t boxes[box_count]; /* atomic */

static int rounds(void) { return setting_small() ? 3000 : 50000; }

/* A block is filled with one byte, which its first byte shows. */
static uintptr_t new_filled(uint64_t *random) {
  uintptr_t adr = umem_alloc(&fixed, block_size);
  if (adr) memset((void *)adr, (int)below(random, 256), block_size);
  return adr;
}

static void free_filled(uintptr_t adr) {
  unsigned char const *bytes = (unsigned char const *)adr;
  for (size_t i = 1; i < block_size; i++)
    if (bytes[i] != bytes[0]) abort(); /* somebody else has the block too */
  umem_free(&fixed, adr);
}

/* Each exchanges new blocks for those in random boxes, which any thread may have put there. */
static void *exchange(void *number) {
  uint64_t random = (uintptr_t)number;
  for (int i = 0; i < rounds(); i++) {
    uintptr_t mine = below(&random, 8) ? new_filled(&random) : 0;
    uintptr_t theirs =
        __atomic_exchange_n(&boxes[below(&random, box_count)], mine, __ATOMIC_ACQ_REL);
    if (theirs) free_filled(theirs);
    if (i % 256 == 0) umem_trim(&fixed, below(&random, 2) * 4096);
    if (i % 64 == 0) stats_of(&fixed);
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
  assert_int_equal(stats_of(&fixed).blocks, 0);
  assert_ok(umem_trim(&fixed, 0));
  assert_int_equal(stats_of(&fixed).reserved, 0);
}

/* Of small chunks, so that they come and go. */
static void open_small_chunks(size_t maximum) {
  open_fixed(&host, block_size, 16, 0, 8 * block_size, maximum);
}

FIXED_TEST(blocks_pass_between_threads) {
  open_small_chunks(0);
  in_threads(exchange);
  assert_true(umem_is_ok(&fixed));
  empty_boxes();
  expect_nothing_left();
}

/* With so few blocks that they run out again and again. */
FIXED_TEST(threads_run_out_of_blocks) {
  open_small_chunks(20 * block_size);
  in_threads(exchange);
  assert_int_equal(umem_get_status(&fixed), umemMemoryError);
  umem_clear_status(&fixed);
  empty_boxes();
  assert_true(stats_of(&fixed).reserved_peak <= 20 * block_size);
  expect_nothing_left();
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
  umem_free(&fixed, adr);
}

/* The first one comes back on top, where another thread has seen it, but over another block: that
 * is what the tag is for. */
static void *take_and_return(void *number) {
  for (int i = 0; i < 8 * rounds(); i++) {
    uintptr_t adr[at_once];
    for (int k = 0; k < at_once; k++) {
      adr[k] = umem_alloc(&fixed, 1);
      if (!adr[k] || !enter(adr[k])) abort();
    }
    for (int k = 0; k < at_once; k++) leave(adr[k]);
  }
  return number;
}

FIXED_TEST(nobody_is_given_what_another_has) {
  open_fixed(&host, block_size, 16, few * block_size, few * block_size, few * block_size);
  lowest = umem_alloc(&fixed, 1); /* of the one chunk */
  umem_free(&fixed, lowest);
  in_threads(take_and_return);
  assert_true(umem_is_ok(&fixed));
  expect_nothing_left();
}

/* ---- second frees at once ---- */

static uintptr_t contested;
static unsigned refused; /* atomic */
static pthread_barrier_t barrier;

static void *free_at_once(void *number) {
  for (int i = 0; i < (setting_small() ? 100 : 5000); i++) {
    if (!number) contested = umem_alloc(&fixed, 1);
    pthread_barrier_wait(&barrier);
    uint64_t before = umem_thread_failures();
    umem_free(&fixed, contested);
    if (umem_thread_failures() != before) __atomic_add_fetch(&refused, 1, __ATOMIC_RELAXED);
    pthread_barrier_wait(&barrier);
    if (!number && __atomic_exchange_n(&refused, 0, __ATOMIC_RELAXED) != worker_count - 1) abort();
  }
  return number;
}

FIXED_TEST(one_of_many_frees_succeeds) {
  assert_int_equal(pthread_barrier_init(&barrier, NULL, worker_count), 0);
  assert_ok(umemFixed_ctor(&fixed, &host, block_size, NULL));
  in_threads(free_at_once);
  assert_int_equal(umem_get_status(&fixed), umemValueError);
  umem_clear_status(&fixed);
  expect_nothing_left();
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
    umem_free(&fixed, adr + 1 + below(&random, block_size - 1));
    umemAttempt_end(&attempt);
    if (!umemAttempt_failed(&attempt)) abort();
  }
  return NULL;
}

FIXED_TEST(wrong_frees_meet_trims) {
  open_small_chunks(0);
  uintptr_t adr = umem_alloc(&fixed, 1);
  umem_free(&fixed, adr);
  stop = false;
  pthread_t thread = start_thread(free_wrongly, (void *)adr);
  in_threads(exchange);
  __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
  join_thread(thread);
  assert_true(umem_is_ok(&fixed));
  empty_boxes();
  expect_nothing_left();
}

/* ---- fork ---- */

static void *churn(void *number) {
  uint64_t random = (uintptr_t)number;
  for (int i = 0; !__atomic_load_n(&stop, __ATOMIC_RELAXED); i++) {
    uintptr_t adr = new_filled(&random);
    if (adr) free_filled(adr);
    if (i % 16 == 0) umem_trim(&fixed, 0);
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
  if (umem_trim(&fixed, 0) != umemOK) return false;
  umem_dtor(&fixed);
  return umem_thread_status() == umemOK;
}

FIXED_TEST(a_child_goes_on) {
  pthread_t threads[worker_count];
  uint64_t random = 1;
  open_small_chunks(0);
  stop = false;
  for (uintptr_t i = 0; i < worker_count; i++) threads[i] = start_thread(churn, (void *)i);
  for (int i = 0; i < (setting_small() ? 5 : 50); i++) {
    uintptr_t adr = new_filled(&random);
    assert_true(adr);
    IN_CHILD EXPECT(works_in_child(adr));
    free_filled(adr);
  }
  __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
  join_threads(threads, worker_count);
  expect_nothing_left();
}
