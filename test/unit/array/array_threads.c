/* array_threads.c - umem/array.h: handles of one array in many threads. */
#include "array_help.h"

enum { threads = 8, rounds = 2000 };

/* Makes views, copies and releases, of an array that others release, too. Returns NULL after a
 * failure. */
static void *use(void *argument) {
  umemStatusType mine = umemOK;
  umemArray *array = argument;
  for (int i = 0; i < rounds && mine == umemOK; i++) {
    umemArray *row = umemArray_select(array, 0, i % 4, &mine);
    umemArray *column = umemArray_slice(row, 0, 1, 2, 1, &mine);
    umemArray *copy = umemArray_copy(column, &host, umemOrderC, &mine);
    umemArray_retain(row);
    RELEASE(row, row, column);
    if (copy && *(int32_t *)umemArray_host_pointer(copy, false, &mine) != 6) mine = umemAssertError;
    umemArray_release(copy);
  }
  umemArray_release(array);
  return mine == umemOK ? &host : NULL;
}

static int ends;
static void end(void *user) { __atomic_add_fetch((int *)user, 1, __ATOMIC_RELAXED); }

TEST(one_array_is_used_by_many_threads) {
  pthread_t thread[threads];
  int32_t values[16];
  for (int i = 0; i < 16; i++) values[i] = 6;
  umemArray *array =
      umemArray_take(&host, (uintptr_t)values, umemInt, SHAPE(4, 4), NULL, end, &ends, &status);
  for (int i = 0; i < threads; i++) thread[i] = start_thread(use, umemArray_retain(array));
  umemArray_release(array);
  assert_true(join_threads(thread, threads));
  assert_int_equal(ends, 1); /* whoever was the last */
}
