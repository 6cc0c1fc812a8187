/* adaptor_memory.c - adaptors without memory for their records. */
#include "adaptor_kinds.h"
#include "settings.h"
#include "unit/failing_use.h"

/* Which one fails after the n-th: later ones meet what earlier ones have met, with more blocks. */
static unsigned after(unsigned n) { return n + (n < 40 ? 1 : setting_small() ? 37 : 5); }

enum { blocks = 600 };

TEST(the_records_survive_every_failure) {
  unsigned refused = 0;
  FOR_EACH_KIND {
    Any any;
    FailingUse it = {kinds[kind].name, kinds[kind].borrows, umem_dtor, blocks, 64, after};
    refused += survive_every_failure(&it, &any, sizeof any);
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
    use(&stats, blocks, 64);
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
