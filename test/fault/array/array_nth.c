/* array_nth.c - umem/array.h: the n-th call into the system fails, for every n that a sequence of
 * calls on arrays reaches.
 *
 * After each fault: success with the right elements, or NULL and a status of the kind that fits;
 * nothing stays allocated on the contexts. What is not freed besides is for the sanitizer to
 * find. */
#include "fault/trial.h"

enum { rows = 6, columns = 10 };

typedef struct Stores {
  char path[256];
  umemHost host;
  umemFile file;
  umemStats on_host, on_file;
} Stores;

static void open_stores(Stores *stores) {
  temporary_name(stores->path, sizeof stores->path);
  assert_int_equal(umemHost_ctor(&stores->host), umemOK);
  assert_int_equal(umemFile_ctor(&stores->file, stores->path, "w+"), umemOK);
  assert_int_equal(umemStats_ctor(&stores->on_host, &stores->host), umemOK);
  assert_int_equal(umemStats_ctor(&stores->on_file, &stores->file), umemOK);
}

static void expect_empty(umemStats *stats) {
  umemStatsFigures figures = UMEM_STATS_FIGURES_INIT;
  assert_int_equal(umemStats_get(stats, &figures), umemOK);
  assert_int_equal(figures.current_count, 0);
}

static void close_stores(Stores *stores) {
  expect_empty(&stores->on_host);
  expect_empty(&stores->on_file);
  DESTRUCT(&stores->on_file, &stores->on_host, &stores->file, &stores->host);
  unlink(stores->path);
}

/* An array in a file, filled by columns, copied in the order of its transpose, and between parts of
 * other shapes. The result, on the host, is an array of rows * columns / 2 elements, each 3. */
static umemArray *use_arrays(Stores *stores, umemStatusType *status) {
  int64_t const shape[] = {rows, columns}, flat[] = {rows * columns / 2};
  int32_t three = 3, other = 0x01020304;
  umemArray *a = umemArray_zeros(&stores->on_file, umemInt, 2, shape, NULL, status);
  umemArray_fill(a, &other, status);
  umemArray *odd = umemArray_slice(a, 1, 1, columns / 2, 2, status);
  umemArray_fill(odd, &three, status);
  umemArray *t = umemArray_permute(odd, NULL, status);
  umemArray *copy = umemArray_copy(t, &stores->on_host, umemOrderKeep, status);
  umemArray *back = umemArray_full(&stores->on_host, umemInt, 2, shape, NULL, &status, status);
  umemArray *even = umemArray_slice(back, 1, 0, columns / 2, 2, status);
  umemArray_copy_contents(even, t, 1, 0, rows * columns / 2 - 1, status);
  umemArray *row = umemArray_select(even, 0, 0, status);
  umemArray *first = umemArray_slice(row, 0, 0, 1, 1, status);
  umemArray_fill(first, &three, status);
  umemArray *result = umemArray_copy(even, &stores->on_host, umemOrderC, status);
  /* To a type in the file and back, by way of buffers; random numbers there are overwritten. */
  umemArray *kept = umemArray_create(&stores->on_file, umemDouble, 1, flat, NULL, status);
  umemArray *turned =
      umemArray_slice(kept, 0, rows * columns / 2 - 1, rows * columns / 2, -1, status);
  umemArray_random_uniform(turned, 5, 6, 1, status);
  umemArray_random_normal(turned, 5, 6, 1, status);
  umemArray_convert(turned, result, 0, 0, rows * columns / 2, status);
  umemArray_convert(even, t, 0, 0, 1, status);
  umemArray_convert(result, kept, 0, 0, rows * columns / 2, status);
  umemArray *view = umemArray_reshape(result, 1, flat, status);
  umemArray *all[] = {turned, kept, result, first, row, even, back, copy, t, odd, a};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) umemArray_release(all[i]);
  return view;
}

static bool is_right(umemArray *view, umemStatusType *status) {
  int32_t const *found = umemArray_host_pointer(view, false, status);
  bool right = found && umemArray_elements(view) == rows * columns / 2;
  for (int i = 0; right && i < rows * columns / 2; i++) right = found[i] == 3;
  return right;
}

