/* fixed_growth.c - blocks of one size, and an upstream that is asked for more: it calls functions
 * of the program, other threads go on meanwhile, and memory is nearly out. */
#include "fixed_help.h"

enum { block_size = 4096, per_chunk = 8, chunk_size = per_chunk * block_size };

static umemLimit limit;
static umemRetry retry;
static unsigned calls; /* of the callback; atomic */
static umemFixedOptions const defaults = UMEM_FIXED_OPTIONS_INIT;

/* A umemFixed over a umemRetry: callback is called when less than bytes are left. */
static void build(umemRetryCallback *callback, size_t bytes, umemFixedOptions options) {
  calls = 0;
  options.growth = chunk_size;
  assert_ok(umemLimit_ctor(&limit, &host, bytes));
  assert_ok(umemRetry_ctor(&retry, &limit, callback, NULL));
  assert_ok(umemFixed_ctor(&fixed, &retry, block_size, &options));
}

static void take_down(void) {
  end(&fixed);
  assert_int_equal(umemLimit_used(&limit), 0);
  end(&retry);
  umem_clear_status(&limit);
  end(&limit);
}

static unsigned next_call(void) { return __atomic_add_fetch(&calls, 1, __ATOMIC_ACQ_REL); }

/* ---- functions of the program that use it ---- */

RETRY_CALLBACK(trim_it) {
  next_call();
  return umem_trim(&fixed, 0) == umemOK && stats_of(&fixed).chunks == 1 && attempt < 3;
}

FIXED_TEST(a_callback_may_trim_it) {
  build(trim_it, chunk_size, defaults);
  uintptr_t adr[per_chunk];
  for (int i = 0; i < per_chunk; i++) assert_true((adr[i] = umem_alloc(&fixed, 1)));
  expect_no_block(&fixed, umem_alloc(&fixed, 1), umemMemoryError, "umem_alloc: no room for");
  umem_clear_status(&retry);
  assert_true(calls >= 3);
  for (int i = 0; i < per_chunk; i++) umem_free(&fixed, adr[i]);
  take_down();
}

static uintptr_t spare;

/* Gives a block back, and does not ask again. */
RETRY_CALLBACK(free_one) {
  if (spare) umem_free(&fixed, spare);
  spare = 0;
  return false;
}

FIXED_TEST(a_block_that_a_callback_frees_is_given_out) {
  uintptr_t adr[per_chunk], first;
  build(free_one, chunk_size, defaults);
  for (int i = 0; i < per_chunk; i++) assert_true((adr[i] = umem_alloc(&fixed, 1)));
  spare = first = adr[3];
  assert_true(umem_alloc(&fixed, 1) == first);
  for (int i = 0; i < per_chunk; i++) umem_free(&fixed, adr[i]);
  take_down();
}

static uintptr_t inner;

/* Asks for a block within a request for one. */
RETRY_CALLBACK(allocate) {
  if (next_call() == 1) {
    umem_free(&limit, spare);
    inner = umem_alloc(&fixed, 1);
  }
  return attempt == 1;
}

/* What is being asked for counts: the maximum holds. */
FIXED_TEST(a_callback_may_allocate_from_it) {
  umemFixedOptions options = {sizeof options, 0, 0, 0, 2 * block_size};
  build(allocate, 2 * block_size, options);
  spare = umem_alloc(&limit, 2 * block_size);
  uintptr_t outer = umem_alloc(&fixed, 1);
  assert_true(calls && outer);
  assert_int_equal(inner, 0);
  assert_int_equal(umem_get_status(&fixed), umemMemoryError);
  umem_clear_status(&fixed);
  assert_int_equal(stats_of(&fixed).blocks_held, 2);
  umem_free(&fixed, outer);
  take_down();
}

/* ---- other threads, while one is asking ---- */

static pthread_barrier_t barrier;
static uintptr_t used; /* a live block */

static void *take_one(void *unused UNUSED) {
  pthread_barrier_wait(&barrier);
  return (void *)umem_alloc(&fixed, 1);
}

static void *free_and_look(void *unused) {
  umem_free(&fixed, used);
  if (stats_of(&fixed).blocks || umem_trim(&fixed, chunk_size) != umemOK) abort();
  used = umem_alloc(&fixed, 1);
  return unused;
}

static pthread_t taker;
static bool in_child; /* the child of the callback */
static int child_status;

/* In a child nobody asks, and nobody waits. */
static bool works_in_child(void) {
  umem_free(&limit, spare);
  uintptr_t adr = umem_alloc(&fixed, 1);
  umem_free(&fixed, adr);
  umem_dtor(&fixed);
  return adr && umem_thread_status() == umemOK;
}

