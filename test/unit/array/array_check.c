/* array_check.c - umem/array_check.h: what each check accepts, and what it says of the rest. */
#include "array_help.h"

static umemArray *a, *b;

static void make_both(void **state) {
  set_up(state);
  a = umemArray_zeros(&host, umemDouble, SHAPE(3, 4), NULL, &status);
  b = umemArray_zeros(&host, umemFloat, SHAPE(4, 4), NULL, &status);
  assert_int_equal(status, umemOK);
}
static void release_both(void **state) {
  RELEASE(a, b);
  tear_down(state);
}

/* That the check, which this file makes, fails so. */
#define FINDS(type, rest, check) REFUSES(check, type, "array_check.c: " rest)

#define CHECK_TEST(name) TEST_CASE_WITH(name, make_both, release_both)

CHECK_TEST(what_is_as_expected_passes) {
  int64_t const shape[] = {3, 4};
  SCOPED(release_array) umemArray *same = umemArray_alias(a, &status);
  assert_true(umemArray_check_writeable(a, &status));
  assert_true(umemArray_check_c_contiguity(a, &status));
  assert_true(umemArray_check_location(a, umemCpuReadable | umemCpuWritable, &status));
  assert_true(umemArray_check_rank(a, 2, &status));
  assert_true(umemArray_check_extent(a, 1, 4, &status));
  assert_true(umemArray_check_shape(a, 2, shape, &status));
  assert_true(umemArray_check_type(a, umemDouble, &status));
  assert_true(umemArray_check_same_shape(a, same, &status));
  assert_true(umemArray_check_same_extent(a, 1, b, 0, &status));
  assert_true(umemArray_check_same_type(a, same, &status));
  assert_true(umemArray_check_writeable(a, NULL));
}

CHECK_TEST(what_is_not_is_reported_with_its_place) {
  int64_t const shape[] = {3, 5}, one[] = {7};
  SCOPED(release_array) umemArray *t = umemArray_permute(a, NULL, &status);
  umemArray_set_read_only(t, true, &status);
  FINDS(umemNotSupportedError, "t is read-only", umemArray_check_writeable(t, &status));
  FINDS(umemValueError, "t is not contiguous in C order", umemArray_check_c_contiguity(t, &status));
  FINDS(umemNotSupportedError, "a is in the memory of Host, not in one that a GPU can use",
        umemArray_check_location(a, umemDeviceAccessible | umemReadable, &status));
  FINDS(umemValueError, "a has 2 dimensions, expected 3", umemArray_check_rank(a, 3, &status));
  FINDS(umemValueError, "a has 4 elements in dimension 1, expected 5",
        umemArray_check_extent(a, 1, 5, &status));
  FINDS(umemIndexError, "a of rank 2 has no dimension 2", umemArray_check_extent(a, 2, 5, &status));
  FINDS(umemIndexError, "a of rank 2 has no dimension -1",
        umemArray_check_extent(a, -1, 5, &status));
  FINDS(umemValueError, "a has shape (3, 4), expected (3, 5)",
        umemArray_check_shape(a, 2, shape, &status));
  FINDS(umemValueError, "a has shape (3, 4), expected (7,)",
        umemArray_check_shape(a, 1, one, &status));
  FINDS(umemValueError, "a has shape (3, 4), expected ()",
        umemArray_check_shape(a, 0, NULL, &status));
  FINDS(umemValueError, "a is checked against no shape: rank 2",
        umemArray_check_shape(a, 2, NULL, &status));
  FINDS(umemValueError, "a is checked against no shape: rank -1",
        umemArray_check_shape(a, -1, shape, &status));
  FINDS(umemTypeError, "a has elements of float64, expected float32",
        umemArray_check_type(a, umemFloat, &status));
  FINDS(umemValueError, "a has shape (3, 4), expected (4, 4) as of b",
        umemArray_check_same_shape(a, b, &status));
  FINDS(umemValueError, "a has shape (3, 4), expected (4, 3) as of t",
        umemArray_check_same_shape(a, t, &status));
  FINDS(umemValueError, "a has 3 elements in dimension 0, expected 4 as dimension 1 of b",
        umemArray_check_same_extent(a, 0, b, 1, &status));
  FINDS(umemIndexError, "b of rank 2 has no dimension 2",
        umemArray_check_same_extent(a, 0, b, 2, &status));
  FINDS(umemTypeError, "a has elements of float64, expected float32 as of b",
        umemArray_check_same_type(a, b, &status));
}

CHECK_TEST(null_is_no_array) {
  umemArray *none = NULL;
  FINDS(umemValueError, "none is NULL", umemArray_check_writeable(none, &status));
  FINDS(umemValueError, "none is NULL", umemArray_check_c_contiguity(none, &status));
  FINDS(umemValueError, "none is NULL", umemArray_check_location(none, umemCpuReadable, &status));
  FINDS(umemValueError, "none is NULL", umemArray_check_rank(none, 3, &status));
  FINDS(umemValueError, "none is NULL", umemArray_check_extent(none, 1, 5, &status));
  FINDS(umemValueError, "none is NULL", umemArray_check_shape(none, 0, NULL, &status));
  FINDS(umemValueError, "none is NULL", umemArray_check_type(none, umemFloat, &status));
  FINDS(umemValueError, "none is NULL", umemArray_check_same_shape(a, none, &status));
  FINDS(umemValueError, "none is NULL", umemArray_check_same_extent(a, 0, none, 1, &status));
  FINDS(umemValueError, "none is NULL", umemArray_check_same_type(none, b, &status));
}

CHECK_TEST(a_failure_names_function_file_and_line) {
  char expected[200];
  snprintf(expected, sizeof expected, "%s: line %d of %s: a has 2 dimensions", __func__,
           __LINE__ + 1, __FILE__);
  REFUSES(umemArray_check_rank(a, 1 + 2, &status), umemValueError, expected);
}

/* The first failure stays. */
CHECK_TEST(the_first_failure_counts) {
  assert_false(umemArray_check_rank(a, 1 + 2, &status));
  uint64_t failures = umem_thread_failures();
  assert_false(umemArray_check_type(a, umemInt, &status));
  assert_false(umemArray_check_rank(a, 2, &status)); /* true by itself */
  assert_int_equal(umem_thread_failures(), failures);
  expect_failure(umemValueError, "has 2 dimensions, expected 3");
}

/* Long names and shapes are cut, never written past the end. */
CHECK_TEST(long_texts_are_cut) {
  int64_t shape[UMEM_MAX_RANK];
  char name[2000];
  for (int k = 0; k < UMEM_MAX_RANK; k++) shape[k] = k == 0 ? 0 : INT64_MAX;
  memset(name, 'x', sizeof name - 1);
  name[sizeof name - 1] = 0;
  SCOPED(release_array)
  umemArray *long_one = umemArray_create(&host, umemInt8, UMEM_MAX_RANK, shape, NULL, &status);
  REFUSES(umemArray_check_same_shape(long_one, a, &status), umemValueError,
          "long_one has shape (0, 9223372036854775807, ");
  REFUSES(umemArray_check_same_shape_at(a, b, &status, name, name, "f", "g", 1), umemValueError,
          "f: line 1 of g: xxx");
}
