/* array_life.c - umem/array.h: how arrays are made, whose memory they have, and when it goes. */
#include "array_help.h"
#include "returns_null.h"

static umemStats stats; /* over host, of some tests */

static void open_stats(void **state) {
  set_up(state);
  assert_ok(umemStats_ctor(&stats, &host));
}

static void close_stats(void **state) {
  umem_dtor(&stats);
  tear_down(state);
}

#define STATS_TEST(name) TEST_CASE_WITH(name, open_stats, close_stats)

static umemStatsFigures figures(void) {
  umemStatsFigures found = UMEM_STATS_FIGURES_INIT;
  assert_ok(umemStats_get(&stats, &found));
  return found;
}

/* ---- made ---- */

TEST(an_array_knows_what_it_is) {
  SCOPED(release_array)
  umemArray *a = umemArray_create(&host, umemDouble, SHAPE(3, 4, 5), NULL, &status);
  assert_non_null(a);
  assert_ptr_equal(umemArray_context(a), &host);
  assert_true(umemArray_type(a) == umemFloat64);
  assert_int_equal(umemArray_rank(a), 3);
  assert_memory_equal(umemArray_shape(a), ((int64_t[]){3, 4, 5}), 24);
  assert_memory_equal(umemArray_strides(a), ((int64_t[]){160, 40, 8}), 24);
  assert_int_equal(umemArray_extent(a, 1), 4);
  assert_int_equal(umemArray_stride(a, 1), 40);
  assert_int_equal(umemArray_extent(a, 3), 0);
  assert_int_equal(umemArray_stride(a, -1), 0);
  assert_int_equal(umemArray_elements(a), 60);
  assert_int_equal(umemArray_nbytes(a), 480);
  assert_int_equal(umemArray_address(a) % 64, 0);
  assert_true(umemArray_is_c_contiguous(a));
  assert_true(umemArray_is_floating_point(a));
  assert_true(umemArray_is_double(a));
  assert_false(umemArray_is_complex(a) || umemArray_is_read_only(a));
}

TEST(nothing_is_an_answer_for_null) {
  assert_null(umemArray_context(NULL));
  assert_null(umemArray_shape(NULL));
  assert_null(umemArray_strides(NULL));
  assert_null(umemArray_retain(NULL));
  assert_true(!umemArray_address(NULL) && !umemArray_type(NULL) && !umemArray_rank(NULL));
  assert_true(!umemArray_elements(NULL) && !umemArray_nbytes(NULL) && !umemArray_extent(NULL, 0));
  assert_false(umemArray_is_c_contiguous(NULL) || umemArray_is_floating_point(NULL) ||
               umemArray_is_complex(NULL) || umemArray_is_complex4(NULL) ||
               umemArray_is_double(NULL) || umemArray_is_read_only(NULL) ||
               umemArray_is_same_type(NULL, NULL) || umemArray_is_same_shape(NULL, NULL) ||
               umemArray_is_same_place(NULL, NULL) || umemArray_is_matching(NULL, NULL, false));
  umemArray_release(NULL);
}

TEST(rank_0_is_one_element) {
  double value = 2.5;
  SCOPED(release_array)
  umemArray *a = umemArray_full(&host, umemDouble, 0, NULL, NULL, &value, &status);
  assert_int_equal(umemArray_elements(a), 1);
  assert_int_equal(umemArray_nbytes(a), 8);
  assert_true(*(double *)umemArray_host_pointer(a, false, &status) == 2.5);
}

STATS_TEST(no_elements_have_no_memory) {
  umemArray *a = umemArray_zeros(&stats, umemInt32, SHAPE(3, 0, INT64_MAX), NULL, &status);
  assert_int_equal(umemArray_elements(a), 0);
  assert_true(umemArray_is_c_contiguous(a));
  assert_int_equal(figures().total_count, 0);
  umemArray_clear(a, &status);
  umemArray_fill(a, &status, &status);
  assert_null(umemArray_host_pointer(a, true, &status));
  umemArray *copy = umemArray_copy(a, &stats, umemOrderKeep, &status);
  umemArray_assign(copy, a, &status);
  umemArray_copy_contents(copy, a, 0, 0, 0, &status);
  umemArray *flat = umemArray_reshape(a, SHAPE(0), &status);
  umemArray *part = umemArray_slice(a, 0, 1, 2, 1, &status);
  assert_int_equal(umemArray_extent(part, 0), 2);
  assert_ok(status);
  RELEASE(part, flat, copy, a);
}

