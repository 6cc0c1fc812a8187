/* array_places.c - umem/array.h on contexts of every kind: alignment, pointers, long fills and
 * copies, queues, files. */
#include "array_help.h"

#include "unit/each_backend.h"
#include "fake/fake.h"

static void (*test_of_context)(umemVirtual *ctx);

static void test_context(Backend const *row, umemVirtual *ctx) {
  test_of_context(ctx);
  if (status != umemOK) fail_msg("%s: %s", row->name, umem_thread_message());
}

static void for_each_context(void (*test)(umemVirtual *ctx)) {
  test_of_context = test;
  assert_true(for_each_backend(test_context) > 0);
}

/* ---- every context ---- */

static void begins_where_others_need_it(umemVirtual *ctx) {
  uintptr_t alignment = can(ctx, umemDeviceAccessible) ? 256 : 64;
  if (can(ctx, umemOffsets)) alignment = ctx->alignment; /* packed */
  for (int64_t n = 1; n < 2000; n = 3 * n + 1) {
    umemArray *a = umemArray_create(ctx, umemInt8, SHAPE(n), NULL, &status);
    umemArray *b = umemArray_zeros(ctx, umemInt8, SHAPE(n), (int64_t[]){-1}, &status);
    assert_int_equal(umemArray_address(a) % alignment, 0);
    assert_int_equal((umemArray_address(b) - (uintptr_t)(n - 1)) % alignment, 0);
    RELEASE(a, b);
  }
}

/* Pointers are given for what the context says, and for nothing else. */
static void gives_pointers(umemVirtual *ctx) {
  int32_t seven = 7;
  SCOPED(release_array)
  umemArray *a = umemArray_full(ctx, umemInt, SHAPE(5), NULL, &seven, &status);
  int32_t const *first = umemArray_host_pointer(a, false, &status);
  if (can(ctx, umemCpuReadable)) {
    assert_int_equal(first[4], 7);
  } else {
    expect_failure(umemNotSupportedError, "the CPU cannot read the memory of");
    umem_clear_status(ctx);
  }
  void const *device = umemArray_device_pointer(a, true, &status);
  if (can(ctx, umemDeviceAccessible)) {
    assert_true((uintptr_t)device == umemArray_address(a));
  } else {
    expect_failure(umemNotSupportedError, "a GPU cannot write to the memory of");
    umem_clear_status(ctx);
  }
}

/* Longer than the buffers, into every second column, out of every third: gaps on both sides, and
 * other shapes. */
static void copies_long_columns_to(umemVirtual *ctx) {
  int64_t const rows = 1200, columns = 2000; /* 4.8 MB are copied */
  umemArray *numbers =
      umemArray_create(&host, umemInt, SHAPE(rows, 3 * columns / 2), NULL, &status);
  int32_t *number = umemArray_host_pointer(numbers, true, &status);
  for (int64_t i = 0; i < rows * 3 * columns / 2; i++) number[i] = (int32_t)i;
  umemArray *third = umemArray_slice(numbers, 1, 0, columns / 2, 3, &status);
  umemArray *to = umemArray_zeros(ctx, umemInt, SHAPE(columns, rows), NULL, &status);
  umemArray *second = umemArray_slice(to, 1, 1, rows / 2, 2, &status);
  umemArray_copy_contents(second, third, 0, 0, rows * columns / 2, &status);
  umemArray *found = umemArray_copy(to, &host, umemOrderC, &status);
  assert_ok(umem_synchronize(ctx));
  number = umemArray_host_pointer(found, false, &status);
  int64_t next = 0;
  for (int64_t i = 0; i < columns * rows; i++) {
    int64_t of = i % 2 ? next++ : 0;
    if (number[i] != 3 * of) fail_msg("%s: element %jd", umem_get_device_name(ctx), (intmax_t)i);
  }
  RELEASE(found, second, to, third, numbers);
}

