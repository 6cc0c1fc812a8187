/* array_ended.c - arrays whose context has ended before them: calls say so, and touch nothing. */
#include "array_help.h"

enum { length = 2000 };

static umemHost other;
static umemPool pool;
static umemFile file;
static umemArray *rest; /* of a context that lives */

/* An array on the context number `which`, which has ended. Memory of a umemHost stays: it is the
 * test's. */
static umemArray *ended_array(int which) {
  static double memory[length];
  void *const contexts[] = {&pool, &file};
  assert_ok(umemHost_ctor(&other));
  assert_ok(umemPool_ctor(&pool, &host, NULL));
  assert_ok(umemFile_ctor(&file, NULL, "w+"));
  umemArray *array =
      which == 2
          ? umemArray_borrow(&other, (uintptr_t)memory, umemDouble, SHAPE(length), NULL, &status)
          : umemArray_zeros(contexts[which], umemDouble, SHAPE(length), NULL, &status);
  assert_ok(status);
  DESTRUCT(&file, &pool, &other);
  return array;
}

static void make_rest(void **state) {
  set_up(state);
  rest = umemArray_zeros(&host, umemFloat, SHAPE(length), NULL, &status);
  assert_true(rest);
}

static void release_rest(void **state) {
  umemArray_release(rest);
  tear_down(state);
}

static double const one = 1;

static void fills(umemArray *a) { umemArray_fill(a, &one, &status); }
static void clears(umemArray *a) { umemArray_clear(a, &status); }
static void draws(umemArray *a) { umemArray_random_uniform(a, 0, 1, 1, &status); }
static void draws_normal(umemArray *a) { umemArray_random_normal(a, 0, 1, 1, &status); }
static void converts_to(umemArray *a) { umemArray_convert(a, rest, 0, 0, length / 2, &status); }
static void converts_from(umemArray *a) { umemArray_convert(rest, a, 0, 0, length / 2, &status); }
static void assigns(umemArray *a) { umemArray_assign(a, a, &status); }
static void copies(umemArray *a) { assert_null(umemArray_copy(a, &host, umemOrderC, &status)); }
static void points(umemArray *a) { assert_null(umemArray_host_pointer(a, true, &status)); }
static void points_for_a_gpu(umemArray *a) {
  assert_null(umemArray_device_pointer(a, true, &status));
}
static void exports(umemArray *a) { assert_null(umemArray_to_dlpack(a, NULL, &status)); }

#define ENDED_TEST(name) TEST_CASE_WITH(name, make_rest, release_rest)

ENDED_TEST(calls_say_that_the_context_has_ended) {
  void (*const calls[])(umemArray *) = {fills,       clears,           draws,   draws_normal,
                                        converts_to, converts_from,    assigns, copies,
                                        points,      points_for_a_gpu, exports};
  for (int which = 0; which < 3; which++) {
    umemArray *whole = ended_array(which);
    umemArray *part = umemArray_slice(whole, 0, 0, length / 2, 2, &status);
    assert_ok(status);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
      for (int k = 0; k < 2; k++) {
        calls[i](k ? part : whole);
        expect_failure(umemValueError, "not constructed");
      }
    RELEASE(part, whole);
  }
}

/* Strides of arrays without elements mean nothing, however large. */
ENDED_TEST(strides_of_no_elements_overflow_nothing) {
  int64_t const strides[] = {8, (int64_t)1 << 62};
  umemArray *none =
      umemArray_create(&host, umemDouble, SHAPE(0, (int64_t)1 << 40), strides, &status);
  umemArray *row = umemArray_select(none, 1, 4, &status);
  assert_ok(status);
  assert_int_equal(umemArray_elements(row), 0);
  RELEASE(row, none);
}

/* Two rows of a file that are 2^62 bytes apart are not joined. */
ENDED_TEST(wide_strides_are_not_joined) {
  int64_t const strides[] = {1, (int64_t)1 << 62};
  assert_ok(umemFile_ctor(&file, NULL, "w+"));
  umemArray *far = umemArray_borrow(&file, 4096, umemChar, SHAPE(2, 2), strides, &status);
  umemArray *near = umemArray_zeros(&host, umemFloat, SHAPE(2, 2), NULL, &status);
  assert_ok(status);
  umemArray_convert(near, far, 0, 0, 4, &status);
  assert_int_not_equal(status, umemOK); /* there are no such bytes */
  forget_failure();
  RELEASE(far, near);
  umem_dtor(&file);
}
