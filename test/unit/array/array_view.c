/* array_view.c - umem/array.h: slices, selections, permutations and reshapes. */
#include "array_help.h"

static int32_t cells[2 * 3 * 4]; /* each holds its own number */
static umemArray *cube;          /* of shape (2, 3, 4) over them */

static void make_cube(void **state) {
  for (int i = 0; i < 24; i++) cells[i] = i;
  set_up(state);
  cube = umemArray_borrow(&host, (uintptr_t)cells, umemInt, SHAPE(2, 3, 4), NULL, &status);
  assert_true(cube);
}
static void release_cube(void **state) {
  umemArray_release(cube);
  tear_down(state);
}

/* That view has this shape and, in C order, these elements; releases it. */
static void expect_view_at(umemArray *view, int rank, int64_t const *shape, int32_t const *elements,
                           int line) {
  if (!view) fail_msg("line %d: %s", line, umem_thread_message());
  umemArray *copy = umemArray_copy(view, &host, umemOrderC, &status);
  bool right =
      umemArray_rank(view) == rank &&
      !memcmp(umemArray_shape(view), shape, (size_t)rank * sizeof *shape) &&
      !memcmp(umemArray_host_pointer(copy, false, &status), elements, umemArray_nbytes(view));
  if (!right) fail_msg("line %d: another view", line);
  RELEASE(copy, view);
}
#define EXPECT_VIEW(view, elements, ...)                                                           \
  expect_view_at(view, SHAPE(__VA_ARGS__), elements, __LINE__)
#define ELEMENTS(...)                                                                              \
  (int32_t[]) { __VA_ARGS__ }

#define VIEW_TEST(name) TEST_CASE_WITH(name, make_cube, release_cube)

VIEW_TEST(slices_take_every_step) {
  EXPECT_VIEW(umemArray_slice(cube, 2, 1, 2, 2, &status),
              ELEMENTS(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23), 2, 3, 2);
  EXPECT_VIEW(umemArray_slice(cube, 0, 1, 1, -7, &status),
              ELEMENTS(12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23), 1, 3, 4);
  umemArray *row = umemArray_select(cube, 0, 0, &status);
  umemArray *column = umemArray_select(row, 1, 3, &status);
  EXPECT_VIEW(umemArray_slice(column, 0, 2, 3, -1, &status), ELEMENTS(11, 7, 3), 3);
  umemArray *none = umemArray_slice(column, 0, 77, 0, 3, &status);
  assert_int_equal(umemArray_elements(none), 0);
  RELEASE(none, column, row);
}

VIEW_TEST(selections_lose_a_dimension) {
  EXPECT_VIEW(umemArray_select(cube, 1, 2, &status), ELEMENTS(8, 9, 10, 11, 20, 21, 22, 23), 2, 4);
  EXPECT_VIEW(umemArray_select(cube, 2, 0, &status), ELEMENTS(0, 4, 8, 12, 16, 20), 2, 3);
}

VIEW_TEST(permutations_reorder_dimensions) {
  int const axes[] = {2, 0, 1};
  EXPECT_VIEW(umemArray_permute(cube, axes, &status),
              ELEMENTS(0, 4, 8, 12, 16, 20, 1, 5, 9, 13, 17, 21, 2, 6, 10, 14, 18, 22, 3, 7, 11, 15,
                       19, 23),
              4, 2, 3);
  SCOPED(release_array) umemArray *face = umemArray_select(cube, 0, 1, &status);
  EXPECT_VIEW(umemArray_permute(face, NULL, &status),
              ELEMENTS(12, 16, 20, 13, 17, 21, 14, 18, 22, 15, 19, 23), 4, 3);
}

VIEW_TEST(shapes_change_where_strides_allow) {
  EXPECT_VIEW(umemArray_reshape(cube, SHAPE(6, 1, 4), &status), cells, 6, 1, 4);
  EXPECT_VIEW(umemArray_reshape(cube, SHAPE(24), &status), cells, 24);
  EXPECT_VIEW(umemArray_reshape(cube, SHAPE(1, 2, 2, 3, 2, 1), &status), cells, 1, 2, 2, 3, 2, 1);
  SCOPED(release_array) umemArray *half = umemArray_slice(cube, 2, 0, 2, 1, &status);
  EXPECT_VIEW(umemArray_reshape(half, SHAPE(6, 2), &status),
              ELEMENTS(0, 1, 4, 5, 8, 9, 12, 13, 16, 17, 20, 21), 6, 2);
  EXPECT_VIEW(umemArray_reshape(half, SHAPE(3, 2, 2, 1), &status),
              ELEMENTS(0, 1, 4, 5, 8, 9, 12, 13, 16, 17, 20, 21), 3, 2, 2, 1);
  REFUSES(umemArray_reshape(half, SHAPE(12), &status), umemValueError, "copy it first");
  REFUSES(umemArray_reshape(half, SHAPE(4, 3), &status), umemValueError, "copy it first");
  REFUSES(umemArray_reshape(half, SHAPE(13), &status), umemValueError,
          "12 elements cannot become 13");
}

