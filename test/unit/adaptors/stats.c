/* stats.c - umem/stats.h. */
#include "adaptor_help.h"

static umemStatsFigures figures_of(umemStats *ctx) {
  umemStatsFigures figures = UMEM_STATS_FIGURES_INIT;
  assert_ok(umemStats_get(ctx, &figures));
  assert_int_equal(figures.size, sizeof figures);
  return figures;
}

/* Bytes and blocks: current, peak, total. */
#define assert_figures(f, cb, pb, tb, cc, pc, tc)                                                  \
  do {                                                                                             \
    umemStatsFigures found = (f);                                                                  \
    assert_int_equal(found.current_bytes, cb);                                                     \
    assert_int_equal(found.peak_bytes, pb);                                                        \
    assert_int_equal(found.total_bytes, tb);                                                       \
    assert_int_equal(found.current_count, cc);                                                     \
    assert_int_equal(found.peak_count, pc);                                                        \
    assert_int_equal(found.total_count, tc);                                                       \
  } while (0)

TEST(counts_every_form_of_allocation) {
  CLEAN_CONTEXT(umemStats, stats, &offsets);
  assert_figures(figures_of(&stats), 0, 0, 0, 0, 0, 0);
  uintptr_t one = umem_alloc(&stats, 100);
  assert_figures(figures_of(&stats), 100, 100, 100, 1, 1, 1);
  uintptr_t other = umem_calloc(&stats, 5, 40);
  assert_figures(figures_of(&stats), 300, 300, 300, 2, 2, 2);
  uintptr_t aligned = umem_aligned_alloc(&stats, 4096, 50);
  assert_figures(figures_of(&stats), 350, 350, 350, 3, 3, 3);
  umem_free(&stats, one);
  assert_figures(figures_of(&stats), 250, 350, 350, 2, 3, 3);
  other = umem_realloc(&stats, other, 200, 1000);
  assert_figures(figures_of(&stats), 1050, 1050, 1350, 2, 3, 4);
  other = umem_realloc(&stats, other, 1000, 30);
  assert_figures(figures_of(&stats), 80, 1050, 1380, 2, 3, 5);
  umem_aligned_free(&stats, aligned);
  FREE(&stats, other, umem_null(&stats));
  assert_figures(figures_of(&stats), 0, 1050, 1380, 0, 3, 5);
}

TEST(failures_count_nothing) {
  size_t const huge = SIZE_MAX / 2;
  CLEAN_CONTEXT(umemStats, stats, &fake);
  uintptr_t adr = umem_alloc(&stats, 100);
  assert_true(umem_alloc(&stats, huge) == 0);
  assert_true(umem_calloc(&stats, huge, 1) == 0);
  assert_true(umem_aligned_alloc(&stats, 64, huge) == 0);
  assert_true(umem_realloc(&stats, adr, 100, huge) == 0);
  expect_both(&stats, &fake, umemMemoryError, "no room for");
  umem_free(&stats, adr + 1);
  expect_both(&stats, &fake, umemValueError, "is not a live block");
  assert_figures(figures_of(&stats), 100, 100, 100, 1, 1, 1);
  FREE(&stats, adr, adr);
  expect_both(&stats, &fake, umemValueError, "is not a live block");
  assert_figures(figures_of(&stats), 0, 100, 100, 0, 1, 1);
}

static umemStats meeting;
static struct umemVtbl const *file_methods;

/* Frees, and before it returns somebody else allocates: the address comes back. */
static void free_meets_another(umemVirtual *ctx, uintptr_t adr) {
  ctx->vptr = file_methods;
  umem_free(ctx, adr);
  assert_true(umem_alloc(&meeting, 70) == adr);
}

TEST(an_address_that_comes_back_at_once_is_another_block) {
  CLEAN_CONTEXT(umemFile, file, NULL, "w+");
  file_methods = file.super.vptr;
  struct umemVtbl meets = *file_methods;
  meets.free = free_meets_another;
  assert_ok(umemStats_ctor(&meeting, &file));
  uintptr_t adr = umem_alloc(&meeting, 100);
  file.super.vptr = &meets;
  umem_free(&meeting, adr);
  assert_figures(figures_of(&meeting), 70, 170, 170, 1, 2, 2);
  umem_free(&meeting, adr);
  assert_figures(figures_of(&meeting), 0, 170, 170, 0, 2, 2);
  end(&meeting);
}

TEST(scopes_nest) {
  umemStatsFigures scope = UMEM_STATS_FIGURES_INIT;
  CLEAN_CONTEXT(umemStats, stats, &host);
  uintptr_t before = umem_alloc(&stats, 1000);
  assert_ok(umemStats_push(&stats));
  uintptr_t outer = umem_alloc(&stats, 10);
  umem_free(&stats, before); /* below where the scope began */
  assert_ok(umemStats_push(&stats));
  uintptr_t inner = umem_alloc(&stats, 500);
  umem_free(&stats, inner);
  assert_ok(umemStats_pop(&stats, &scope));
  assert_figures(scope, 0, 500, 500, 0, 1, 1);
  assert_ok(umemStats_push(&stats));
  assert_ok(umemStats_pop(&stats, NULL));
  assert_ok(umemStats_pop(&stats, &scope));
  assert_figures(scope, -990, 10, 510, 0, 1, 2);
  assert_figures(figures_of(&stats), 10, 1010, 1510, 1, 2, 3);
  umem_free(&stats, outer);
  assert_int_equal(umemStats_pop(&stats, &scope), umemValueError);
  expect_failure(&stats, umemValueError, "umemStats_pop: no scope is open");
  assert_ok(umemStats_push(&stats)); /* is released with the context */
  assert_ok(umemStats_push(&stats));
}