static void *fork_one(void *unused) {
  pid_t child = fork();
  if (child == 0) _exit(works_in_child() ? 0 : 1);
  child_status = child_wait(child);
  return unused;
}

/* One thread is let in to wait, and another one to do what needs no chunk. */
RETRY_CALLBACK(let_others_in) {
  if (next_call() > 1) return false;
  taker = start_thread(take_one, NULL);
  pthread_barrier_wait(&barrier);
  for (int i = 0; i < 100; i++) sched_yield();
  join_thread(start_thread(fork_one, NULL));
  umem_free(&limit, spare);
  return true;
}

/* The maximum is one chunk: both must have a block of it. */
FIXED_TEST(others_wait_for_the_chunk) {
  umemFixedOptions options = {sizeof options, 0, 0, 0, chunk_size};
  assert_int_equal(pthread_barrier_init(&barrier, NULL, 2), 0);
  for (int i = 0; i < (setting_small() ? 3 : 30); i++) {
    build(let_others_in, chunk_size, options);
    spare = umem_alloc(&limit, chunk_size);
    uintptr_t mine = umem_alloc(&fixed, 1);
    uintptr_t theirs = (uintptr_t)join_thread(taker);
    assert_true(mine && theirs && mine != theirs);
    assert_int_equal(calls, 1);
    assert_int_equal(child_status, 0);
    FREE(&fixed, mine, theirs);
    take_down();
  }
  pthread_barrier_destroy(&barrier);
}

RETRY_CALLBACK(let_one_free) {
  if (next_call() == 1) join_thread(start_thread(free_and_look, NULL));
  return false;
}

/* A free, a trim and a question need not wait, nor does an allocation that finds a block. */
FIXED_TEST(others_go_on_meanwhile) {
  umemFixedOptions options = {sizeof options, 0, 0, 0, 2 * block_size};
  build(let_one_free, block_size, options);
  calls = 1; /* not yet */
  assert_true((used = umem_alloc(&fixed, 1)));
  calls = 0;
  expect_no_block(&fixed, umem_alloc(&fixed, 1), umemMemoryError, "no room for");
  umem_clear_status(&retry);
  assert_true(calls);
  umem_free(&fixed, used);
  take_down();
}

/* ---- two of them, whose callbacks use each other ---- */

typedef struct Half {
  umemLimit limit;
  umemRetry retry;
  umemFixed fixed;
  struct Half *other;
  uintptr_t spare, mine, theirs;
  unsigned calls; /* atomic */
} Half;

RETRY_CALLBACK(ask_the_other) {
  Half *half = user;
  if (__atomic_fetch_add(&half->calls, 1, __ATOMIC_ACQ_REL)) return false;
  pthread_barrier_wait(&barrier); /* both ask their upstream now */
  half->theirs = umem_alloc(&half->other->fixed, 1);
  umem_free(&half->limit, half->spare);
  return true;
}

static void *use_half(void *user) {
  Half *half = user;
  half->mine = umem_alloc(&half->fixed, 1);
  return NULL;
}

static void open_half(Half *half, Half *other) {
  umemFixedOptions options = {.size = sizeof options, .growth = chunk_size};
  *half = (Half){.other = other};
  assert_ok(umemLimit_ctor(&half->limit, &host, chunk_size));
  assert_ok(umemRetry_ctor(&half->retry, &half->limit, ask_the_other, half));
  assert_ok(umemFixed_ctor(&half->fixed, &half->retry, block_size, &options));
  half->spare = umem_alloc(&half->limit, chunk_size);
}

static void close_half(Half *half) {
  assert_true(half->mine);
  DESTRUCT(&half->fixed, &half->retry, &half->limit);
}

/* Each callback asks for a block of the other one, which is asking as well: one of them must not
 * wait. */
TEST(callbacks_may_use_each_others_blocks) {
  Half older, younger;
  assert_int_equal(pthread_barrier_init(&barrier, NULL, 2), 0);
  open_half(&older, &younger);
  open_half(&younger, &older);
  alarm(60); /* for a deadlock */
  pthread_t thread = start_thread(use_half, &younger);
  use_half(&older);
  join_thread(thread);
  alarm(0);
  close_half(&younger);
  close_half(&older);
  umem_thread_clear();
  pthread_barrier_destroy(&barrier);
}

/* ---- fork by the callback itself ---- */