/* A slice of no elements may become any shape of none. */
VIEW_TEST(nothing_has_any_shape) {
  umemArray *none = umemArray_slice(cube, 1, 0, 0, 1, &status);
  umemArray *other = umemArray_reshape(none, SHAPE(7, 0), &status);
  assert_int_equal(umemArray_rank(other), 2);
  RELEASE(other, none);
}

VIEW_TEST(what_is_not_there_is_refused) {
  struct {
    int dim;
    int64_t first, count, step;
    umemStatusType failure;
    char const *words;
  } const slices[] = {
      {3, 0, 1, 1, umemIndexError, "rank 3 has no dimension 3"},
      {-1, 0, 1, 1, umemIndexError, "no dimension -1"},
      {2, 4, 1, 1, umemIndexError, "element 4 is outside of dimension 2, which has 4"},
      {2, 4, 2, -1, umemIndexError, "element 4"},
      {2, -1, 1, 1, umemIndexError, "element -1"},
      {2, 0, 5, 1, umemIndexError, "element 4"},
      {2, 3, 3, -2, umemIndexError, "element -1"},
      {2, 1, INT64_MAX, INT64_MAX, umemIndexError, "outside of dimension 2"},
      {2, 0, -1, 1, umemValueError, "count -1, step 1"},
      {2, 0, 1, 0, umemValueError, "step 0"},
  };
  for (size_t i = 0; i < sizeof slices / sizeof *slices; i++) {
    assert_null(umemArray_slice(cube, slices[i].dim, slices[i].first, slices[i].count,
                                slices[i].step, &status));
    expect_failure(slices[i].failure, slices[i].words);
  }
  REFUSES(umemArray_select(cube, 1, 3, &status), umemIndexError,
          "element 3 is outside of dimension 1, which has 3");
  REFUSES(umemArray_select(cube, 3, 0, &status), umemIndexError, "no dimension 3");
  int const wrong[][3] = {{0, 1, 1}, {0, 1, 3}, {0, -1, 1}};
  for (int i = 0; i < 3; i++)
    REFUSES(umemArray_permute(cube, wrong[i], &status), umemValueError,
            "no permutation of 0 ... 2");
  REFUSES(umemArray_alias(NULL, &status), umemValueError, "umemArray_alias: the array is NULL");
}

/* The order in memory of a copy. */
VIEW_TEST(copies_keep_the_order) {
  int const axes[] = {2, 0, 1};
  umemArray *view = umemArray_permute(cube, axes, &status); /* (4, 2, 3) */
  umemArray *reversed = umemArray_slice(view, 1, 1, 2, -1, &status);
  umemArray *keep = umemArray_copy(reversed, &host, umemOrderKeep, &status);
  umemArray *c = umemArray_copy(reversed, &host, umemOrderC, &status);
  assert_memory_equal(umemArray_strides(keep), ((int64_t[]){4, 48, 16}), 24);
  assert_memory_equal(umemArray_strides(c), ((int64_t[]){24, 12, 4}), 24);
  int32_t const *in_order = umemArray_host_pointer(keep, false, &status);
  for (int i = 0; i < 24; i++) assert_int_equal(in_order[i], (i + 12) % 24);
  RELEASE(c, keep, reversed, view);
}

/* Shapes and strides whose products do not fit, where no element is: nothing of them is computed
 * (UBSan looks). */
VIEW_TEST(extremes_of_nothing_are_views) {
  int64_t const wide[] = {INT64_C(1) << 40, INT64_C(1) << 40, 0}, none[] = {0, 0, 0};
  int64_t const flat[] = {0, 10}, far[] = {8, INT64_MAX};
  umemArray *array = umemArray_borrow(&host, 0, umemDouble, 3, wide, none, &status);
  umemArray *part = umemArray_slice(array, 0, 5, 1000, 3, &status);
  assert_int_equal(umemArray_elements(part), 0);
  umemArray_release(part);
  umemArray_random_uniform(array, 0, 1, 7, &status);
  umemArray_release(array);
  array = umemArray_borrow(&host, 0, umemDouble, 2, flat, far, &status);
  part = umemArray_slice(array, 1, 3, 3, 2, &status);
  assert_int_equal(umemArray_extent(part, 1), 3);
  RELEASE(part, array);
  assert_ok(status);

  double numbers[4] = {1, 2, 3, 4};
  int64_t const square[] = {2, 2}, apart[] = {8, INT64_C(1) << 62};
  array = umemArray_borrow(&host, (uintptr_t)numbers, umemDouble, 2, square, apart, &status);
  REFUSES(umemArray_reshape(array, SHAPE(4), &status), umemValueError, "");
  umemArray_release(array);
  int64_t const line[] = {1, 2}, first[] = {INT64_MIN, 8};
  array = umemArray_borrow(&host, (uintptr_t)numbers, umemDouble, 2, line, first, &status);
  umemArray *copy = umemArray_copy(array, &host, umemOrderKeep, &status);
  assert_ok(status);
  RELEASE(copy, array);
}
