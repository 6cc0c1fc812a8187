/* retry.c - umem/retry.h. */
#include "adaptor_help.h"

/* A context with little room, and what fills it: the callback gives its blocks back one by one. */
typedef struct Cache {
  umemLimit room;
  uintptr_t blocks[4];
  unsigned count;
  unsigned calls, last_attempt;
  size_t nbytes, alignment; /* of the last call */
  void *ctx;
} Cache;

static bool drop_one(void *user, void *ctx, size_t nbytes, size_t alignment, unsigned attempt) {
  Cache *cache = user;
  cache->calls++;
  cache->last_attempt = attempt;
  cache->nbytes = nbytes;
  cache->alignment = alignment;
  cache->ctx = ctx;
  if (!cache->count) return false;
  umem_free(ctx, cache->blocks[--cache->count]);
  return true;
}

static Cache cache;
static umemRetry retry;
static int hook_calls;

static void count_calls(void *ctx, umemStatusType type, char const *message, void *data) {
  (void)ctx, (void)type, (void)message, (void)data;
  hook_calls++;
}

/* 1000 bytes of upstream, of which blocks of 200 are in the cache. */
static void open_with(void *upstream, unsigned blocks) {
  memset(&cache, 0, sizeof cache);
  hook_calls = 0;
  assert_ok(umemLimit_ctor(&cache.room, upstream, 1000));
  assert_ok(umemRetry_ctor(&retry, &cache.room, drop_one, &cache));
  for (; cache.count < blocks; cache.count++) cache.blocks[cache.count] = umem_alloc(&retry, 200);
  umem_set_failure_hook(count_calls, NULL);
}

static void close_all(void) {
  umem_set_failure_hook(NULL, NULL);
  while (cache.count) umem_free(&retry, cache.blocks[--cache.count]);
  assert_int_equal(umemLimit_used(&cache.room), 0);
  end(&retry);
  end(&cache.room);
}

/* That nobody has learned of any failure. */
static void expect_silence(uint64_t failures) {
  assert_int_equal(hook_calls, 0);
  assert_true(umem_is_ok(&retry) && umem_is_ok(&cache.room));
  assert_int_equal(umem_thread_status(), umemOK);
  assert_true(umem_thread_failures() == failures);
}

TEST(nothing_is_asked_while_there_is_room) {
  open_with(&fake, 2);
  umem_free(&retry, umem_alloc(&retry, 600));
  assert_int_equal(cache.calls, 0);
  close_all();
}

TEST(tries_until_it_fits) {
  uint64_t before = umem_thread_failures();
  open_with(&fake, 4);
  uintptr_t adr = umem_alloc(&retry, 700); /* three blocks must go */
  assert_true(adr != 0);
  assert_int_equal(cache.calls, 3);
  assert_int_equal(cache.last_attempt, 3);
  assert_int_equal(cache.nbytes, 700);
  assert_int_equal(cache.alignment, fake.super.alignment);
  assert_ptr_equal(cache.ctx, &retry);
  expect_silence(before);
  umem_free(&retry, adr);
  close_all();
}

TEST(every_form_tries_again) {
  uint64_t before = umem_thread_failures();
  open_with(&offsets, 4);
  uintptr_t one = umem_calloc(&retry, 3, 100);
  assert_int_equal(cache.calls, 1);
  assert_int_equal(cache.nbytes, 300);
  uintptr_t other = umem_aligned_alloc(&retry, 4096, 300);
  assert_int_equal(cache.calls, 2);
  assert_int_equal(cache.last_attempt, 1);
  assert_int_equal(cache.alignment, 4096);
  one = umem_realloc(&retry, one, 300, 500);
  assert_int_equal(cache.calls, 3);
  assert_int_equal(cache.nbytes, 500);
  assert_true(one != UINTPTR_MAX && other != UINTPTR_MAX);
  expect_silence(before);
  umem_free(&retry, one);
  umem_aligned_free(&retry, other);
  close_all();
}