/* Longer than the buffers, with an odd end: one value, and the way back by columns. */
static void fills_and_copies_long_arrays(umemVirtual *ctx) {
  int64_t const rows = 1500, columns = 1001; /* 12 MB */
  double value = 1.25;
  umemArray *a = umemArray_full(ctx, umemDouble, SHAPE(rows, columns), NULL, &value, &status);
  umemArray *odd = umemArray_slice(a, 1, 1, columns / 2, 2, &status);
  umemArray *b = umemArray_zeros(&host, umemDouble, SHAPE(rows, columns), NULL, &status);
  umemArray *even = umemArray_slice(b, 1, 0, columns / 2, 2, &status);
  umemArray *flat = umemArray_zeros(&host, umemDouble, SHAPE(rows * columns), NULL, &status);
  int64_t count = umemArray_elements(odd) - 1;
  value = -2;
  umemArray_fill(odd, &value, &status);
  umemArray_copy_contents(even, odd, 0, 1, count, &status); /* gaps on both sides, not the same */
  umemArray_copy_contents(flat, a, 0, 0, rows * columns, &status);
  assert_ok(umem_synchronize(ctx));
  double const *x = umemArray_host_pointer(b, false, &status);
  double const *y = umemArray_host_pointer(flat, false, &status);
  for (int64_t i = 0; i < rows * columns; i++) {
    bool last = i / columns == rows - 1 && i % columns == columns - 3;
    double expected = i % columns % 2 || i % columns == columns - 1 || last ? 0 : -2;
    if (x[i] != expected || y[i] != (i % columns % 2 ? -2 : 1.25))
      fail_msg("%s: element %jd is %g, %g", umem_get_device_name(ctx), (intmax_t)i, x[i], y[i]);
  }
  RELEASE(flat, even, b, odd, a);
}

TEST(arrays_begin_where_others_need_it) { for_each_context(begins_where_others_need_it); }
TEST(pointers_are_given_where_they_are_good) { for_each_context(gives_pointers); }
TEST(long_arrays_are_filled_and_copied) {
  char const *const names[] = {"host", "file", "mmap", "fake", "fake-async", "cuda", "cuda-async"};
  size_t tried = 0;
  for (size_t i = 0; i < backend_count; i++) {
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
      if (strcmp(backends[i].name, names[k]) != 0 || setting_leaves_out(names[k])) continue;
      if (setting_small() && k > 1) continue;
      umemVirtual *ctx = backend_open(&backends[i]);
      if (!ctx) fail_msg("%s: %s", names[k], umem_thread_message());
      fills_and_copies_long_arrays(ctx);
      copies_long_columns_to(ctx);
      backend_close(&backends[i], ctx);
      tried++;
    }
  }
  assert_true(tried >= 2);
}

/* Elements of odd sizes, and longer than any pattern. */
TEST(elements_of_every_size_are_filled) {
  unsigned const lanes[] = {1, 2, 3, 4, 5, 8, 16, 4095, 4097, 65535};
  for (size_t k = 0; k < sizeof lanes / sizeof *lanes; k++) {
    unsigned char value[65535];
    int64_t const count = 3 * 8192 / (int64_t)lanes[k] + 3;
    umemElementType type = UMEM_ELEMENT(umemCodeUInt, 8, lanes[k]);
    for (size_t i = 0; i < lanes[k]; i++) value[i] = (unsigned char)(i * 7 + k);
    umemArray *a = umemArray_full(&host, type, SHAPE(count, 2), NULL, value, &status);
    umemArray *column = umemArray_select(a, 1, 1, &status);
    unsigned char const *bytes = umemArray_host_pointer(a, true, &status);
    for (int64_t i = 0; i < 2 * count; i++)
      assert_memory_equal(bytes + i * (int64_t)lanes[k], value, lanes[k]);
    umemArray_clear(column, &status);
    for (int64_t i = 0; i < 2 * count; i++)
      for (size_t j = 0; j < lanes[k]; j++)
        if (bytes[i * (int64_t)lanes[k] + (int64_t)j] != (i % 2 ? 0 : value[j]))
          fail_msg("%u lanes, element %jd", lanes[k], (intmax_t)i);
    RELEASE(column, a);
  }
}

/* ---- queues ---- */

/* A copy on a queue comes after the work of the arrays' own contexts and of the queue, and only
 * then. The double does queued work as late as it may: what is not ordered is junk. */
