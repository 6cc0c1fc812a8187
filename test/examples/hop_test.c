/* hop_test.c - the check of examples/hop.c finds every way in which a copy can go wrong.
 *
 * The places here lie: each is RAM whose copies do something else than they say, from the n-th
 * on. */

#include "hop.h"
#include "cases.h"

typedef enum Lie {
  HONEST,
  DOES_NOTHING,  /* says OK */
  STOPS_SHORT,   /* leaves the last byte out */
  CHANGES_A_BIT, /* in the last byte */
  WRITES_ZEROS,  /* whatever it should copy */
  FAILS,         /* and says so */
  TAKES_LONG     /* and is honest otherwise */
} Lie;

enum { LONG_US = 200000 };                          /* microseconds */
static double const delay = 1e-6 * (double)LONG_US; /* seconds */

typedef struct Liar {
  umemVirtual super;
  umemHost host;
  Lie lie;
  int honest_copies; /* into the place, before the dishonest ones begin */
} Liar;

static uintptr_t liar_alloc(umemVirtual *ctx, size_t size) {
  (void)ctx;
  return (uintptr_t)calloc(1, size);
}

static void liar_free(umemVirtual *ctx, uintptr_t adr) {
  (void)ctx;
  free((void *)adr);
}

static void liar_copy_to(umemVirtual *ctx, uintptr_t src, umemVirtual *that, uintptr_t dst,
                         size_t size) {
  (void)ctx, (void)that;
  memcpy((void *)dst, (void *)src, size);
}

static void liar_copy_from(umemVirtual *ctx, uintptr_t dst, umemVirtual *that, uintptr_t src,
                           size_t size) {
  Liar *liar = (Liar *)ctx;
  (void)that;
  Lie const lie = liar->honest_copies-- > 0 ? HONEST : liar->lie;
  switch (lie) {
  case HONEST:
    memcpy((void *)dst, (void *)src, size);
    break;
  case DOES_NOTHING:
    break;
  case STOPS_SHORT:
    memcpy((void *)dst, (void *)src, size - 1);
    break;
  case CHANGES_A_BIT:
    memcpy((void *)dst, (void *)src, size);
    ((unsigned char *)dst)[size - 1] ^= 1;
    break;
  case WRITES_ZEROS:
    memset((void *)dst, 0, size);
    break;
  case FAILS:
    umem_set_status(ctx, umemIOError, "the cable is cut");
    break;
  case TAKES_LONG:
    usleep(LONG_US);
    memcpy((void *)dst, (void *)src, size);
    break;
  }
}

static void liar_ctor(Liar *liar, Lie lie, int honest_copies) {
  static struct umemVtbl const vtbl = {
      .alloc = liar_alloc, .free = liar_free, .copy_to = liar_copy_to, .copy_from = liar_copy_from};
  umemHost_ctor(&liar->host);
  umemVirtual_ctor(&liar->super, &liar->host);
  liar->super.vptr = &vtbl;
  liar->super.type = umemUserDevice;
  liar->lie = lie;
  liar->honest_copies = honest_copies;
}

enum { SIZE = 100000 }; /* more than one chunk */

/* Sends an array of SIZE bytes, all equal to value, from RAM to a liar. */
static bool hop_to(Lie lie, int honest_copies, unsigned char value, Route *route, char *why) {
  unsigned char *array = malloc(SIZE);
  umemHost ram;
  Liar liar;
  umemHost_ctor(&ram);
  liar_ctor(&liar, lie, honest_copies);
  memset(array, value, SIZE);
  *route = (Route){.from = "RAM", .to = "liar"};

  uintptr_t adr = umem_alloc(&liar, SIZE);
  bool ok =
      hop(route, (Block){&ram, (uintptr_t)array}, (Block){&liar, adr}, array, SIZE, NULL, why);

  umem_free(&liar, adr);
  umem_dtor(&liar);
  umem_dtor(&liar.host);
  umem_dtor(&ram);
  free(array);
  return ok;
}

/* The target is made wrong in two chunks: that many copies into it precede the one that counts. */
enum { COPIES_BEFORE = 2 };

