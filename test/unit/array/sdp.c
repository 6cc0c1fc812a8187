/* sdp.c - processing functions of an outside library, written for its memory interface, over
 * umemArray: a vector addition, a rotation of phases and a transform of strided, transposed
 * wrappers; and what that interface is known to get wrong. */
#include "sdp_mem.h"

#include "array_help.h"

#include <complex.h>
#include <math.h>

void *sdp_contexts[2];

static umemCuda gpu;

static void open_both(void **state) {
  set_up(state);
  assert_ok(umemCuda_ctor(&gpu, 0));
  sdp_contexts[SDP_MEM_CPU] = &host;
  sdp_contexts[SDP_MEM_GPU] = &gpu;
}
static void close_both(void **state) {
  umem_dtor(&gpu);
  tear_down(state);
}

#define SDP_TEST(name) TEST_CASE_WITH(name, open_both, close_both)

/* ---- the functions ---- */

/* out = a + b, for float and double, on the CPU, or by way of it for arrays of a GPU. */
static void sdp_vector_add(sdp_Mem const *a, sdp_Mem const *b, sdp_Mem *out, sdp_Error *error) {
  sdp_mem_check_writeable(out, error);
  sdp_mem_check_num_dims(a, 1, error);
  sdp_mem_check_same_shape(b, 0, a, 0, error);
  sdp_mem_check_same_shape(out, 0, a, 0, error);
  sdp_mem_check_type(b, sdp_mem_type(a), error);
  sdp_mem_check_type(out, sdp_mem_type(a), error);
  if (*error) return;
  if (sdp_mem_location(out) == SDP_MEM_GPU) {
    sdp_Mem *x = sdp_mem_create_copy(a, SDP_MEM_CPU, error);
    sdp_Mem *y = sdp_mem_create_copy(b, SDP_MEM_CPU, error);
    sdp_vector_add(x, y, x, error);
    sdp_mem_copy_contents(out, x, 0, 0, sdp_mem_num_elements(x), error);
    RELEASE(x, y);
    return;
  }
  sdp_mem_check_location(a, SDP_MEM_CPU, error);
  sdp_mem_check_location(b, SDP_MEM_CPU, error);
  if (*error) return;
  int64_t n = sdp_mem_num_elements(a), i = sdp_mem_stride_elements_dim(a, 0),
          j = sdp_mem_stride_elements_dim(b, 0), k = sdp_mem_stride_elements_dim(out, 0);
  if (sdp_mem_type(a) == SDP_MEM_FLOAT) {
    float const *x = sdp_mem_data_const(a), *y = sdp_mem_data_const(b);
    float *z = sdp_mem_data(out);
    for (int64_t l = 0; l < n; l++) z[l * k] = x[l * i] + y[l * j];
  } else {
    double const *x = sdp_mem_data_const(a), *y = sdp_mem_data_const(b);
    double *z = sdp_mem_data(out);
    for (int64_t l = 0; l < n; l++) z[l * k] = x[l * i] + y[l * j];
  }
}

/* Visibilities of shape (baselines, channels), each turned by the delay of its baseline, in
 * wavelengths per channel. */
static void sdp_phase_rotate(sdp_Mem const *delays, sdp_Mem const *frequencies, sdp_Mem const *in,
                             sdp_Mem *out, sdp_Error *error) {
  sdp_mem_check_writeable(out, error);
  sdp_mem_check_num_dims(in, 2, error);
  sdp_mem_check_same_shape(delays, 0, in, 0, error);
  sdp_mem_check_same_shape(frequencies, 0, in, 1, error);
  sdp_mem_check_same_shape(out, 0, in, 0, error);
  sdp_mem_check_same_shape(out, 1, in, 1, error);
  sdp_mem_check_type(in, SDP_MEM_COMPLEX_DOUBLE, error);
  sdp_mem_check_type(out, SDP_MEM_COMPLEX_DOUBLE, error);
  sdp_mem_check_location(in, SDP_MEM_CPU, error);
  sdp_mem_check_location(out, SDP_MEM_CPU, error);
  if (*error) return;
  double const *delay = sdp_mem_data_const(delays), *frequency = sdp_mem_data_const(frequencies);
  complex double const *x = sdp_mem_data_const(in);
  complex double *y = sdp_mem_data(out);
  for (int64_t b = 0; b < sdp_mem_shape_dim(in, 0); b++)
    for (int64_t c = 0; c < sdp_mem_shape_dim(in, 1); c++)
      y[b * sdp_mem_stride_elements_dim(out, 0) + c * sdp_mem_stride_elements_dim(out, 1)] =
          x[b * sdp_mem_stride_elements_dim(in, 0) + c * sdp_mem_stride_elements_dim(in, 1)] *
          cexp(2 * 3.14159265358979323846 * I * delay[b] * frequency[c]);
}