TEST(the_last_refusal_is_told_once) {
  open_with(&fake, 2);
  uint64_t before = umem_thread_failures();
  assert_true(umem_alloc(&retry, 1001) == 0);
  assert_int_equal(cache.calls, 3); /* two that helped, one that gave up */
  assert_true(umem_thread_failures() == before + 1);
  assert_int_equal(hook_calls, 1);
  expect_both(
      &retry, &cache.room, umemMemoryError,
      "umem_alloc: no room for 1001 more bytes: 0 of the 1000 that the limit allows are in use");

  uintptr_t adr = umem_alloc(&retry, 100);
  assert_true(umem_realloc(&retry, adr, 100, 2000) == 0);
  expect_both(&retry, &cache.room, umemMemoryError, "umem_realloc: no room for 1900 more bytes");
  assert_int_equal(umemLimit_used(&cache.room), 100); /* as it was */
  umem_free(&retry, adr);
  close_all();
}

/* Of the failure that an outer attempt holds nobody learns either, until it is recorded. */
TEST(attempts_nest) {
  open_with(&fake, 1);
  uint64_t before = umem_thread_failures();
  umemAttempt attempt;
  umemAttempt_begin(&attempt);
  uintptr_t adr = umem_alloc(&retry, 5000);
  umemAttempt_end(&attempt);
  assert_true(adr == 0);
  expect_silence(before);
  assert_int_equal(umemAttempt_record(&attempt), umemMemoryError);
  expect_both(&retry, &cache.room, umemMemoryError, "5000 more bytes");
  close_all();
}

TEST(other_failures_are_told_at_once) {
  char const path[] = "/proc/self/exe";
  CLEAN_CONTEXT(umemFile, file, path, "r");
  open_with(&file, 0);
  assert_true(umem_realloc(&retry, 4096, 10, 20) == UINTPTR_MAX); /* no block */
  assert_int_equal(cache.calls, 0);
  umemStatusType type = umem_get_status(&retry);
  assert_true(type != umemOK && type != umemMemoryError);
  FORGET(&retry, &cache.room, &file);
  close_all();
}

/* Failures inside of the callback are its own. */
static bool fail_and_give_up(void *user, void *ctx UNUSED, size_t nbytes UNUSED,
                             size_t alignment UNUSED, unsigned attempt UNUSED) {
  umem_free(user, 4096);
  return false;
}

TEST(the_callback_fails_in_its_own_name) {
  open_with(&fake, 0);
  umemRetry failing;
  assert_ok(umemRetry_ctor(&failing, &cache.room, fail_and_give_up, &offsets));
  assert_true(umem_calloc(&failing, 5000, 1) == 0);
  assert_int_equal(umem_get_status(&offsets), umemValueError);
  assert_int_equal(strncmp(umem_get_message(&offsets), "umem_free: ", 11), 0);
  umem_clear_status(&offsets);
  expect_both(&failing, &cache.room, umemMemoryError, "umem_calloc: no room for 5000 more bytes");
  end(&failing);
  close_all();
}

/* ---- a callback that fails itself ---- */

/* What a callback saw of a failure of its own, and how it went on. cmocka must not jump out of
 * it. */
typedef struct Failing {
  void *ctx;   /* on which it fails */
  Cache *room; /* that it then makes, or NULL */
  bool seen;   /* by the call, the context, the thread, the count and the hook */
  unsigned calls;
} Failing;

static bool fail_and_look(void *user, void *ctx, size_t nbytes, size_t alignment,
                          unsigned attempt) {
  Failing *self = user;
  int calls_before = hook_calls;
  uint64_t before = umem_thread_failures();
  self->calls++;
  umemStatusType status = umem_set(self->ctx, umem_null(self->ctx), 0, 8);
  self->seen = status == umemValueError && umem_get_status(self->ctx) == umemValueError &&
               umem_thread_status() == umemValueError &&
               strstr(umem_thread_message(), "umem_set: ") &&
               umem_thread_failures() == before + 1 && hook_calls == calls_before + 1;
  return self->room && drop_one(self->room, ctx, nbytes, alignment, attempt);
}

/* That it saw all, and that nothing of it is a failure of the request on ctx. */
static void expect_own_failure(Failing *failing, void *ctx, uint64_t failures) {
  assert_int_equal(failing->calls, 1);
  assert_true(failing->seen);
  assert_true(umem_is_ok(ctx));
  assert_true(umem_thread_failures() == failures);
  assert_int_equal(umem_thread_status(),
                   umemValueError); /* the last one, though not the request's */
  FORGET(failing->ctx);
}

