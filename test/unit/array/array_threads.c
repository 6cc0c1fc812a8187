/* array_threads.c - umem/array.h: handles of one array in many threads. */
#include "array_help.h"

#include <pthread.h>

enum { threads = 8, rounds = 2000 };

static umemHost host;

/* Makes views, copies and releases, of an array that others release, too. */
static void *use(void *argument) {
  umemStatusType status = umemOK;
  umemArray *array = argument;
  for (int i = 0; i < rounds && status == umemOK; i++) {
    umemArray *row = umemArray_select(array, 0, i % 4, &status);
    umemArray *column = umemArray_slice(row, 0, 1, 2, 1, &status);
    umemArray *copy = umemArray_copy(column, &host, umemOrderC, &status);
    umemArray_retain(row);
    umemArray_release(row);
    umemArray_release(row);
    umemArray_release(column);
    if (copy && *(int32_t *)umemArray_host_pointer(copy, false, &status) != 6)
      status = umemAssertError;
    umemArray_release(copy);
  }
  umemArray_release(array);
  return (void *)(uintptr_t)status;
}

static int ends;
static void end(void *user) { __atomic_add_fetch((int *)user, 1, __ATOMIC_RELAXED); }

TEST_CASE(one_array_is_used_by_many_threads) {
  pthread_t thread[threads];
  int32_t values[16];
  umemStatusType status = umemOK;
  for (int i = 0; i < 16; i++) values[i] = 6;
  assert_ok(umemHost_ctor(&host));
  umemArray *array =
      umemArray_take(&host, (uintptr_t)values, umemInt, SHAPE(4, 4), NULL, end, &ends, &status);
  for (int i = 0; i < threads; i++)
    assert_int_equal(pthread_create(&thread[i], NULL, use, umemArray_retain(array)), 0);
  umemArray_release(array);
  for (int i = 0; i < threads; i++) {
    void *result;
    assert_int_equal(pthread_join(thread[i], &result), 0);
    assert_ok((uintptr_t)result);
  }
  assert_int_equal(ends, 1); /* whoever was the last */
  umem_dtor(&host);
}

int main(void) { return run_cases(NULL, NULL); }