/* The discrete Fourier transform of each row. */
static void sdp_transform_rows(sdp_Mem const *in, sdp_Mem *out, sdp_Error *error) {
  sdp_mem_check_writeable(out, error);
  sdp_mem_check_num_dims(in, 2, error);
  sdp_mem_check_type(in, SDP_MEM_COMPLEX_DOUBLE, error);
  sdp_mem_check_type(out, SDP_MEM_COMPLEX_DOUBLE, error);
  sdp_mem_check_same_shape(out, 0, in, 0, error);
  sdp_mem_check_same_shape(out, 1, in, 1, error);
  if (*error) return;
  int64_t rows = sdp_mem_shape_dim(in, 0), n = sdp_mem_shape_dim(in, 1);
  complex double const *x = sdp_mem_data_const(in);
  complex double *y = sdp_mem_data(out);
  for (int64_t r = 0; r < rows; r++)
    for (int64_t k = 0; k < n; k++) {
      complex double sum = 0;
      for (int64_t j = 0; j < n; j++)
        sum += x[r * sdp_mem_stride_elements_dim(in, 0) + j * sdp_mem_stride_elements_dim(in, 1)] *
               cexp(-2 * 3.14159265358979323846 * I * (double)(j * k % n) / (double)n);
      y[r * sdp_mem_stride_elements_dim(out, 0) + k * sdp_mem_stride_elements_dim(out, 1)] = sum;
    }
}

/* ---- they work ---- */

SDP_TEST(vectors_are_added) {
  enum { n = 10 };
  int64_t const shape = n, stride = -(int64_t)sizeof(double);
  for (int location = SDP_MEM_CPU; location <= SDP_MEM_GPU; location++) {
    sdp_Mem *a = sdp_mem_create(SDP_MEM_DOUBLE, SDP_MEM_CPU, 1, &shape, &status);
    sdp_mem_random_fill(a, &status);
    double const *x = sdp_mem_data_const(a);
    sdp_Mem *back = sdp_mem_create_wrapper((double *)sdp_mem_data(a) + n - 1, SDP_MEM_DOUBLE,
                                           SDP_MEM_CPU, 1, &shape, &stride, &status);
    sdp_Mem *out = sdp_mem_create(SDP_MEM_DOUBLE, (sdp_MemLocation)location, 1, &shape, &status);
    sdp_vector_add(a, back, out, &status);
    sdp_Mem *sum = sdp_mem_create_copy(out, SDP_MEM_CPU, &status);
    double const *z = sdp_mem_data_const(sum);
    assert_ok(status);
    for (int i = 0; i < n; i++) assert_true(z[i] == x[i] + x[n - 1 - i]);
    RELEASE(a, back, out, sum);
  }
}

SDP_TEST(phases_are_rotated) {
  enum { baselines = 3, channels = 4 };
  double delay[baselines] = {0, 0.25, 0.5}, frequency[channels] = {0, 1, 2, 3};
  int64_t const b = baselines, c = channels, shape[] = {baselines, channels};
  sdp_Mem *delays =
      sdp_mem_create_wrapper(delay, SDP_MEM_DOUBLE, SDP_MEM_CPU, 1, &b, NULL, &status);
  sdp_Mem *frequencies =
      sdp_mem_create_wrapper(frequency, SDP_MEM_DOUBLE, SDP_MEM_CPU, 1, &c, NULL, &status);
  sdp_Mem *in = sdp_mem_create(SDP_MEM_COMPLEX_DOUBLE, SDP_MEM_CPU, 2, shape, &status);
  sdp_Mem *out = sdp_mem_create(SDP_MEM_COMPLEX_DOUBLE, SDP_MEM_CPU, 2, shape, &status);
  complex double const one = 1;
  umemArray_fill(in, &one, &status);
  sdp_phase_rotate(delays, frequencies, in, out, &status);
  assert_ok(status);
  complex double const *y = sdp_mem_data_const(out);
  complex double const turns[] = {1, I, -1, -I};
  for (int i = 0; i < baselines * channels; i++)
    assert_true(cabs(y[i] - turns[i / channels * (i % channels) % 4]) < 1e-12);
  sdp_phase_rotate(frequencies, delays, in, out, &status); /* the wrong way round */
  expect_failure(umemValueError,
                 "delays has 4 elements in dimension 0, expected 3 as dimension 0 of in");
  RELEASE(delays, frequencies, in, out);
}