/* Blocks of 200 bytes leave room for 700 when one of them goes. */
static void open_failing(umemRetry *over, Failing *failing, void *fails) {
  open_with(&fake, 2);
  *failing = (Failing){fails, &cache, false, 0};
  assert_ok(umemRetry_ctor(over, &cache.room, fail_and_look, failing));
}

/* Also where what it fails on is below the contexts that wait for the block. */
TEST(the_callbacks_failures_are_not_the_requests) {
  umemRetry failing_retry;
  Failing failing;
  umemStats stats;
  open_failing(&failing_retry, &failing, &cache.room);
  assert_ok(umemStats_ctor(&stats, &failing_retry));
  uint64_t before = umem_thread_failures();
  uintptr_t adr = umem_alloc(&stats, 700);
  assert_true(adr != 0);
  assert_true(umem_is_ok(&failing_retry));
  expect_own_failure(&failing, &stats, before);

  failing.calls = 0;
  before = umem_thread_failures();
  adr = umem_realloc(&stats, adr, 700, 1000);
  assert_true(adr != 0);
  assert_true(umem_is_ok(&failing_retry));
  expect_own_failure(&failing, &stats, before);
  umem_free(&stats, adr);
  end(&stats);
  end(&failing_retry);
  close_all();
}

/* A pool holds what its upstream refuses, but not what a callback below it calls. */
TEST(attempts_do_not_hold_what_the_callback_calls) {
  umemRetry failing_retry;
  Failing failing;
  umemAttempt attempt;
  open_failing(&failing_retry, &failing, &offsets);
  uint64_t before = umem_thread_failures();
  umemAttempt_begin(&attempt);
  uintptr_t adr = umem_alloc(&failing_retry, 700);
  umemAttempt_end(&attempt);
  assert_true(adr != 0);
  assert_false(umemAttempt_failed(&attempt));
  expect_own_failure(&failing, &failing_retry, before);
  umem_free(&failing_retry, adr);

  umemPool pool;
  failing = (Failing){&offsets, NULL, false, 0};
  assert_ok(umemPool_ctor(&pool, &failing_retry, NULL));
  assert_true(umem_alloc(&pool, 5000) == 0);
  assert_true(failing.calls > 0 && failing.seen);
  assert_int_equal(umem_get_status(&offsets), umemValueError);
  umem_clear_status(&offsets);
  umem_clear_status(&cache.room);
  umem_clear_status(&failing_retry);
  expect_failure(&pool, umemMemoryError, "umem_alloc: ");
  end(&pool);
  end(&failing_retry);
  close_all();
}

TEST(a_callback_is_needed) {
  assert_int_equal(umemRetry_ctor(&retry, &fake, NULL, NULL), umemValueError);
  expect_failure(&retry, umemValueError, "the callback is NULL");
  assert_int_equal(umemRetry_adopt(&retry, &fake, NULL, NULL), umemValueError);
  assert_non_null(fake.super.vptr);
  expect_failure(&retry, umemValueError, "the callback is NULL");
}

/* ---- threads ---- */

static umemLimit narrow;
static umemRetry shared;

/* Others give back sooner or later. */
static bool wait_a_little(void *user UNUSED, void *ctx UNUSED, size_t nbytes UNUSED,
                          size_t alignment UNUSED, unsigned attempt UNUSED) {
  sched_yield();
  return true;
}

static void *insist(void *number) {
  for (int i = 0; i < 1000; i++) {
    uintptr_t adr = umem_alloc(&shared, 600);
    if (!adr || umem_thread_status() != umemOK) abort();
    umem_free(&shared, adr);
  }
  return number;
}

TEST(threads_wait_for_each_other) {
  assert_ok(umemLimit_ctor(&narrow, &host, 1000)); /* one at a time */
  assert_ok(umemRetry_ctor(&shared, &narrow, wait_a_little, NULL));
  in_threads(insist);
  assert_int_equal(umemLimit_used(&narrow), 0);
  end(&shared);
  end(&narrow);
}