/* The memory of a Fortran array, and of one that runs backwards, is that which the strides span. */
TEST(strides_are_taken_as_they_are) {
  umemArray *f = umemArray_zeros(&host, umemFloat, SHAPE(3, 4), (int64_t[]){4, 12}, &status);
  umemArray *r = umemArray_zeros(&host, umemFloat, SHAPE(3, 4), (int64_t[]){-32, -4}, &status);
  assert_false(umemArray_is_c_contiguous(f) || umemArray_is_c_contiguous(r));
  assert_int_equal((umemArray_address(r) - 2 * 32 - 3 * 4) % 64, 0);
  float *first = umemArray_host_pointer(r, true, &status);
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 4; j++) assert_true(first[-8 * i - j] == 0);
  RELEASE(r, f);

  umemArray *one =
      umemArray_zeros(&host, umemFloat, SHAPE(1, 4, 1), (int64_t[]){99, 4, -7}, &status);
  assert_true(umemArray_is_c_contiguous(one)); /* dimensions of one element have no order */
  umemArray_release(one);
}

TEST(bad_arrays_are_refused) {
  int64_t const huge = (int64_t)1 << 62;
  struct {
    void *ctx;
    umemElementType type;
    int rank;
    int64_t const *shape, *strides;
    umemStatusType failure;
    char const *words;
  } const rows[] = {
      {NULL, umemInt8, SHAPE(1), NULL, umemValueError, ""},
      {&host, 0, SHAPE(1), NULL, umemTypeError, "no type of elements"},
      {&host, umemInt8, -1, NULL, NULL, umemValueError, "rank -1 is not in 0 ... 32"},
      {&host, umemInt8, 33, (int64_t[33]){0}, NULL, umemValueError, "rank 33"},
      {&host, umemInt8, 2, NULL, NULL, umemValueError, "no shape"},
      {&host, umemInt8, SHAPE(2, -3), NULL, umemValueError, "extent -3 of dimension 1"},
      {&host, umemInt16, SHAPE(huge, 2), NULL, umemValueError, "address space"},
      {&host, umemInt16, SHAPE(huge, 1), NULL, umemValueError, "address space"},
      {&host, umemInt8, SHAPE(3), (int64_t[]){INT64_MAX}, umemValueError, "address space"},
      {&host, umemInt8, SHAPE(2, 2), (int64_t[]){INT64_MIN, INT64_MIN}, umemValueError, "address"},
      {&host, umemInt8, SHAPE(huge), NULL, umemMemoryError, ""},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assert_null(umemArray_create(rows[i].ctx, rows[i].type, rows[i].rank, rows[i].shape,
                                 rows[i].strides, &status));
    expect_failure(rows[i].failure, rows[i].words);
  }
  REFUSES(umemArray_full(&host, umemInt8, SHAPE(3), NULL, NULL, &status), umemValueError,
          "value is NULL");
}

/* ---- the status ---- */

TEST(after_a_failure_nothing_happens) {
  int32_t seven = 7;
  SCOPED(release_array)
  umemArray *a = umemArray_full(&host, umemInt, SHAPE(2), NULL, &seven, &status);
  int32_t *first = umemArray_host_pointer(a, true, &status);
  status = umemIOError;
  uint64_t before = umem_thread_failures();
  umemArray_clear(a, &status);
  umemArray_fill(a, &before, &status);
  umemArray_set_read_only(a, true, &status);
  assert_null(umemArray_create(&host, umemInt, SHAPE(1), NULL, &status));
  assert_null(umemArray_zeros(&host, umemInt, SHAPE(1), NULL, &status));
  assert_null(umemArray_full(&host, umemInt, SHAPE(1), NULL, &seven, &status));
  assert_null(umemArray_borrow(&host, 64, umemInt, SHAPE(1), NULL, &status));
  assert_null(umemArray_take(&host, 64, umemInt, SHAPE(1), NULL, NULL, NULL, &status));
  assert_null(umemArray_copy(a, &host, umemOrderC, &status));
  assert_null(umemArray_alias(a, &status));
  assert_null(umemArray_slice(a, 0, 0, 1, 1, &status));
  assert_null(umemArray_select(a, 0, 0, &status));
  assert_null(umemArray_permute(a, NULL, &status));
  assert_null(umemArray_reshape(a, SHAPE(2), &status));
  assert_null(umemArray_host_pointer(a, false, &status));
  assert_null(umemArray_device_pointer(a, false, &status));
  umemArray_assign(a, a, &status);
  umemArray_copy_contents(a, a, 9, 9, 9, &status);
  umemArray_copy_contents_on(&host, a, a, 9, 9, 9, &status);
  assert_int_equal(umem_thread_failures(), before);
  assert_int_equal(status, umemIOError);
  assert_true(first[0] == 7 && first[1] == 7 && !umemArray_is_read_only(a));
  status = umemOK;
}

