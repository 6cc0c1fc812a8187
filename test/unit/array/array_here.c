/* array_here.c - which memory the CPU uses where it is: that of contexts whose addresses are
 * pointers, also below adaptors that do not look at copies.
 *
 * The context of these tests has pointers, no copies, and a host that was never constructed, so
 * every buffer and every copy is a failure. */
#include "array_help.h"

typedef struct Bare {
  umemVirtual super;
  umemHost never; /* all zero */
  int waits;
} Bare;

static uintptr_t bare_alloc(umemVirtual *ctx UNUSED, size_t nbytes) {
  return (uintptr_t)calloc(1, nbytes);
}
static void bare_free(umemVirtual *ctx UNUSED, uintptr_t adr) { free((void *)adr); }
static void bare_synchronize(umemVirtual *ctx) { ((Bare *)ctx)->waits++; }

static Bare bare;
static umemLimit limit;

static void open_bare(void **state) {
  static struct umemVtbl const vtbl = {
      .alloc = bare_alloc, .free = bare_free, .synchronize = bare_synchronize};
  set_up(state);
  memset(&bare, 0, sizeof bare);
  umemVirtual_ctor(&bare.super, &bare.never);
  bare.super.vptr = &vtbl;
  bare.super.capabilities |= umemCpuReadable | umemCpuWritable;
  bare.super.alignment = 16;
  assert_ok(umemLimit_ctor(&limit, &bare, 1 << 30));
}
static void close_bare(void **state) {
  DESTRUCT(&limit, &bare);
  tear_down(state);
}

#define BARE_TEST(name) TEST_CASE_WITH(name, open_bare, close_bare)

enum { rows = 300, columns = 500 };

/* Numbers that know where they are. */
static umemArray *numbered(void *ctx) {
  umemArray *a = umemArray_create(ctx, umemFloat, SHAPE(rows, columns), NULL, &status);
  float *x = (float *)umemArray_address(a);
  for (int i = 0; i < rows * columns; i++) x[i] = (float)i;
  return a;
}

/* ---- elements are used where they are ---- */

static void convert_all(void *ctx) {
  umemArray *a = numbered(ctx), *turned = umemArray_permute(a, NULL, &status);
  umemArray *b = umemArray_create(ctx, umemDouble, SHAPE(columns, rows), NULL, &status);
  double const *y = (double const *)umemArray_address(b);
  umemArray_convert(b, turned, 0, 0, rows * columns, &status);
  assert_ok(status);
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < columns; j++) assert_true(y[j * rows + i] == i * columns + j);
  umemArray_convert(b, a, 1, 0, rows * columns - 1, &status); /* other shapes */
  assert_ok(status);
  for (int i = 1; i < rows * columns; i++) assert_true(y[i] == i - 1);
  RELEASE(a, turned, b);
}

static void draw_and_fill(void *ctx) {
  umemArray *a = umemArray_create(ctx, umemDouble, SHAPE(rows, columns), NULL, &status);
  umemArray *b = umemArray_create(&host, umemDouble, SHAPE(rows, columns), NULL, &status);
  double const *x = (double const *)umemArray_address(a), one = 1;
  umemArray_random_normal(a, 0, 1, 3, &status);
  umemArray_random_normal(b, 0, 1, 3, &status);
  assert_ok(status);
  assert_memory_equal(x, (double const *)umemArray_address(b), umemArray_nbytes(a));
  umemArray *part = umemArray_slice(a, 1, columns - 1, columns / 2, -2, &status);
  umemArray_fill(part, &one, &status);
  assert_ok(status);
  for (int i = 1; i < columns; i += 2) assert_true(x[i] == 1);
  assert_true(x[0] != 1);
  RELEASE(a, b, part);
}

BARE_TEST(pointers_are_used) {
  convert_all(&bare);
  draw_and_fill(&bare);
}

BARE_TEST(below_adaptors_too) {
  convert_all(&limit);
  draw_and_fill(&limit);
}

/* What is queued on a source, and on a destination, is waited for. */
BARE_TEST(queued_work_is_waited_for) {
  umemArray *a = numbered(&bare), *b = numbered(&host);
  umemArray *c = umemArray_create(&bare, umemDouble, SHAPE(rows, columns), NULL, &status);
  umemArray *d = umemArray_create(&host, umemDouble, SHAPE(rows, columns), NULL, &status);
  bare.super.capabilities |= umemDeviceShared;
  bare.waits = 0;
  umemArray_convert(d, a, 0, 0, rows * columns, &status);
  assert_ok(status);
  assert_int_not_equal(bare.waits, 0);
  bare.super.capabilities ^= umemDeviceShared | umemOrdered;
  bare.waits = 0;
  umemArray_convert(c, b, 0, 0, rows * columns, &status);
  assert_int_not_equal(bare.waits, 0);
  bare.waits = 0;
  umemArray_random_uniform(c, 0, 1, 1, &status);
  assert_int_not_equal(bare.waits, 0);
  bare.super.capabilities ^= umemOrdered;
  RELEASE(a, b, c, d);
}