RETRY_CALLBACK(fork_here) {
  if (next_call() > 1) return false;
  pid_t child = fork();
  in_child = child == 0;
  if (!in_child) child_status = child_wait(child);
  umem_free(&limit, spare);
  return true;
}

FIXED_TEST(a_callback_may_fork) {
  build(fork_here, chunk_size, defaults);
  spare = umem_alloc(&limit, chunk_size);
  uintptr_t adr = umem_alloc(&fixed, 1), other = umem_alloc(&fixed, 1);
  FREE(&fixed, adr, other);
  if (in_child) _exit(adr && other && umem_is_ok(&fixed) ? 0 : 1);
  assert_true(adr && other);
  assert_int_equal(child_status, 0);
  take_down();
}

/* ---- memory that is nearly out ---- */

/* A chunk takes pages of its own, whatever it holds: there must be few. */
FIXED_TEST(the_last_memory_comes_in_few_chunks) {
  enum { blocks = 64000 };
  static uintptr_t adr[blocks];
  assert_ok(umemLimit_ctor(&limit, &host, 16 * blocks));
  assert_ok(umemFixed_ctor(&fixed, &limit, 16, NULL));
  for (int round = 0; round < 2; round++) {
    for (int i = 0; i < blocks; i++) assert_true((adr[i] = umem_alloc(&fixed, 16)));
    assert_in_range(stats_of(&fixed).chunks, 2, 16);
    assert_int_equal(umem_alloc(&fixed, 16), 0);
    expect_both(&fixed, &limit, umemMemoryError, "umem_alloc: no room for 16 more bytes");
    for (int i = 0; i < blocks; i++) umem_free(&fixed, adr[i]);
    assert_ok(umem_trim(&fixed, 0));
    assert_int_equal(umemLimit_used(&limit), 0);
  }
  end(&fixed);
  end(&limit);
}

/* Once there is memory again, chunks become large without a trim, too. */
FIXED_TEST(chunks_grow_again) {
  assert_ok(umemLimit_ctor(&limit, &host, 1000 * block_size));
  open_fixed(&limit, block_size, 0, 0, 64 * block_size, 0);
  uintptr_t rest = umem_alloc(&limit, 999 * block_size);
  assert_true(umem_alloc(&fixed, 1));
  umem_free(&limit, rest);
  for (int i = 1; i < 64 + 63; i++) assert_true(umem_alloc(&fixed, 1));
  assert_int_equal(stats_of(&fixed).chunks, 7); /* 1, 2, 4 ... 64 */
  end(&fixed);
  end(&limit);
}

/* ---- initial bytes ---- */

/* However many. The upstream is never asked for more than there are numbers. */
FIXED_TEST(initial_bytes_are_asked_for_at_once) {
  umemFixedOptions options = {.size = sizeof options, .initial = (size_t)100 << 40};
  assert_ok(umemLimit_ctor(&limit, &fake, 8 << 20));
  assert_int_equal(umemFixed_ctor(&fixed, &limit, 1 << 20, &options), umemMemoryError);
  expect_both(&fixed, &limit, umemMemoryError, "no room for 109951162777600 more bytes");
  expect_status(&fixed, umemFixed_ctor(&fixed, &limit, 16, &options), umemMemoryError,
                "more blocks of 64 bytes than can be counted");
  assert_true(umem_is_ok(&limit));
  options.initial = SIZE_MAX;
  assert_int_equal(umemFixed_ctor(&fixed, &limit, (size_t)1 << 40, &options), umemMemoryError);
  expect_both(&fixed, &limit, umemMemoryError, "umemFixed_ctor: ");
  end(&limit);
}

/* Which has many times the numbers of a chunk that is asked for later. */
FIXED_TEST(an_initial_chunk_may_be_large) {
  enum { blocks = 100 };
  uintptr_t adr[blocks];
  open_fixed(&offsets, 64, 64, 77 * 64 - 1, 8 * 64, 0);
  assert_int_equal(blocks_in(&offsets), 1);
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < blocks; i++) {
      adr[i] = umem_alloc(&fixed, 64);
      assert_true(adr[i] != UINTPTR_MAX);
      for (int k = 0; k < i; k++) assert_true(adr[k] != adr[i]);
      assert_ok(umem_set(&fixed, adr[i], i, 64));
    }
    assert_int_equal(stats_of(&fixed).blocks, blocks);
    assert_int_equal(stats_of(&fixed).chunks, round ? 13 : 1 + 3);
    for (int i = 0; i < blocks; i++) umem_free(&fixed, adr[i]);
    assert_ok(umem_trim(&fixed, 0));
    assert_int_equal(blocks_in(&offsets), 0);
  }
}
