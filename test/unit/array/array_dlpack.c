/* array_dlpack.c - umem/dlpack.h: tensors out and in, on contexts of every kind; what is refused; streams. */
#include "array_help.h"

#include "backends.h"
#include "fake/cudart.h"
#include "fake/doubles.h"
#include "settings.h"

#include <pthread.h>

#if __has_include(<dlpack/dlpack.h>)
#include <dlpack/dlpack.h>
#define SAME(mine, theirs, member)                                                                 \
  _Static_assert(offsetof(mine, member) == offsetof(theirs, member), #mine "." #member)
_Static_assert(sizeof(umemDLTensor) == sizeof(DLTensor), "DLTensor");
_Static_assert(sizeof(umemDLManagedTensor) == sizeof(DLManagedTensor), "DLManagedTensor");
SAME(umemDLTensor, DLTensor, device);
SAME(umemDLTensor, DLTensor, ndim);
SAME(umemDLTensor, DLTensor, dtype);
SAME(umemDLTensor, DLTensor, shape);
SAME(umemDLTensor, DLTensor, strides);
SAME(umemDLTensor, DLTensor, byte_offset);
SAME(umemDLManagedTensor, DLManagedTensor, manager_ctx);
SAME(umemDLManagedTensor, DLManagedTensor, deleter);
_Static_assert((int)umemDLCUDA == (int)kDLCUDA && (int)umemDLCUDAHost == (int)kDLCUDAHost &&
                   (int)umemDLCUDAManaged == (int)kDLCUDAManaged,
               "device codes");
#ifdef DLPACK_FLAG_BITMASK_READ_ONLY
_Static_assert(sizeof(umemDLManagedTensorVersioned) == sizeof(DLManagedTensorVersioned), "size");
SAME(umemDLManagedTensorVersioned, DLManagedTensorVersioned, flags);
SAME(umemDLManagedTensorVersioned, DLManagedTensorVersioned, deleter);
SAME(umemDLManagedTensorVersioned, DLManagedTensorVersioned, dl_tensor);
_Static_assert(UMEM_DLPACK_READ_ONLY == DLPACK_FLAG_BITMASK_READ_ONLY, "flags");
#endif
static char const compared[] = "compared with dlpack/dlpack.h\n";
#else
static char const compared[] = "no dlpack/dlpack.h is installed: nothing is compared\n";
#endif

static umemHost host;
static umemStatusType status;

static int set_up(void **state) {
  (void)state;
  doubles_use();
  umem_thread_clear();
  status = umemOK;
  return umemHost_ctor(&host) != umemOK;
}
static int tear_down(void **state) {
  (void)state;
  umem_dtor(&host);
  char const *complaint = doubles_complaint();
  if (complaint) fail_msg("%s", complaint);
  return status != umemOK || umem_thread_status() != umemOK;
}

static bool can(umemVirtual const *ctx, unsigned capabilities) {
  return (ctx->capabilities & capabilities) == capabilities;
}

/* ---- every context ---- */

static void goes_out_and_in(umemVirtual *ctx, bool versioned) {
  int32_t seven = 7;
  umemDLPackOptions options = UMEM_DLPACK_OPTIONS_INIT;
  umemArray *a = umemArray_full(ctx, umemInt, SHAPE(4, 6), NULL, &seven, &status);
  umemArray *odd = umemArray_slice(a, 1, 1, 3, 2, &status);
  umemDLManagedTensorVersioned *tensor = umemArray_to_dlpack(odd, NULL, &status);
  if (!tensor) {
    assert_true(can(ctx, umemOffsets) || !can(ctx, umemCpuReadable));
    expect_failure(umemNotSupportedError, "allow a copy");
    umem_clear_status(ctx);
    options.copy = umemDLCopyIfNeeded;
    tensor = umemArray_to_dlpack(odd, &options, &status);
    if (!tensor) fail_msg("%s: %s", umem_get_device_name(ctx), umem_thread_message());
    assert_int_equal(tensor->flags, UMEM_DLPACK_IS_COPIED);
    assert_int_equal(tensor->dl_tensor.device.device_type, umemDLCPU);
    assert_int_equal(((int32_t *)tensor->dl_tensor.data)[11], 7);
    tensor->deleter(tensor);
    umemArray_release(odd);
    umemArray_release(a);
    return;
  }
  umemDLManagedTensor *old = versioned ? NULL : umemArray_to_dlpack_unversioned(odd, NULL, &status);
  uintptr_t adr = umemArray_address(odd);
  umemArray_release(odd);
  umemArray_release(a); /* the tensors keep the memory */
  umemDLTensor const *dl = old ? &old->dl_tensor : &tensor->dl_tensor;
  assert_int_equal(tensor->version.major, 1);
  assert_int_equal(tensor->flags, 0);
  assert_true((uintptr_t)dl->data == adr);
  assert_int_equal(dl->ndim, 2);
  assert_int_equal(dl->byte_offset, 0);
  assert_memory_equal(dl->shape, ((int64_t[]){4, 3}), 16);
  assert_memory_equal(dl->strides, ((int64_t[]){6, 2}), 16);
  assert_true(dl->dtype.code == 0 && dl->dtype.bits == 32 && dl->dtype.lanes == 1);
  umemArray *back = old ? umemArray_from_dlpack_unversioned(ctx, old, &status)
                        : umemArray_from_dlpack(ctx, tensor, &status);
  if (old) tensor->deleter(tensor);
  umemArray *copy = umemArray_copy(back, &host, umemOrderC, &status);
  assert_ok(umem_synchronize(ctx));
  int32_t const *found = umemArray_host_pointer(copy, false, &status);
  for (int i = 0; i < 12; i++) assert_int_equal(found[i], 7);
  umemArray_release(copy);
  umemArray_release(back);
}

static void arrays_of_every_context_go_out_and_in(void **state) {
  (void)state;
  for (size_t i = 0; i < 2 * backend_count; i++) {
    Backend const *row = &backends[i / 2];
    if (setting_leaves_out(row->name)) continue;
    umemVirtual *ctx = row->open();
    if (!ctx && (row->traits & backendMayLack)) {
      umem_thread_clear();
      continue;
    }
    if (!ctx) fail_msg("%s: %s", row->name, umem_thread_message());
    goes_out_and_in(ctx, i % 2);
    if (status != umemOK) fail_msg("%s: %s", row->name, umem_thread_message());
    if (row->records && row->records(ctx).blocks) fail_msg("%s: a block is left", row->name);
    row->close(ctx);
  }
}

/* ---- tensors of others ---- */

static int deleted;
static void count_end(umemDLManagedTensorVersioned *self) {
  (void)self;
  __atomic_add_fetch(&deleted, 1, __ATOMIC_RELAXED);
}

static int32_t numbers[6] = {0, 1, 2, 3, 4, 5};
static int64_t two_by_three[] = {2, 3};

static umemDLManagedTensorVersioned of_numbers(void) {
  deleted = 0;
  return (umemDLManagedTensorVersioned){.version = {1, 0},
                                        .deleter = count_end,
                                        .dl_tensor = {.data = numbers,
                                                      .device = {umemDLCPU, 0},
                                                      .ndim = 2,
                                                      .dtype = {0, 32, 1},
                                                      .shape = two_by_three}};
}

static void the_deleter_runs_once_after_the_last_user(void **state) {
  (void)state;
  umemDLManagedTensorVersioned tensor = of_numbers();
  tensor.flags = UMEM_DLPACK_READ_ONLY;
  umemArray *array = umemArray_from_dlpack(&host, &tensor, &status);
  umemArray *row = umemArray_select(array, 0, 1, &status);
  umemArray_release(array);
  assert_int_equal(deleted, 0);
  assert_int_equal(*(int32_t *)umemArray_host_pointer(row, false, &status), 3);
  assert_true(umemArray_is_read_only(row));
  assert_null(umemArray_to_dlpack_unversioned(row, NULL, &status));
  expect_failure(umemNotSupportedError, "cannot be read-only");
  umemDLManagedTensorVersioned *again = umemArray_to_dlpack(row, NULL, &status);
  umemArray_release(row);
  assert_int_equal(again->flags, UMEM_DLPACK_READ_ONLY);
  assert_int_equal(deleted, 0);
  again->deleter(again);
  assert_int_equal(deleted, 1);
}

static void offsets_and_empty_tensors_are_read(void **state) {
  (void)state;
  umemDLManagedTensorVersioned tensor = of_numbers();
  tensor.dl_tensor.byte_offset = 8;
  tensor.dl_tensor.shape = (int64_t[]){2, 2};
  tensor.dl_tensor.strides = (int64_t[]){2, -1};
  tensor.deleter = NULL;
  umemArray *array = umemArray_from_dlpack(&host, &tensor, &status);
  assert_true(umemArray_address(array) == (uintptr_t)(numbers + 2));
  assert_int_equal(umemArray_stride(array, 1), -4);
  umemArray_release(array);
  tensor = of_numbers();
  tensor.dl_tensor.data = NULL;
  tensor.dl_tensor.shape = (int64_t[]){0, 3};
  array = umemArray_from_dlpack(&host, &tensor, &status);
  assert_int_equal(umemArray_elements(array), 0);
  umemDLManagedTensorVersioned *empty = umemArray_to_dlpack(array, NULL, &status);
  assert_null(empty->dl_tensor.data);
  assert_non_null(empty->dl_tensor.strides);
  empty->deleter(empty);
  umemArray_release(array);
  assert_int_equal(deleted, 1);
}

#define REFUSED(change, type, words)                                                               \
  do {                                                                                             \
    umemDLManagedTensorVersioned tensor = of_numbers();                                            \
    change;                                                                                        \
    assert_null(umemArray_from_dlpack(&host, &tensor, &status));                                   \
    expect_failure(type, words);                                                                   \
    assert_int_equal(deleted, 0);                                                                  \
  } while (0)

static void hostile_tensors_are_refused_and_left(void **state) {
  (void)state;
  int64_t const big = INT64_MAX;
  REFUSED(tensor.version.major = 2, umemNotSupportedError, "version 2.0");
  REFUSED(tensor.dl_tensor.ndim = -1, umemValueError, "rank -1");
  REFUSED(tensor.dl_tensor.ndim = INT32_MAX, umemValueError, "rank 2147483647");
  REFUSED(tensor.dl_tensor.shape = NULL, umemValueError, "no shape");
  REFUSED(tensor.dl_tensor.data = NULL, umemValueError, "NULL");
  REFUSED(tensor.dl_tensor.byte_offset = UINT64_MAX, umemValueError, "address space");
  REFUSED(tensor.dl_tensor.dtype.code = 200, umemTypeError, "no type");
  REFUSED(tensor.dl_tensor.dtype.bits = 4, umemTypeError, "no type");
  REFUSED(tensor.dl_tensor.device.device_type = 99, umemNotSupportedError, "code 99");
  REFUSED(tensor.dl_tensor.device.device_type = umemDLCUDA, umemNotSupportedError, "code 2");
  REFUSED(tensor.dl_tensor.shape = ((int64_t[]){-1, 3}), umemValueError, "negative");
  REFUSED(tensor.dl_tensor.shape = ((int64_t[]){big, big}), umemValueError, "address space");
  REFUSED(tensor.dl_tensor.strides = ((int64_t[]){big, 1}), umemValueError, "address space");
  REFUSED(tensor.dl_tensor.strides = ((int64_t[]){big / 4, 1}), umemValueError, "address");
  assert_null(umemArray_from_dlpack(&host, NULL, &status));
  expect_failure(umemValueError, "the tensor is NULL");
}

/* ---- threads ---- */

static void *end_in_thread(void *tensor) {
  umemDLManagedTensorVersioned *self = tensor;
  self->deleter(self);
  return NULL;
}

static void another_thread_may_end_a_tensor(void **state) {
  (void)state;
  umemDLManagedTensorVersioned tensor = of_numbers();
  pthread_t thread[4];
  umemArray *array = umemArray_from_dlpack(&host, &tensor, &status);
  for (int i = 0; i < 4; i++)
    assert_int_equal(
        pthread_create(&thread[i], NULL, end_in_thread, umemArray_to_dlpack(array, NULL, &status)),
        0);
  umemArray_release(array);
  for (int i = 0; i < 4; i++) assert_int_equal(pthread_join(thread[i], NULL), 0);
  assert_int_equal(deleted, 1);
}

/* ---- devices and streams ---- */

static void codes_and_streams_are_checked(void **state) {
  (void)state;
  umemCudaHost pinned;
  umemCudaAsync gpu;
  umemCudaManaged managed;
  assert_ok(umemCudaHost_ctor(&pinned, 0));
  assert_ok(umemCudaAsync_ctor(&gpu, 1, UMEM_STREAM_NEW));
  assert_ok(umemCudaManaged_ctor(&managed, 1, 0));
  struct {
    void *ctx;
    umemDLDeviceCode ask;
    int64_t stream;
    int type, id; /* 0: refused */
  } const rows[] = {
      {&host, umemDLDefault, -1, umemDLCPU, 0},
      {&host, umemDLCUDA, -1, 0, 0},
      {&host, umemDLDefault, 1, 0, 0},
      {&pinned, umemDLDefault, -1, umemDLCUDAHost, 0},
      {&pinned, umemDLCPU, -1, umemDLCPU, 0},
      {&pinned, umemDLCUDA, -1, 0, 0},
      {&gpu, umemDLDefault, -1, umemDLCUDA, 1},
      {&gpu, umemDLDefault, 1, umemDLCUDA, 1},
      {&gpu, umemDLDefault, 0, 0, 0},
      {&gpu, umemDLDefault, -2, 0, 0},
      {&gpu, umemDLCPU, -1, 0, 0},
      {&managed, umemDLDefault, -1, umemDLCUDAManaged, 1},
      {&managed, umemDLCUDA, 1, umemDLCUDA, 1},
      {&managed, (umemDLDeviceCode)7, -1, 0, 0},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    umemDLPackOptions options = UMEM_DLPACK_OPTIONS_INIT;
    options.device = rows[i].ask;
    options.stream = rows[i].stream;
    umemArray *a = umemArray_create(rows[i].ctx, umemInt, SHAPE(8), NULL, &status);
    umemDLManagedTensorVersioned *tensor = umemArray_to_dlpack(a, &options, &status);
    if ((tensor != NULL) != (rows[i].type != 0)) fail_msg("row %zu: %s", i, umem_thread_message());
    if (tensor) {
      assert_int_equal(tensor->dl_tensor.device.device_type, rows[i].type);
      assert_int_equal(tensor->dl_tensor.device.device_id, rows[i].id);
      tensor->deleter(tensor);
    }
    status = umemOK;
    umem_thread_clear();
    umemArray_release(a);
  }
  umem_dtor(&managed);
  umem_dtor(&gpu);
  umem_dtor(&pinned);
}

/* The double does queued work as late as it may: the set is late when the export returns, so the host has not waited,
 * and it is done when the consumer's stream is. */
static void the_consumers_stream_waits_and_the_host_does_not(void **state) {
  (void)state;
  umemCudaAsync producer, consumer;
  assert_ok(umemCudaAsync_ctor(&producer, 0, UMEM_STREAM_NEW));
  assert_ok(umemCudaAsync_ctor(&consumer, 0, UMEM_STREAM_NEW));
  umemDLPackOptions options = UMEM_DLPACK_OPTIONS_INIT;
  options.stream = (int64_t)umemCudaAsync_stream(&consumer);
  void *stream = (void *)umemCudaAsync_stream(&producer);
  umemArray *a = umemArray_create(&producer, umemInt8, SHAPE(1000), NULL, &status);
  assert_ok(umem_set(&producer, umemArray_address(a), 5, 1000));
  assert_true(fake_cudart_is_late(stream));
  umemDLManagedTensorVersioned *tensor = umemArray_to_dlpack(a, &options, &status);
  assert_true(fake_cudart_is_late(stream));
  assert_ok(umem_synchronize(&consumer));
  assert_false(fake_cudart_is_late(stream));
  tensor->deleter(tensor);
  umemArray_release(a);
  umem_dtor(&consumer);
  umem_dtor(&producer);
}

/* A copy to the host is complete when it is exported. */
static void a_copy_to_the_host_is_complete(void **state) {
  (void)state;
  umemCudaAsync gpu;
  umemDLPackOptions options = UMEM_DLPACK_OPTIONS_INIT;
  options.device = umemDLCPU;
  options.copy = umemDLCopyIfNeeded;
  int32_t nine = 9;
  assert_ok(umemCudaAsync_ctor(&gpu, 0, UMEM_STREAM_NEW));
  umemArray *a = umemArray_full(&gpu, umemInt, SHAPE(100), NULL, &nine, &status);
  umemDLManagedTensorVersioned *tensor = umemArray_to_dlpack(a, &options, &status);
  assert_int_equal(((int32_t *)tensor->dl_tensor.data)[99], 9);
  assert_int_equal(tensor->flags, UMEM_DLPACK_IS_COPIED);
  tensor->deleter(tensor);
  umemArray_release(a);
  umem_dtor(&gpu);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
  struct CMUnitTest const tests[] = {
      TEST(arrays_of_every_context_go_out_and_in),
      TEST(the_deleter_runs_once_after_the_last_user),
      TEST(offsets_and_empty_tensors_are_read),
      TEST(hostile_tensors_are_refused_and_left),
      TEST(another_thread_may_end_a_tensor),
      TEST(codes_and_streams_are_checked),
      TEST(the_consumers_stream_waits_and_the_host_does_not),
      TEST(a_copy_to_the_host_is_complete),
  };
  print_message("%s", compared);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
