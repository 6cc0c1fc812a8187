/* array_check.c - umem/array_check.h: what each check accepts, and what it says of the rest. */
#include "array_help.h"

#include <stdio.h>

static umemHost host;
static umemStatusType status;
static umemArray *a, *b;

static int set_up(void **state) {
  (void)state;
  umem_thread_clear();
  status = umemOK;
  if (umemHost_ctor(&host) != umemOK) return 1;
  a = umemArray_zeros(&host, umemDouble, SHAPE(3, 4), NULL, &status);
  b = umemArray_zeros(&host, umemFloat, SHAPE(4, 4), NULL, &status);
  return status != umemOK;
}
static int tear_down(void **state) {
  (void)state;
  umemArray_release(a);
  umemArray_release(b);
  if (!umem_is_ok(&host)) return 1; /* checks leave contexts alone */
  umem_dtor(&host);
  return status != umemOK || umem_thread_status() != umemOK;
}

/* That the check, which this file makes, fails so. */
#define REFUSES(type, rest, check)                                                                 \
  do {                                                                                             \
    assert_false(check);                                                                           \
    expect_failure(type, "array_check.c: " rest);                                                  \
  } while (0)

#define TEST(name) TEST_CASE_WITH(name, set_up, tear_down)

TEST(what_is_as_expected_passes) {
  int64_t const shape[] = {3, 4};
  umemArray *same = umemArray_alias(a, &status);
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
  umemArray_release(same);
}

TEST(what_is_not_is_reported_with_its_place) {
  int64_t const shape[] = {3, 5}, one[] = {7};
  umemArray *t = umemArray_permute(a, NULL, &status);
  umemArray_set_read_only(t, true, &status);
  REFUSES(umemNotSupportedError, "t is read-only", umemArray_check_writeable(t, &status));
  REFUSES(umemValueError, "t is not contiguous in C order",
          umemArray_check_c_contiguity(t, &status));
  REFUSES(umemNotSupportedError, "a is in the memory of Host, not in one that a GPU can use",
          umemArray_check_location(a, umemDeviceAccessible | umemReadable, &status));
  REFUSES(umemValueError, "a has 2 dimensions, expected 3", umemArray_check_rank(a, 3, &status));
  REFUSES(umemValueError, "a has 4 elements in dimension 1, expected 5",
          umemArray_check_extent(a, 1, 5, &status));
  REFUSES(umemIndexError, "a of rank 2 has no dimension 2",
          umemArray_check_extent(a, 2, 5, &status));
  REFUSES(umemIndexError, "a of rank 2 has no dimension -1",
          umemArray_check_extent(a, -1, 5, &status));
  REFUSES(umemValueError, "a has shape (3, 4), expected (3, 5)",
          umemArray_check_shape(a, 2, shape, &status));
  REFUSES(umemValueError, "a has shape (3, 4), expected (7,)",
          umemArray_check_shape(a, 1, one, &status));
  REFUSES(umemValueError, "a has shape (3, 4), expected ()",
          umemArray_check_shape(a, 0, NULL, &status));
  REFUSES(umemValueError, "a is checked against no shape: rank 2",
          umemArray_check_shape(a, 2, NULL, &status));
  REFUSES(umemValueError, "a is checked against no shape: rank -1",
          umemArray_check_shape(a, -1, shape, &status));
  REFUSES(umemTypeError, "a has elements of float64, expected float32",
          umemArray_check_type(a, umemFloat, &status));
  REFUSES(umemValueError, "a has shape (3, 4), expected (4, 4) as of b",
          umemArray_check_same_shape(a, b, &status));
  REFUSES(umemValueError, "a has shape (3, 4), expected (4, 3) as of t",
          umemArray_check_same_shape(a, t, &status));
  REFUSES(umemValueError, "a has 3 elements in dimension 0, expected 4 as dimension 1 of b",
          umemArray_check_same_extent(a, 0, b, 1, &status));
  REFUSES(umemIndexError, "b of rank 2 has no dimension 2",
          umemArray_check_same_extent(a, 0, b, 2, &status));
  REFUSES(umemTypeError, "a has elements of float64, expected float32 as of b",
          umemArray_check_same_type(a, b, &status));
  umemArray_release(t);
}

TEST(null_is_no_array) {
  umemArray *none = NULL;
  REFUSES(umemValueError, "none is NULL", umemArray_check_writeable(none, &status));
  REFUSES(umemValueError, "none is NULL", umemArray_check_c_contiguity(none, &status));
  REFUSES(umemValueError, "none is NULL", umemArray_check_location(none, umemCpuReadable, &status));
  REFUSES(umemValueError, "none is NULL", umemArray_check_rank(none, 3, &status));
  REFUSES(umemValueError, "none is NULL", umemArray_check_extent(none, 1, 5, &status));
  REFUSES(umemValueError, "none is NULL", umemArray_check_shape(none, 0, NULL, &status));
  REFUSES(umemValueError, "none is NULL", umemArray_check_type(none, umemFloat, &status));
  REFUSES(umemValueError, "none is NULL", umemArray_check_same_shape(a, none, &status));
  REFUSES(umemValueError, "none is NULL", umemArray_check_same_extent(a, 0, none, 1, &status));
  REFUSES(umemValueError, "none is NULL", umemArray_check_same_type(none, b, &status));
}

TEST(a_failure_names_function_file_and_line) {
  char expected[200];
  snprintf(expected, sizeof expected, "%s: line %d of %s: a has 2 dimensions", __func__,
           __LINE__ + 1, __FILE__);
  assert_false(umemArray_check_rank(a, 1 + 2, &status));
  expect_failure(umemValueError, expected);
}

/* The first failure stays. */
TEST(the_first_failure_counts) {
  assert_false(umemArray_check_rank(a, 1 + 2, &status));
  uint64_t failures = umem_thread_failures();
  assert_false(umemArray_check_type(a, umemInt, &status));
  assert_false(umemArray_check_rank(a, 2, &status)); /* true by itself */
  assert_int_equal(umem_thread_failures(), failures);
  expect_failure(umemValueError, "has 2 dimensions, expected 3");
}

/* Long names and shapes are cut, never written past the end. */
TEST(long_texts_are_cut) {
  int64_t shape[UMEM_MAX_RANK];
  char name[2000];
  for (int k = 0; k < UMEM_MAX_RANK; k++) shape[k] = k == 0 ? 0 : INT64_MAX;
  memset(name, 'x', sizeof name - 1);
  name[sizeof name - 1] = 0;
  umemArray *long_one = umemArray_create(&host, umemInt8, UMEM_MAX_RANK, shape, NULL, &status);
  assert_false(umemArray_check_same_shape(long_one, a, &status));
  expect_failure(umemValueError, "long_one has shape (0, 9223372036854775807, ");
  assert_false(umemArray_check_same_shape_at(a, b, &status, name, name, "f", "g", 1));
  expect_failure(umemValueError, "f: line 1 of g: xxx");
  umemArray_release(long_one);
}

int main(void) { return run_cases(NULL, NULL); }