TEST(copies_on_a_queue_are_ordered) {
  FakeAsync device, second, queue;
  int32_t five = 0x05050505,
          nine = 0x09090909; /* of one byte each: they are set, which is only queued */
  assert_ok(fake_async_ctor(&device));
  assert_ok(fake_async_ctor_on(&second, &device));
  assert_ok(fake_async_ctor_on(&queue, &device));
  umemArray *from = umemArray_full(&device, umemInt, SHAPE(8), NULL, &five, &status);
  umemArray *to = umemArray_full(&second, umemInt, SHAPE(8), NULL, &nine, &status);
  umemArray *back = umemArray_zeros(&host, umemInt, SHAPE(8), NULL, &status);
  umemArray_copy_contents_on(&queue, to, from, 2, 0, 4, &status);
  umemArray_copy_contents_on(&queue, back, to, 0, 0, 8, &status);
  assert_ok(umem_synchronize(&queue));
  int32_t const *found = umemArray_host_pointer(back, false, &status);
  assert_memory_equal(found, ((int32_t[]){nine, nine, five, five, five, five, nine, nine}), 32);
  FAILS(umemArray_copy_contents_on(&queue, back, from, 0, 0, 9, &status), umemIndexError,
        "9 elements from 0 on are outside of the destination, which has 8");
  FAILS(umemArray_copy_contents_on(&queue, back, back, 0, 0, 1, &status), umemValueError,
        "the queue is in the memory of neither array");
  umem_clear_status(&queue);
  FAILS(umemArray_copy_contents_on(NULL, back, to, 0, 0, 8, &status), umemValueError, "");
  RELEASE(back, to, from);
  DESTRUCT(&queue, &second, &device);
}

TEST(copies_on_a_stream_are_ordered) {
  int32_t five = 5;
  CONTEXT(umemCudaAsync, device, 0, UMEM_STREAM_NEW);
  CONTEXT(umemCudaAsync, queue, 0, UMEM_STREAM_NEW);
  umemArray *from = umemArray_full(&device, umemInt, SHAPE(8), NULL, &five, &status);
  umemArray *to = umemArray_zeros(&host, umemInt, SHAPE(8), NULL, &status);
  umemArray_copy_contents_on(&queue, to, from, 1, 1, 7, &status);
  assert_ok(umem_synchronize(&queue));
  int32_t const *found = umemArray_host_pointer(to, false, &status);
  assert_memory_equal(found, ((int32_t[]){0, 5, 5, 5, 5, 5, 5, 5}), 32);
  RELEASE(to, from);
}

/* ---- files ---- */

TEST(arrays_are_in_files) {
  SCOPED(unlink_path) char path[BACKEND_PATH_SIZE];
  double half = 0.5;
  assert_true(backend_temp_file(path));
  CONTEXT(umemFile, file, path, "w");
  umemArray *a = umemArray_full(&file, umemDouble, SHAPE(3, 4), NULL, &half, &status);
  assert_int_equal(umemArray_address(a), 0); /* the file is byte for byte the array */
  umemArray_release(a);
  umem_dtor(&file);
  assert_ok(umemFile_ctor(&file, path, "r"));
  a = umemArray_create(&file, umemDouble, SHAPE(3, 4), NULL, &status);
  assert_true(umemArray_is_read_only(a));
  FAILS(umemArray_set_read_only(a, false, &status), umemNotSupportedError, "stays read-only");
  FAILS(umemArray_clear(a, &status), umemNotSupportedError, "read-only");
  umemArray *copy = umemArray_copy(a, &host, umemOrderC, &status);
  assert_true(((double *)umemArray_host_pointer(copy, true, &status))[11] == 0.5);
  RELEASE(copy, a);
}

/* The file is shorter than the array that others had there: nothing is lost but the copy. */
TEST(a_copy_of_a_cut_file_is_a_failure) {
  SCOPED(unlink_path) char path[BACKEND_PATH_SIZE];
  assert_true(backend_temp_file(path));
  CONTEXT(umemFile, file, path, "w+");
  SCOPED(release_array)
  umemArray *a = umemArray_zeros(&file, umemDouble, SHAPE(1000), NULL, &status);
  assert_int_equal(truncate(path, 80), 0);
  assert_null(umemArray_copy(a, &host, umemOrderC, &status));
  assert_true(status == umemIndexError || status == umemIOError);
  assert_non_null(strstr(umem_thread_message(), "umemArray_copy: "));
  status = umemOK;
  umem_thread_clear();
}
