/* fixed_memory.c - blocks of one size, and bins, without memory for their records: each allocation
 * of theirs fails in turn.
 *
 * Linked with -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc. */
#include "fixed_help.h"
#include "failing_memory.h"

/* ---- what is done with each ---- */

enum { blocks = 60, chunk = 40000 };

/* Allocates so many that all tables grow, in every form; frees what there is. Whether nothing was
 * refused. */
static bool use(void *ctx) {
  static uintptr_t adr[blocks];
  bool good = true;
  for (size_t i = 0; i < blocks; i++) {
    adr[i] = i % 3 == 0   ? umem_aligned_alloc(ctx, 8192, 10 + i)
             : i % 3 == 1 ? umem_calloc(ctx, 10 + i, 1)
                          : umem_alloc(ctx, 10 + i);
    good = good && adr[i] != umem_null(ctx);
  }
  for (size_t i = 2; i < blocks; i += 3) {
    if (adr[i] == umem_null(ctx)) continue;
    uintptr_t moved = umem_realloc(ctx, adr[i], 10 + i, 500);
    if (moved == umem_null(ctx))
      good = false;
    else
      adr[i] = moved;
  }
  for (size_t i = 0; i < blocks; i++) (i % 3 ? umem_free : umem_aligned_free)(ctx, adr[i]);
  return good;
}

typedef union Any {
  umemFixed fixed;
  struct {
    umemBinning binning;
    umemFixed small;
  } bins;
} Any;

static umemStatusType construct_fixed(Any *any) {
  umemFixedOptions options = {sizeof options, 0, 2 * chunk, chunk, 0};
  return umemFixed_ctor(&any->fixed, &offsets, chunk, &options);
}

static umemStatusType construct_bins(Any *any) {
  umemFixedOptions options = {sizeof options, 64, 0, 10 * 128, 0};
  umemBin const bin = {100, &any->bins.small};
  umemStatusType status = umemFixed_ctor(&any->bins.small, &offsets, 100, &options);
  if (status != umemOK) return umem_set_status(any, status, "no bin");
  return umemBinning_ctor(&any->bins.binning, &offsets, &bin, 1);
}

static void destruct_fixed(Any *any) { umem_dtor(&any->fixed); }

static void destruct_bins(Any *any) { DESTRUCT(&any->bins.binning, &any->bins.small); }

/* Whichever allocation fails: it is a memory error of that call, and nothing is lost. */
static void survives_every_failure(umemStatusType (*construct)(Any *), void (*destruct)(Any *)) {
  bool fired = true;
  unsigned refused = 0;
  for (unsigned n = 0; fired; n++) {
    Any any;
    memset(&any, 0, sizeof any);
    fail_memory(n, 1);
    umemStatusType status = construct(&any);
    if (status == umemOK) {
      bool good = use(&any);
      fired = end_failing();
      refused += !good;
      if (good != umem_is_ok(&any)) fail_msg("%u: %s", n, umem_get_message(&any));
      if (!good) assert_int_equal(umem_get_status(&any), umemMemoryError);
      umem_clear_status(&any);
      assert_true(use(&any)); /* all is well again */
      assert_true(umem_is_ok(&any));
    } else {
      assert_int_equal(status, umemMemoryError);
      refused++;
    }
    end_failing();
    destruct(&any);
    assert_int_equal(blocks_in(&offsets), 0);
    FORGET(&offsets);
    assert_true(n < 10000);
  }
  assert_true(refused > 10);
}

TEST(fixed_survives_every_failure) { survives_every_failure(construct_fixed, destruct_fixed); }

TEST(bins_survive_every_failure) { survives_every_failure(construct_bins, destruct_bins); }

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