static void fail_each(InjectCall call, int error, bool lasting, umemStatusType expected) {
  unsigned long nth = 1;
  for (bool met = true; met; nth++) {
    Stores stores;
    umemStatusType status = umemOK;
    open_stores(&stores);
    inject_fail(call, nth, error, lasting);
    umemArray *view = use_arrays(&stores, &status);
    met = inject_off() > 0;
    inject_pause();
    if (view) {
      assert_int_equal(status, umemOK);
      assert_true(is_right(view, &status));
    } else {
      assert_true(met);
      assert_int_equal(status, expected);
      assert_int_equal(umem_thread_status(), expected);
      assert_int_equal(strncmp(umem_thread_message(), "umemArray_", 10), 0);
    }
    umem_thread_clear();
    umemArray_release(view);
    close_stores(&stores);
    inject_resume();
  }
  assert_true(nth > 2);
}

TEST_CASE(there_is_no_memory) {
  fail_each(callHeap, ENOMEM, false, umemMemoryError);
  fail_each(callHeap, ENOMEM, true, umemMemoryError);
}
TEST_CASE(reads_fail) {
  fail_each(callRead, EIO, false, umemIOError);
  fail_each(callRead, EIO, true, umemIOError);
}
TEST_CASE(disks_are_full) {
  fail_each(callWrite, ENOSPC, false, umemIOError);
  fail_each(callWrite, ENOSPC, true, umemIOError);
}

/* Exports a with a copy, and imports the tensor on host. NULL, and no tensor is left, if either
 * fails. */
static umemArray *send(umemArray *a, umemHost *host, umemStatusType *status) {
  umemDLPackOptions options = UMEM_DLPACK_OPTIONS_INIT;
  options.copy = umemDLCopyIfNeeded;
  umemDLManagedTensorVersioned *tensor = umemArray_to_dlpack(a, &options, status);
  umemArray *back = umemArray_from_dlpack(host, tensor, status);
  if (tensor && !back) tensor->deleter(tensor); /* it is still the caller's */
  return back;
}
static umemArray *send_unversioned(umemArray *a, umemHost *host, umemStatusType *status) {
  umemDLPackOptions options = UMEM_DLPACK_OPTIONS_INIT;
  options.copy = umemDLCopyIfNeeded;
  umemDLManagedTensor *tensor = umemArray_to_dlpack_unversioned(a, &options, status);
  umemArray *back = umemArray_from_dlpack_unversioned(host, tensor, status);
  if (tensor && !back) tensor->deleter(tensor);
  return back;
}

/* As a column of Arrow. */
static umemArray *send_column(umemArray *a, umemHost *host, umemStatusType *status) {
  umemArrowSchema schema;
  umemArrowDeviceArray column;
  if (!umemArray_to_arrow(a, NULL, &schema, &column, status)) return NULL;
  umemArray *back = umemArray_from_arrow(host, &schema, &column, NULL, status);
  schema.release(&schema);
  if (column.array.release) column.array.release(&column.array); /* it is still the caller's */
  return back;
}

typedef struct Sending {
  umemArray *(*send)(umemArray *a, umemHost *host, umemStatusType *status);
  umemElementType type;
  int rank;
  bool from_file;
} Sending;

/* Each allocation fails in turn: then there is an array, or nothing is left. */
TEST_CASE(what_is_sent_without_memory_leaves_nothing) {
  Sending const sendings[] = {{send, umemInt, 2, true},
                              {send_unversioned, umemInt, 2, true},
                              {send_column, umemInt, 1, false},
                              {send_column, umemBool, 1, false}};
  for (size_t i = 0; i < sizeof sendings / sizeof *sendings; i++) {
    Sending const *sending = &sendings[i];
    unsigned long nth = 1;
    for (bool met = true; met; nth++) {
      Stores stores;
      int64_t const shape[] = {rows, columns};
      umemStatusType status = umemOK;
      open_stores(&stores);
      umemStats *on = sending->from_file ? &stores.on_file : &stores.on_host;
      umemArray *a = umemArray_zeros(on, sending->type, sending->rank, shape, NULL, &status);
      inject_fail(callHeap, nth, ENOMEM, false);
      umemArray *back = sending->send(a, &stores.host, &status);
      met = inject_off() > 0;
      inject_pause();
      assert_int_equal(status, back ? umemOK : umemMemoryError);
      assert_true(back || met);
      umem_thread_clear();
      umemArray_release(back);
      umemArray_release(a);
      close_stores(&stores);
      inject_resume();
    }
    assert_true(nth > 3);
  }
}