/* The pages of managed memory would leave the GPU. */
BARE_TEST(shared_memory_is_not_written) {
  bare.super.capabilities |= umemDeviceShared;
  SCOPED(release_array) umemArray *a = umemArray_create(&bare, umemDouble, SHAPE(4), NULL, &status);
  umemArray_random_uniform(a, 0, 1, 1, &status);
  assert_int_not_equal(status, umemOK); /* there is no copy */
  forget_failure();
  umem_clear_status(&bare);
}

/* ---- adaptors that look at copies ---- */

BARE_TEST(what_is_checked_is_copied) {
  CONTEXT(umemDebug, debug, &host, NULL);
  double mine[4];
  float const one = 1;
  uintptr_t freed = umem_alloc(&debug, 4 * sizeof one);
  umem_free(&debug, freed);
  umemArray *a = umemArray_borrow(&debug, freed, umemFloat, SHAPE(4), NULL, &status);
  umemArray *b = umemArray_borrow(&host, (uintptr_t)mine, umemDouble, SHAPE(4), NULL, &status);
  assert_ok(status);
  umemArray_convert(b, a, 0, 0, 4, &status);
  assert_int_not_equal(status, umemOK);
  forget_failure();
  umemArray_convert(a, b, 0, 0, 4, &status);
  assert_int_not_equal(status, umemOK);
  forget_failure();
  umemArray_random_uniform(a, 0, 1, 1, &status);
  assert_int_not_equal(status, umemOK);
  forget_failure();
  umemArray_fill(a, &one, &status);
  assert_int_not_equal(status, umemOK);
  forget_failure();
  RELEASE(a, b);
  umem_clear_status(&debug);
}

/* ---- overlap: elements that are apart need no buffer ---- */

/* From one range of one block of floats to another, as int32, with the same strides. */
static void shift(int64_t dst, int64_t src, int64_t count) {
  umemArray *a = numbered(&bare);
  umemArray *b =
      umemArray_borrow(&bare, umemArray_address(a), umemInt, SHAPE(rows * columns), NULL, &status);
  umemArray_convert(b, a, dst, src, count, &status);
  int32_t const *x = (int32_t const *)umemArray_address(b);
  for (int64_t i = 0; i < count && status == umemOK; i++) assert_int_equal(x[dst + i], src + i);
  RELEASE(a, b);
}

BARE_TEST(ranges_that_are_apart_need_no_buffer) {
  enum { half = rows * columns / 2 };
  shift(half, 0, half);
  shift(0, half, half);
  shift(10, 9, 1);
  assert_ok(status);
  shift(half - 1, 0, half); /* one element is common: the buffer is not there */
  expect_failure(umemValueError, "");
}

/* dst and src: a part of the columns, all rows. */
static umemStatusType move_columns(int dst, int src, int count, int step) {
  umemArray *a = numbered(&bare);
  umemArray *ints =
      umemArray_borrow(&bare, umemArray_address(a), umemInt, SHAPE(rows, columns), NULL, &status);
  umemArray *from = umemArray_slice(a, 1, src, count, step, &status);
  umemArray *to = umemArray_slice(ints, 1, dst, count, step, &status);
  umemStatusType moved = umemOK;
  umemArray_convert(to, from, 0, 0, (int64_t)rows * count, &moved);
  FORGET(&bare);
  int32_t const *x = (int32_t const *)umemArray_address(ints);
  for (int i = 0; i < rows && moved == umemOK; i++)
    for (int j = 0; j < count; j++)
      assert_int_equal(x[i * columns + dst + j * step], i * columns + src + j * step);
  RELEASE(from, to, ints, a);
  return moved;
}

BARE_TEST(columns_that_take_turns_need_no_buffer) {
  assert_ok(move_columns(1, 0, columns / 2, 2));
  assert_ok(move_columns(0, 2, columns / 5, 5));
  assert_int_not_equal(move_columns(2, 0, columns / 2 - 1, 2), umemOK);
}
