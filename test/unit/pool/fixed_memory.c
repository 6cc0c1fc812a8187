/* fixed_memory.c - blocks of one size, and bins, without memory for their records. */
#include "fixed_help.h"
#include "unit/failing_use.h"

enum { chunk = 40000 };

typedef union Any {
  umemFixed fixed;
  struct {
    umemBinning binning;
    umemFixed small;
  } bins;
} Any;

static umemStatusType construct_fixed(void *ctx, void *upstream) {
  umemFixedOptions options = {sizeof options, 0, 2 * chunk, chunk, 0};
  return umemFixed_ctor(ctx, upstream, chunk, &options);
}

static umemStatusType construct_bins(void *ctx, void *upstream) {
  Any *any = ctx;
  umemFixedOptions options = {sizeof options, 64, 0, 10 * 128, 0};
  umemBin const bin = {100, &any->bins.small};
  umemStatusType status = umemFixed_ctor(&any->bins.small, upstream, 100, &options);
  if (status != umemOK) return umem_set_status(any, status, "no bin");
  return umemBinning_ctor(&any->bins.binning, upstream, &bin, 1);
}

static void destruct_bins(void *ctx) {
  Any *any = ctx;
  DESTRUCT(&any->bins.binning, &any->bins.small);
}

static unsigned next(unsigned n) { return n + 1; }

TEST(all_survive_every_failure) {
  FailingUse const rows[] = {{"Fixed", construct_fixed, umem_dtor, 60, 8192, next},
                             {"bins", construct_bins, destruct_bins, 60, 8192, next}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    Any any;
    assert_true(survive_every_failure(&rows[i], &any, sizeof any) > 10);
  }
}

/* A chunk that comes and goes costs no RAM but, where its address is new, room in the
 * map. */
FIXED_TEST(the_records_of_chunks_are_used_again) {
  assert_ok(umemFixed_ctor(&fixed, &host, 100, NULL));
  unsigned before = memory.calls;
  for (int i = 0; i < 200; i++) {
    umem_free(&fixed, umem_alloc(&fixed, 1));
    assert_int_equal(stats_of(&fixed).chunks, 1);
    assert_ok(umem_trim(&fixed, 0));
    assert_int_equal(stats_of(&fixed).chunks, 0);
  }
  assert_in_range(memory.calls - before, 1, 100);
}