/* The columns of an array are the rows of a transposed wrapper. */
SDP_TEST(transposed_wrappers_are_transformed) {
  enum { rows = 4, columns = 6, size = sizeof(complex double) };
  static complex double cells[rows][columns], result[columns][2 * rows];
  int64_t const shape[] = {columns, rows}, across[] = {size, columns * size},
                gaps[] = {2 * rows * size, 2 * size};
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < columns; j++) cells[i][j] = (i == 1) * (j + 1); /* a pulse in each column */
  sdp_Mem *in =
      sdp_mem_create_wrapper(cells, SDP_MEM_COMPLEX_DOUBLE, SDP_MEM_CPU, 2, shape, across, &status);
  sdp_Mem *out =
      sdp_mem_create_wrapper(result, SDP_MEM_COMPLEX_DOUBLE, SDP_MEM_CPU, 2, shape, gaps, &status);
  sdp_transform_rows(in, out, &status);
  assert_ok(status);
  complex double const turns[] = {1, -I, -1, I};
  for (int j = 0; j < columns; j++)
    for (int k = 0; k < 2 * rows; k++) {
      complex double expected = k % 2 ? 0 : (j + 1) * turns[k / 2];
      assert_true(cabs(result[j][k] - expected) < 1e-12);
    }
  sdp_Mem *copy = sdp_mem_create_copy(in, SDP_MEM_GPU, &status); /* a deep copy has the same rows */
  sdp_Mem *again = sdp_mem_create_copy(copy, SDP_MEM_CPU, &status);
  memset(result, 0, sizeof result);
  sdp_transform_rows(again, out, &status);
  assert_true(cabs(result[5][2] + 6 * I) < 1e-12);
  RELEASE(in, out, copy, again);
}

/* ---- what must not be ---- */

SDP_TEST(copies_stay_within_the_arrays) {
  int64_t const few = 4, many = 8;
  sdp_Mem *small = sdp_mem_create(SDP_MEM_INT, SDP_MEM_CPU, 1, &few, &status);
  sdp_Mem *large = sdp_mem_create(SDP_MEM_INT, SDP_MEM_CPU, 1, &many, &status);
  sdp_mem_clear_contents(small, &status);
  sdp_mem_clear_contents(large, &status);
  int64_t const wrong[][3] = {{0, 0, 5},         {1, 0, 4},         {0, 5, 4},
                              {-1, 0, 1},        {0, -1, 1},        {0, 0, -1},
                              {INT64_MAX, 0, 2}, {0, INT64_MAX, 2}, {1, 1, INT64_MAX}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    FAILS(sdp_mem_copy_contents(small, large, wrong[i][0], wrong[i][1], wrong[i][2], &status),
          umemIndexError, "outside of the");
  }
  sdp_mem_copy_contents(small, large, 3, 7, 1, &status);
  assert_ok(status);
  RELEASE(small, large);
}

SDP_TEST(deep_copies_keep_the_shape) {
  static int cells[3][4] = {{0, 1, 2, 3}, {10, 11, 12, 13}, {20, 21, 22, 23}};
  int64_t const shape[] = {2, 3}, stride[] = {2 * sizeof(int), 4 * sizeof(int)};
  sdp_Mem *view =
      sdp_mem_create_wrapper(&cells[0][1], SDP_MEM_INT, SDP_MEM_CPU, 2, shape, stride, &status);
  for (int location = SDP_MEM_CPU; location <= SDP_MEM_GPU; location++) {
    sdp_Mem *there = sdp_mem_create_copy(view, (sdp_MemLocation)location, &status);
    sdp_Mem *copy = sdp_mem_create_copy(there, SDP_MEM_CPU, &status);
    assert_ok(status);
    assert_int_equal(sdp_mem_num_dims(copy), 2);
    assert_int_equal(sdp_mem_shape_dim(copy, 0), 2);
    assert_int_equal(sdp_mem_shape_dim(copy, 1), 3);
    assert_memory_equal(sdp_mem_data_const(copy), ((int[]){1, 11, 21, 3, 13, 23}), 6 * sizeof(int));
    RELEASE(there, copy);
  }
  sdp_mem_clear_contents(view, &status); /* its elements, and not what lies between them */
  assert_memory_equal(cells, ((int[]){0, 0, 2, 0, 10, 0, 12, 0, 20, 0, 22, 0}), sizeof cells);
  sdp_mem_free(view);
}