TEST(a_call_without_status_is_on_its_own) {
  assert_null(umemArray_alias(NULL, NULL));
  assert_int_equal(umem_thread_status(), umemValueError);
  umem_thread_clear();
  SCOPED(release_array) umemArray *a = umemArray_zeros(&host, umemInt, SHAPE(2), NULL, NULL);
  umemArray_clear(a, NULL);
}

/* ---- whose memory it is ---- */

STATS_TEST(memory_goes_with_the_last_array) {
  umemArray *a = umemArray_zeros(&stats, umemInt, SHAPE(4, 4), NULL, &status);
  umemArray *row = umemArray_select(a, 0, 1, &status);
  umemArray *cell = umemArray_select(row, 0, 2, &status);
  assert_ptr_equal(umemArray_retain(a), a);
  RELEASE(a, row, a);
  assert_int_equal(figures().current_count, 1);
  assert_true(*(int *)umemArray_host_pointer(cell, true, &status) == 0);
  umemArray_release(cell);
  assert_int_equal(figures().current_count, 0);
}

TEST(borrowed_memory_stays) {
  int32_t values[] = {1, 2, 3, 4, 5, 6};
  umemArray *a =
      umemArray_borrow(&host, (uintptr_t)&values[5], umemInt, SHAPE(3), (int64_t[]){-8}, &status);
  int32_t *first = umemArray_host_pointer(a, true, &status);
  assert_true(first[0] == 6 && first[-2] == 4 && first[-4] == 2);
  umemArray_clear(a, &status);
  umemArray_release(a);
  assert_memory_equal(values, ((int32_t[]){1, 0, 3, 0, 5, 0}), sizeof values);
}

static int released;
static void count_release(void *user) {
  assert_ptr_equal(user, &released);
  released++;
  umem_set_status(NULL, umemRuntimeError, "its failures are its own");
}

STATS_TEST(memory_is_taken_over) {
  int32_t values[2] = {1, 2};
  released = 0;
  umemArray *a = umemArray_take(&host, (uintptr_t)values, umemInt, SHAPE(2), NULL, count_release,
                                &released, &status);
  umemArray *b = umemArray_alias(a, &status);
  umemArray_release(a);
  assert_int_equal(released, 0);
  umemArray_release(b);
  assert_int_equal(released, 1);
  REFUSES(umemArray_take(&host, 0, umemInt, SHAPE(2), NULL, count_release, &released, &status),
          umemValueError, "no elements can be at address 0x0 of Host");
  assert_int_equal(released, 1);

  uintptr_t adr = umem_alloc(&stats, 8);
  umemArray_release(umemArray_take(&stats, adr, umemInt, SHAPE(2), NULL, NULL, NULL, &status));
  assert_int_equal(figures().current_count, 0);
}

TEST(foreign_addresses_are_checked) {
  REFUSES(umemArray_borrow(&host, 0, umemInt, SHAPE(1), NULL, &status), umemValueError, "0x0");
  REFUSES(umemArray_borrow(&host, 64, umemInt, SHAPE(100), (int64_t[]){-4}, &status),
          umemValueError, "0x40");
  REFUSES(umemArray_borrow(&host, UINTPTR_MAX - 8, umemInt, SHAPE(3), NULL, &status),
          umemValueError, "no elements");
  SCOPED(release_array)
  umemArray *none = umemArray_borrow(&host, 0, umemInt, SHAPE(0), NULL, &status);
  assert_non_null(none);
}

/* ---- read-only ---- */