TEST_CASE(test_honest_place_passes) {
  char why[HOP_WHY_SIZE] = "";
  Route route;
  assert_true(hop_to(HONEST, 0, 0, &route, why));
  assert_string_equal(why, "");
  assert_false(route.failed);
  assert_int_equal(route.bytes, SIZE);
  assert_true(route.seconds > 0);
}

TEST_CASE(test_every_lie_is_found) {
  static unsigned char const values[] = {0, 1, 0x80, 0xff};
  for (Lie lie = DOES_NOTHING; lie <= FAILS; ++lie) {
    for (size_t i = 0; i < sizeof values; ++i) {
      if (lie == WRITES_ZEROS && values[i] == 0) continue; /* then it is no lie */
      char why[HOP_WHY_SIZE] = "";
      Route route;
      assert_false(hop_to(lie, COPIES_BEFORE, values[i], &route, why));
      assert_true(route.failed);
      assert_int_equal(route.bytes, 0);
      if (lie == FAILS)
        assert_non_null(strstr(why, "the cable is cut"));
      else
        assert_non_null(strstr(why, "after the copy, byte "));
    }
  }
}

/* Zeros, into memory that is zero by chance, by copies that never do anything. */
TEST_CASE(test_right_by_chance_does_not_pass) {
  char why[HOP_WHY_SIZE] = "";
  Route route;
  assert_false(hop_to(DOES_NOTHING, 0, 0, &route, why));
  assert_string_equal(why, "before the copy, byte 0 of 100000 is 0x00 and should be 0xff");
}

/* As hop_to. A copy of SIZE bytes is short and so repeated, but a busy machine may make it long. */
static bool repeated_hop_to(Lie lie, int honest_copies, Route *route, char *why) {
  for (int tries = 0; tries < 100; ++tries)
    if (!hop_to(lie, honest_copies, 0x40, route, why) ||
        route->seconds < 1e-3 * (double)HOP_SHORT_MS)
      return !route->failed;
  fail_msg("no copy took less than %d ms", HOP_SHORT_MS);
  return false;
}

TEST_CASE(test_lies_in_a_repetition_are_found) {
  for (int time = 0; time < HOP_TIMES; ++time) {
    char why[HOP_WHY_SIZE] = "";
    Route route;
    int honest_copies = time * (COPIES_BEFORE + 1) + COPIES_BEFORE;
    assert_false(repeated_hop_to(CHANGES_A_BIT, honest_copies, &route, why));
    assert_string_equal(why, "after the copy, byte 99999 of 100000 is 0x41 and should be 0x40");
    assert_int_equal(route.bytes, 0);
  }
}

TEST_CASE(test_the_median_counts) {
  char why[HOP_WHY_SIZE] = "";
  Route route;
  int last = (HOP_TIMES - 1) * (COPIES_BEFORE + 1) + COPIES_BEFORE;
  assert_true(hop_to(TAKES_LONG, last, 0x40, &route, why));
  assert_true(route.seconds < delay / (2 * (double)HOP_TIMES)); /* the mean would be larger */
  assert_int_equal(route.bytes, SIZE);
}

TEST_CASE(test_long_copies_are_not_repeated) {
  char why[HOP_WHY_SIZE] = "";
  Route route;
  assert_true(hop_to(TAKES_LONG, COPIES_BEFORE, 0x40, &route, why));
  assert_true(route.seconds >= delay && route.seconds < delay * (double)HOP_TIMES);
}

TEST_CASE(test_the_wrong_byte_is_named) {
  char why[HOP_WHY_SIZE] = "";
  Route route;
  assert_false(hop_to(CHANGES_A_BIT, COPIES_BEFORE, 0x40, &route, why));
  assert_string_equal(why, "after the copy, byte 99999 of 100000 is 0x41 and should be 0x40");
}

TEST_CASE(test_nothing_to_copy) {
  char why[HOP_WHY_SIZE] = "";
  unsigned char byte = 0;
  umemHost ram;
  umemHost_ctor(&ram);
  Route route = {0};
  Block block = {&ram, (uintptr_t)&byte};
  assert_true(hop(&route, block, block, &byte, 0, NULL, why));
  assert_int_equal(route.bytes, 0);
  umem_dtor(&ram);
}
