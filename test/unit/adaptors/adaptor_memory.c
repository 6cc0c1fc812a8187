/* adaptor_memory.c - adaptors without memory for their records: each allocation of theirs fails in
 * turn.
 *
 * Linked with -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc. */
#include "adaptor_kinds.h"
#include "settings.h"
#include "failing_memory.h"

/* Which one fails after the n-th: later ones meet what earlier ones have met, with more blocks. */
static unsigned after(unsigned n) { return n + (n < 40 ? 1 : setting_small() ? 37 : 5); }

/* ---- what is done with each ---- */

enum { blocks = 600 }; /* so many that all tables grow */

/* Allocates in every form; frees what there is. Whether nothing was refused. */
static bool use(void *ctx) {
  static uintptr_t adr[blocks];
  bool good = true;
  for (size_t i = 0; i < blocks; i++) {
    adr[i] = i % 4 == 0   ? umem_aligned_alloc(ctx, 64, 10 + i)
             : i % 4 == 1 ? umem_calloc(ctx, 10 + i, 1)
                          : umem_alloc(ctx, 10 + i);
    bool there = adr[i] != umem_null(ctx);
    good = good && there;
    if (i % 4 == 3 && there) {
      uintptr_t moved = umem_realloc(ctx, adr[i], 10 + i, 500);
      good = good && moved != umem_null(ctx);
      if (moved != umem_null(ctx)) adr[i] = moved;
    }
  }
  for (size_t i = 0; i < blocks; i++) (i % 4 ? umem_free : umem_aligned_free)(ctx, adr[i]);
  return good;
}

/* Whichever allocation fails: it is a memory error of that call, frees succeed, and nothing is
 * lost. A table that cannot grow is only slower, so a failure may go unnoticed. */
TEST(the_records_survive_every_failure) {
  unsigned refused = 0;
  FOR_EACH_KIND {
    bool fired = true;
    for (unsigned n = 0; fired; n = after(n)) {
      Any any;
      fail_memory(n, 1);
      umemStatusType status = kinds[kind].borrows(&any, &offsets);
      if (status == umemOK) {
        bool good = use(&any);
        fired = end_failing();
        refused += !good;
        if (good != umem_is_ok(&any)) fail_msg("%s: %u", kinds[kind].name, n);
        if (!good) assert_int_equal(umem_get_status(&any), umemMemoryError);
        umem_clear_status(&any);
        assert_true(use(&any)); /* all is well again */
        assert_true(umem_is_ok(&any));
        umem_dtor(&any); /* leaks would be a failure */
        assert_true(umem_is_ok(&any));
      } else {
        assert_int_equal(status, umemMemoryError);
        assert_int_equal(umem_get_status(&any), umemMemoryError);
        umem_dtor(&any);
      }
      end_failing();
      assert_int_equal(blocks_in(&offsets), 0);
      FORGET(&offsets);
      assert_true(n < 10000);
    }
  }
  assert_true(refused >
              2 * 16); /* by those with a table of blocks, which is in parts, at the least */
}

/* The figures, too, are those of the blocks that there are. */
TEST(figures_stay_right) {
  bool fired = true;
  for (unsigned n = 0; fired; n = after(n)) {
    umemStats stats;
    umemLimit limit;
    umemStatsFigures figures = UMEM_STATS_FIGURES_INIT;
    assert_ok(umemLimit_ctor(&limit, &offsets, 1000000));
    assert_ok(umemStats_ctor(&stats, &limit));
    fail_memory(n, 1);
    umemStatusType pushed = umemStats_push(&stats);
    use(&stats);
    fired = end_failing();
    assert_int_equal(umemLimit_used(&limit), 0);
    assert_ok(umemStats_get(&stats, &figures));
    assert_int_equal(figures.current_bytes, 0);
    assert_int_equal(figures.current_count, 0);
    if (pushed == umemOK) assert_ok(umemStats_pop(&stats, NULL));
    if (!fired) assert_int_equal(figures.total_count, blocks + blocks / 4);
    DESTRUCT(&stats, &limit);
    FORGET(&offsets);
  }
}