TEST(read_only_arrays_are_not_written) {
  int32_t values[4] = {1, 2, 3, 4};
  umemArray *a = umemArray_borrow(&host, (uintptr_t)values, umemInt, SHAPE(4), NULL, &status);
  umemArray *b = umemArray_alias(a, &status);
  umemArray_set_read_only(a, true, &status);
  umemArray *view = umemArray_slice(a, 0, 0, 2, 1, &status);
  assert_true(umemArray_is_read_only(a) && umemArray_is_read_only(view));
  assert_false(umemArray_is_read_only(b));
  FAILS(umemArray_clear(view, &status), umemNotSupportedError, "read-only");
  FAILS(umemArray_fill(view, values, &status), umemNotSupportedError, "read-only");
  FAILS(umemArray_assign(a, b, &status), umemNotSupportedError,
        "umemArray_assign: the destination array is read-only");
  umemArray_set_read_only(a, false, &status);
  FAILS(umemArray_assign(a, view, &status), umemValueError,
        "the source has shape (2,), the destination (4,)");
  umemArray_set_read_only(a, true, &status);
  FAILS(umemArray_assign(a, NULL, &status), umemValueError, "the source array is NULL");
  FAILS(umemArray_assign(NULL, a, &status), umemValueError, "the destination array is NULL");
  FAILS(umemArray_copy_contents(a, b, 0, 0, 1, &status), umemNotSupportedError,
        "the destination array is read-only");
  REFUSES(umemArray_host_pointer(a, true, &status), umemNotSupportedError, "read-only");
  assert_ptr_equal(umemArray_host_pointer(a, false, &status), values);
  FAILS(umemArray_set_read_only(view, false, &status), umemNotSupportedError, "stays read-only");
  umemArray_set_read_only(a, false, &status);
  umemArray_clear(a, &status);
  assert_true(values[3] == 0);
  RELEASE(view, b, a);
}

/* ---- pointers ---- */

TEST(no_gpu_uses_plain_memory) {
  SCOPED(release_array) umemArray *a = umemArray_zeros(&host, umemInt, SHAPE(4), NULL, &status);
  REFUSES(umemArray_device_pointer(a, false, &status), umemNotSupportedError,
          "a GPU cannot read the memory of Host");
}

/* ---- questions ---- */

TEST(complex4_is_four_complex_numbers) {
  struct {
    umemElementType type;
    int rank;
    int64_t shape[3];
    bool is;
  } const rows[] = {
      {umemComplexDouble, 1, {4}, true},
      {umemComplexFloat, 2, {9, 4}, true},
      {umemComplexFloat, 3, {9, 2, 2}, true},
      {umemComplexFloat, 2, {2, 2}, true},
      {umemComplexFloat, 1, {2}, false},
      {umemComplexFloat, 2, {4, 2}, false},
      {umemDouble, 1, {4}, false},
      {umemComplexDouble, 0, {0}, false},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    umemArray *a =
        umemArray_create(&host, rows[i].type, rows[i].rank, rows[i].shape, NULL, &status);
    assert_int_equal(umemArray_is_complex4(a), rows[i].is);
    umemArray_release(a);
  }
}

TEST(arrays_are_compared) {
  CONTEXT(umemHost, second);
  umemArray *a = umemArray_create(&host, umemInt, SHAPE(3, 4), NULL, &status);
  umemArray *same = umemArray_create(&second, umemInt, SHAPE(3, 4), NULL, &status);
  umemArray *other_type = umemArray_create(&host, umemFloat, SHAPE(3, 4), NULL, &status);
  umemArray *other_shape = umemArray_create(&host, umemInt, SHAPE(4, 3), NULL, &status);
  umemArray *other_order =
      umemArray_create(&host, umemInt, SHAPE(3, 4), (int64_t[]){4, 12}, &status);
  umemArray *other_rank = umemArray_create(&host, umemInt, SHAPE(3), NULL, &status);
  assert_true(umemArray_is_matching(a, same, true));
  assert_false(umemArray_is_same_type(a, other_type));
  assert_true(umemArray_is_same_shape(a, other_type));
  assert_false(umemArray_is_matching(a, other_type, false));
  assert_false(umemArray_is_same_shape(a, other_shape));
  assert_false(umemArray_is_same_shape(a, other_rank));
  assert_true(umemArray_is_same_shape(a, other_order));
  assert_false(umemArray_is_matching(a, other_order, false));
  umemArray *row = umemArray_create(&host, umemInt, SHAPE(1, 4), NULL, &status);
  umemArray *other_row =
      umemArray_create(&host, umemInt, SHAPE(1, 4), (int64_t[]){-64, 4}, &status);
  umemArray *none = umemArray_create(&host, umemInt, SHAPE(0, 4), NULL, &status);
  umemArray *other_none = umemArray_create(&host, umemInt, SHAPE(0, 4), (int64_t[]){7, 7}, &status);
  assert_true(umemArray_is_matching(row, other_row, true)); /* such strides lead nowhere */
  assert_true(umemArray_is_matching(none, other_none, true));
  RELEASE(a, same, other_type, other_shape, other_order, other_rank, row, other_row, none,
          other_none);
}