TEST(reset_forgets_the_past) {
  umemStatsFigures scope = UMEM_STATS_FIGURES_INIT;
  CLEAN_CONTEXT(umemStats, stats, &host);
  uintptr_t kept = umem_alloc(&stats, 30), before = umem_alloc(&stats, 70);
  assert_ok(umemStats_push(&stats));
  umem_free(&stats, umem_alloc(&stats, 400));
  umem_free(&stats, before);
  assert_ok(umemStats_reset(&stats));
  assert_figures(figures_of(&stats), 30, 30, 0, 1, 1, 0);
  umem_free(&stats, umem_alloc(&stats, 5));
  assert_ok(umemStats_pop(&stats, &scope));
  assert_figures(scope, -70, 0, 5, -1, 0, 1);
  assert_figures(figures_of(&stats), 30, 35, 5, 1, 2, 1);
  umem_free(&stats, kept);
}

TEST(structs_may_be_older_or_newer) {
  umemStatsFigures figures;
  struct {
    umemStatsFigures figures;
    unsigned char later[32];
  } longer;
  CLEAN_CONTEXT(umemStats, stats, &host);
  uintptr_t adr = umem_alloc(&stats, 100);
  memset(&figures, 0xAA, sizeof figures);
  figures.size = offsetof(umemStatsFigures, total_bytes);
  assert_ok(umemStats_get(&stats, &figures));
  assert_int_equal(figures.peak_bytes, 100);
  assert_true((uint64_t)figures.total_bytes == 0xAAAAAAAAAAAAAAAAu);
  memset(&longer, 0xAA, sizeof longer);
  longer.figures.size = sizeof longer;
  assert_ok(umemStats_get(&stats, &longer.figures));
  assert_int_equal(longer.figures.total_count, 1);
  for (size_t i = 0; i < sizeof longer.later; i++) assert_int_equal(longer.later[i], 0xAA);

  figures.size = 3;
  expect_status(&stats, umemStats_get(&stats, &figures), umemValueError, "figures->size is 3");
  expect_status(&stats, umemStats_get(&stats, NULL), umemValueError, "figures is NULL");
  assert_ok(umemStats_push(&stats));
  expect_status(&stats, umemStats_pop(&stats, &figures), umemValueError, "figures->size is 3");
  assert_ok(umemStats_pop(&stats, NULL)); /* was still open */
  umem_free(&stats, adr);
}

TEST(an_ended_context_tells_nothing) {
  umemStats stats;
  umemStatsFigures figures = UMEM_STATS_FIGURES_INIT;
  assert_ok(umemStats_ctor(&stats, &host));
  end(&stats);
  assert_int_equal(umemStats_get(&stats, &figures), umemValueError);
  assert_int_equal(umemStats_push(&stats), umemValueError);
  assert_int_equal(umemStats_pop(&stats, NULL), umemValueError);
  expect_status(&stats, umemStats_reset(&stats), umemValueError, "not constructed");
}

/* ---- threads ---- */

static umemStats shared;
enum { rounds = 3000 };

static void *churn(void *number) {
  size_t size = 100 + (uintptr_t)number;
  for (int i = 0; i < rounds; i++) {
    uintptr_t adr = umem_alloc(&shared, size);
    adr = umem_realloc(&shared, adr, size, 2 * size);
    if (i % 100 == 0) umemStats_push(&shared), umemStats_pop(&shared, NULL);
    if (i % 10 == 0)
      assert_true(figures_of(&shared).current_bytes > 0); /* the thread's own at least */
    umem_free(&shared, adr);
  }
  return number;
}

TEST(threads_are_counted_together) {
  assert_ok(umemStats_ctor(&shared, &host));
  in_threads(churn);
  umemStatsFigures figures = figures_of(&shared);
  int64_t sizes = 0;
  for (int i = 0; i < worker_count; i++) sizes += 100 + i;
  assert_int_equal(figures.current_bytes, 0);
  assert_int_equal(figures.current_count, 0);
  assert_int_equal(figures.total_bytes, 3 * rounds * sizes);
  assert_int_equal(figures.total_count, 2 * rounds * worker_count);
  assert_true(figures.peak_count >= 1 && figures.peak_count <= worker_count);
  assert_true(figures.peak_bytes >= 200 && figures.peak_bytes <= 2 * sizes);
  end(&shared);
}

TEST(figures_carry_the_label) {
  umemStatsFigures figures = UMEM_STATS_FIGURES_INIT;
  umemPoolStats of_pool = UMEM_POOL_STATS_INIT;
  CONTEXT(umemHost, ram);
  CONTEXT(umemStats, stats, &ram);
  CONTEXT(umemPool, pool, &stats, NULL);
  assert_string_equal(figures_of(&stats).label, "");
  assert_ok(umem_set_label(&stats, "fields"));
  assert_ok(umem_set_label(&pool, "blocks"));
  assert_string_equal(figures_of(&stats).label, "fields");
  assert_ok(umemStats_push(&stats));
  assert_ok(umemStats_pop(&stats, &figures));
  assert_string_equal(figures.label, "fields");
  assert_ok(umemPool_stats(&pool, &of_pool));
  assert_string_equal(of_pool.label, "blocks");
}
