/* limit.c - umem/limit.h. */
#include "adaptor_help.h"

TEST(counts_what_was_asked_for) {
  CLEAN_CONTEXT(umemLimit, limit, &fake, 1000);
  assert_int_equal(umemLimit_used(&limit), 0);
  uintptr_t one = umem_alloc(&limit, 100), other = umem_calloc(&limit, 10, 20);
  uintptr_t aligned = umem_aligned_alloc(&limit, 4096, 50), least = umem_alloc(&limit, 0);
  assert_int_equal(umemLimit_used(&limit), 351);
  other = umem_realloc(&limit, other, 200, 700);
  assert_int_equal(umemLimit_used(&limit), 851);
  other = umem_realloc(&limit, other, 700, 10);
  assert_int_equal(umemLimit_used(&limit), 161);
  umem_aligned_free(&limit, aligned);
  assert_int_equal(umemLimit_used(&limit), 111);
  FREE(&limit, one, least, other);
  assert_int_equal(umemLimit_used(&limit), 0);
  assert_int_equal(blocks_in(&fake), 0);
}

TEST(refuses_what_is_beyond) {
  CLEAN_CONTEXT(umemLimit, limit, &offsets, 1000);
  uintptr_t adr = umem_alloc(&limit, 900);
  expect_no_block(
      &limit, umem_alloc(&limit, 101), umemMemoryError,
      "umem_alloc: no room for 101 more bytes: 900 of the 1000 that the limit allows are in use");
  assert_true(umem_is_ok(&offsets)); /* was never asked */
  assert_true(umem_calloc(&limit, 51, 2) == UINTPTR_MAX);
  expect_failure(&limit, umemMemoryError, "umem_calloc: no room for 102 more bytes");
  assert_true(umem_aligned_alloc(&limit, 64, 101) == UINTPTR_MAX);
  expect_failure(&limit, umemMemoryError, "umem_aligned_alloc: no room for 101 more bytes");
  assert_true(umem_realloc(&limit, adr, 900, 1001) == UINTPTR_MAX);
  expect_failure(&limit, umemMemoryError, "umem_realloc: no room for 101 more bytes");
  assert_int_equal(blocks_in(&offsets), 1);
  assert_int_equal(umemLimit_used(&limit), 900);
  adr = umem_realloc(&limit, adr, 900, 1000); /* all of it */
  assert_int_equal(umemLimit_used(&limit), 1000);
  expect_no_block(&limit, umem_alloc(&limit, 1), umemMemoryError, "1000 of the 1000");
  umem_free(&limit, adr);
  umem_free(&limit, umem_alloc(&limit, 1000));
}

/* What fails further down leaves no trace in the figure. */
TEST(a_failed_call_changes_nothing) {
  size_t const huge = SIZE_MAX / 2;
  CLEAN_CONTEXT(umemLimit, limit, &fake, SIZE_MAX);
  uintptr_t adr = umem_alloc(&limit, 100);
  assert_true(umem_alloc(&limit, huge) == 0);
  expect_both(&limit, &fake, umemMemoryError, "no room for");
  assert_true(umem_calloc(&limit, huge, 1) == 0);
  expect_both(&limit, &fake, umemMemoryError, "no room for");
  assert_true(umem_aligned_alloc(&limit, 64, huge) == 0);
  expect_both(&limit, &fake, umemMemoryError, "no room for");
  assert_true(umem_realloc(&limit, adr, 100, huge) == 0);
  expect_both(&limit, &fake, umemMemoryError, "no room for");
  assert_int_equal(umemLimit_used(&limit), 100);
  umem_free(&limit, adr + 1);
  expect_both(&limit, &fake, umemValueError, "is not a live block");
  assert_int_equal(umemLimit_used(&limit), 100);
  FREE(&limit, adr, adr);
  expect_both(&limit, &fake, umemValueError, "is not a live block");
  assert_int_equal(umemLimit_used(&limit), 0);
}

/* A free that upstream refuses, of a block that is live. */
static void refuse_free(umemVirtual *ctx, uintptr_t adr) {
  umemVirtual_fail(ctx, umemIOError, "not now: %zu", (size_t)adr);
}

