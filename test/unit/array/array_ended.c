/* array_ended.c - arrays whose context has ended before them: calls say so, and touch nothing. */
#include "array_help.h"

enum { length = 2000 };

static umemHost host, other;
static umemPool pool;
static umemFile file;
static umemArray *rest; /* of a context that lives */

/* An array on the context number `which`, which has ended. Memory of a umemHost stays: it is the
 * test's. */
static umemArray *ended_array(int which) {
  static double memory[length];
  umemStatusType status = umemOK;
  void *const contexts[] = {&pool, &file};
  assert_ok(umemHost_ctor(&other));
  assert_ok(umemPool_ctor(&pool, &host, NULL));
  assert_ok(umemFile_ctor(&file, NULL, "w+"));
  umemArray *array =
      which == 2
          ? umemArray_borrow(&other, (uintptr_t)memory, umemDouble, SHAPE(length), NULL, &status)
          : umemArray_zeros(contexts[which], umemDouble, SHAPE(length), NULL, &status);
  assert_ok(status);
  umem_dtor(&file);
  umem_dtor(&pool);
  umem_dtor(&other);
  return array;
}

static int set_up(void **state) {
  (void)state;
  umemStatusType status = umemOK;
  umem_thread_clear();
  assert_ok(umemHost_ctor(&host));
  rest = umemArray_zeros(&host, umemFloat, SHAPE(length), NULL, &status);
  return rest ? 0 : -1;
}

static int tear_down(void **state) {
  (void)state;
  umemArray_release(rest);
  umem_dtor(&host);
  umem_thread_clear();
  return 0;
}

static double const one = 1;

static void fills(umemArray *a, umemStatusType *status) { umemArray_fill(a, &one, status); }
static void clears(umemArray *a, umemStatusType *status) { umemArray_clear(a, status); }
static void draws(umemArray *a, umemStatusType *status) {
  umemArray_random_uniform(a, 0, 1, 1, status);
}
static void draws_normal(umemArray *a, umemStatusType *status) {
  umemArray_random_normal(a, 0, 1, 1, status);
}
static void converts_to(umemArray *a, umemStatusType *status) {
  umemArray_convert(a, rest, 0, 0, length / 2, status);
}
static void converts_from(umemArray *a, umemStatusType *status) {
  umemArray_convert(rest, a, 0, 0, length / 2, status);
}
static void assigns(umemArray *a, umemStatusType *status) { umemArray_assign(a, a, status); }
static void copies(umemArray *a, umemStatusType *status) {
  assert_null(umemArray_copy(a, &host, umemOrderC, status));
}
static void points(umemArray *a, umemStatusType *status) {
  assert_null(umemArray_host_pointer(a, true, status));
}
static void points_for_a_gpu(umemArray *a, umemStatusType *status) {
  assert_null(umemArray_device_pointer(a, true, status));
}
static void exports(umemArray *a, umemStatusType *status) {
  assert_null(umemArray_to_dlpack(a, NULL, status));
}

#define TEST(name) TEST_CASE_WITH(name, set_up, tear_down)

TEST(calls_say_that_the_context_has_ended) {
  void (*const calls[])(umemArray *, umemStatusType *) = {
      fills,   clears, draws,  draws_normal,     converts_to, converts_from,
      assigns, copies, points, points_for_a_gpu, exports};
  for (int which = 0; which < 3; which++) {
    umemStatusType status = umemOK;
    umemArray *whole = ended_array(which);
    umemArray *part = umemArray_slice(whole, 0, 0, length / 2, 2, &status);
    assert_ok(status);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
      for (int k = 0; k < 2; k++) {
        calls[i](k ? part : whole, &status);
        expect_failure(umemValueError, "not constructed");
      }
    umemArray_release(part);
    umemArray_release(whole);
    umem_thread_clear();
  }
}

/* Strides of arrays without elements mean nothing, however large. */
TEST(strides_of_no_elements_overflow_nothing) {
  umemStatusType status = umemOK;
  int64_t const strides[] = {8, (int64_t)1 << 62};
  umemArray *none =
      umemArray_create(&host, umemDouble, SHAPE(0, (int64_t)1 << 40), strides, &status);
  umemArray *row = umemArray_select(none, 1, 4, &status);
  assert_ok(status);
  assert_int_equal(umemArray_elements(row), 0);
  umemArray_release(row);
  umemArray_release(none);
}

/* Two rows of a file that are 2^62 bytes apart are not joined. */
TEST(wide_strides_are_not_joined) {
  umemStatusType status = umemOK;
  int64_t const strides[] = {1, (int64_t)1 << 62};
  assert_ok(umemFile_ctor(&file, NULL, "w+"));
  umemArray *far = umemArray_borrow(&file, 4096, umemChar, SHAPE(2, 2), strides, &status);
  umemArray *near = umemArray_zeros(&host, umemFloat, SHAPE(2, 2), NULL, &status);
  assert_ok(status);
  umemArray_convert(near, far, 0, 0, 4, &status);
  assert_int_not_equal(status, umemOK); /* there are no such bytes */
  umemArray_release(far);
  umemArray_release(near);
  umem_dtor(&file);
}

int main(void) { return run_cases(NULL, NULL); }