SDP_TEST(failed_checks_stay_the_first) {
  int64_t const three = 3, four = 4;
  sdp_Mem *a = sdp_mem_create(SDP_MEM_INT, SDP_MEM_CPU, 1, &three, &status);
  sdp_Mem *b = sdp_mem_create(SDP_MEM_INT, SDP_MEM_CPU, 1, &four, &status);
  sdp_mem_check_type(a, SDP_MEM_FLOAT, &status);
  assert_int_equal(status, umemTypeError);
  sdp_mem_check_same_shape(a, 0, b, 0, &status);
  FAILS(sdp_mem_copy_contents(a, b, 0, 0, 3, &status), umemTypeError,
        "a has elements of int32, expected float32");
  RELEASE(a, b);
}

SDP_TEST(messages_name_the_right_array) {
  int64_t const three = 3, four = 4;
  sdp_Mem *mine = sdp_mem_create(SDP_MEM_INT, SDP_MEM_CPU, 1, &three, &status);
  sdp_Mem *yours = sdp_mem_create(SDP_MEM_INT, SDP_MEM_CPU, 1, &four, &status);
  FAILS(sdp_mem_check_same_shape(mine, 0, yours, 0, &status), umemValueError,
        "messages_name_the_right_array: line ");
  FAILS(sdp_mem_check_same_shape(mine, 0, yours, 0, &status), umemValueError,
        "mine has 3 elements in dimension 0, expected 4 as dimension 0 of yours");
  FAILS(sdp_mem_check_same_shape(mine, 0, yours, 1, &status), umemIndexError,
        "yours of rank 1 has no dimension 1");
  FAILS(sdp_mem_check_location(mine, SDP_MEM_GPU, &status), umemNotSupportedError,
        "mine is in the memory of Host, not in one that a GPU");
  RELEASE(mine, yours);
}

/* The result of a memset on the GPU. */
SDP_TEST(failed_sets_are_reported) {
  umemFault fault;
  umemFaultPlan plan = UMEM_FAULT_PLAN_INIT;
  plan.calls = umemFaultSet;
  plan.status = umemRuntimeError;
  plan.nth = 1;
  assert_ok(umemFault_ctor(&fault, &gpu, &plan));
  sdp_contexts[SDP_MEM_GPU] = &fault;
  int64_t const shape = 1000;
  sdp_Mem *a = sdp_mem_create(SDP_MEM_FLOAT, SDP_MEM_GPU, 1, &shape, &status);
  FAILS(sdp_mem_clear_contents(a, &status), umemRuntimeError, "");
  sdp_mem_free(a);
  umem_clear_status(&fault);
  umem_dtor(&fault);
  sdp_contexts[SDP_MEM_GPU] = &gpu;
}

/* An alias lives on after its source, and a handle until its last reference. */
SDP_TEST(handles_count_their_users) {
  int64_t const shape = 3;
  sdp_Mem *a = sdp_mem_create(SDP_MEM_INT, SDP_MEM_CPU, 1, &shape, &status);
  sdp_mem_clear_contents(a, &status);
  sdp_Mem *alias = sdp_mem_create_alias(a), *same = sdp_mem_ref_inc(a);
  assert_ptr_equal(same, a);
  assert_true(sdp_mem_is_matching(alias, a, 1));
  sdp_mem_ref_dec(a);
  sdp_mem_set_read_only(a, 1);
  assert_true(sdp_mem_is_read_only(a) && !sdp_mem_is_read_only(alias));
  sdp_mem_free(same);
  assert_int_equal(((int const *)sdp_mem_data_const(alias))[2], 0);
  sdp_mem_free(alias);
}