TEST(a_refused_free_keeps_the_block) {
  struct umemVtbl const *methods = fake.super.vptr;
  struct umemVtbl stubborn = *methods;
  stubborn.free = refuse_free;
  CLEAN_CONTEXT(umemLimit, limit, &fake, 1000);
  uintptr_t adr = umem_alloc(&limit, 100);
  fake.super.vptr = &stubborn;
  umem_free(&limit, adr);
  fake.super.vptr = methods;
  expect_both(&limit, &fake, umemIOError, "not now");
  assert_int_equal(umemLimit_used(&limit), 100);
  umem_free(&limit, adr);
  assert_int_equal(umemLimit_used(&limit), 0);
}

/* Blocks that came from upstream, and blocks that went there. */
TEST(knows_its_own_blocks_only) {
  umemLimit limit;
  assert_ok(umemLimit_ctor(&limit, &host, 1000));
  uintptr_t foreign = umem_alloc(&host, 5000);
  foreign = umem_realloc(&limit, foreign, 5000, 6000);
  assert_int_equal(umemLimit_used(&limit), 0);
  umem_free(&limit, foreign);
  assert_int_equal(umemLimit_used(&limit), 0);
  end(&limit);

  /* freed behind its back: the address comes again, and counts once */
  assert_ok(umemLimit_ctor(&limit, &offsets, 10000));
  umemFile file;
  assert_ok(umemFile_ctor(&file, NULL, "w+"));
  umemLimit over_file;
  assert_ok(umemLimit_ctor(&over_file, &file, 10000));
  assert_true(umem_alloc(&over_file, 100) == 0);
  umem_free(&file, 0);
  assert_true(umem_alloc(&over_file, 70) == 0);
  assert_int_equal(umemLimit_used(&over_file), 70);
  umem_free(&over_file, 0);
  assert_int_equal(umemLimit_used(&over_file), 0);
  end(&over_file);
  end(&file);
  end(&limit);
}

TEST(info_has_the_lesser) {
  umemInfo info = UMEM_INFO_INIT, below = UMEM_INFO_INIT;
  CLEAN_CONTEXT(umemLimit, limit, &fake, 1000);
  CLEAN_CONTEXT(umemLimit, wide, &fake, SIZE_MAX);
  uintptr_t adr = umem_alloc(&limit, 300);
  assert_ok(umem_get_info(&limit, &info));
  assert_int_equal(info.capacity, 1000);
  assert_int_equal(info.available, 700);
  assert_string_equal(info.name, "fake");
  assert_ok(umem_get_info(&wide, &info));
  assert_ok(umem_get_info(&fake, &below));
  assert_int_equal(info.capacity, below.capacity);
  assert_int_equal(info.available, below.available);
  umem_free(&limit, adr);
}

/* Many more than any table begins with. */
TEST(remembers_many_blocks) {
  enum { count = 50000 };
  static uintptr_t adr[count];
  size_t total = 0;
  CLEAN_CONTEXT(umemLimit, limit, &host, SIZE_MAX);
  for (size_t i = 0; i < count; i++, total += i) adr[i] = umem_alloc(&limit, i + 1);
  assert_int_equal(umemLimit_used(&limit), total);
  for (size_t i = 0; i < count; i += 2) umem_free(&limit, adr[i]), total -= i + 1;
  assert_int_equal(umemLimit_used(&limit), total);
  for (size_t i = 1; i < count; i += 2) umem_free(&limit, adr[i]);
  assert_int_equal(umemLimit_used(&limit), 0);
}

/* ---- threads ---- */

static umemLimit shared;
enum { rounds = 5000, share = 1000 };

/* Asks for more than there is when all ask at once: some must be refused, none more than once too
 * many. */
static void *take_and_give(void *number) {
  uintptr_t adr[4];
  for (size_t i = 0; i < rounds; i++) {
    umemAttempt attempt;
    umemAttempt_begin(&attempt);
    for (size_t k = 0; k < 4; k++) adr[k] = umem_alloc(&shared, share);
    umemAttempt_end(&attempt);
    if (umemLimit_used(&shared) > 10 * share) abort();
    for (size_t k = 0; k < 4; k++) umem_free(&shared, adr[k]);
  }
  return number;
}

TEST(threads_share_the_limit) {
  assert_ok(umemLimit_ctor(&shared, &host, 10 * share));
  in_threads(take_and_give);
  assert_int_equal(umemLimit_used(&shared), 0);
  end(&shared);
}
