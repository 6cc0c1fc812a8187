/* dlpack_methods.c - the methods dlpack_device and stream_wait of contexts: when umem calls them,
 * and what it does if a context or an adaptor has none. */
#include "dlpack_help.h"

/* A context of some device. Its memory is never used. */
typedef struct Device {
  umemVirtual super;
  int code, number;
  int synchronized;
  uintptr_t stream; /* the last stream */
  bool fails;
} Device;

static void device_synchronize(umemVirtual *ctx) { ((Device *)ctx)->synchronized++; }
static int device_code(umemVirtual *ctx, int *id) {
  *id = ((Device *)ctx)->number;
  return ((Device *)ctx)->code;
}
static void device_stream_wait(umemVirtual *ctx, uintptr_t stream) {
  Device *self = (Device *)ctx;
  self->stream = stream;
  if (self->fails) umemVirtual_fail(ctx, umemRuntimeError, "the device has crashed");
}

static uintptr_t no_alloc(umemVirtual *ctx UNUSED, size_t nbytes UNUSED) { return 0; }
static void no_free(umemVirtual *ctx, uintptr_t adr) { (void)ctx, (void)adr; }
static void no_copy(umemVirtual *ctx, uintptr_t adr, umemVirtual *that, uintptr_t there, size_t n) {
  (void)ctx, (void)adr, (void)that, (void)there, (void)n;
}

#define METHODS                                                                                    \
  .alloc = no_alloc, .free = no_free, .copy_to = no_copy, .copy_from = no_copy,                    \
  .synchronize = device_synchronize
static struct umemVtbl const without = {METHODS};
static struct umemVtbl const with_code = {METHODS, .dlpack_device = device_code};
static struct umemVtbl const with_both = {METHODS, .dlpack_device = device_code,
                                          .stream_wait = device_stream_wait};

static Device device; /* of the test, which does not end it */

static void open_device(struct umemVtbl const *methods, int code) {
  umem_dtor(&device);
  device = (Device){.code = code, .number = 3};
  umemVirtual_ctor(&device.super, &host);
  device.super.vptr = methods;
  device.super.capabilities |= umemOrdered | umemDeviceAccessible;
}

static void close_device(void **state) {
  umem_dtor(&device);
  tear_down(state);
}

#define DEVICE_TEST(name) TEST_CASE_WITH(name, set_up, close_device)

static umemArray *array_of(void *ctx) {
  return umemArray_borrow(ctx, 4096, umemInt, SHAPE(5), NULL, &status);
}

/* Exports an array of ctx for that stream, and returns the device of the tensor; {-1, 0}: there is
 * none. */
static umemDLDevice export_for(void *ctx, int64_t stream) {
  umemDLPackOptions options = UMEM_DLPACK_OPTIONS_INIT;
  options.stream = stream;
  SCOPED(release_array) umemArray *array = array_of(ctx);
  umemDLManagedTensorVersioned *tensor = umemArray_to_dlpack(array, &options, &status);
  umemDLDevice of = tensor ? tensor->dl_tensor.device : (umemDLDevice){-1, 0};
  if (tensor) end(tensor);
  return of;
}

static void expect_device(umemDLDevice found, int code, int number) {
  assert_int_equal(found.device_type, code);
  assert_int_equal(found.device_id, number);
}

DEVICE_TEST(a_context_names_its_device) {
  open_device(&with_both, 10); /* a code that umem does not know, without streams of CUDA */
  expect_device(export_for(&device, UMEM_DLPACK_DEFAULT_STREAM), 10, 3);
  assert_int_equal(device.synchronized, 1);
  assert_int_equal(device.stream, 0);
  expect_device(export_for(&device, 5), -1, 0);
  expect_failure(umemValueError, "stream 5: tensors with device code 10 have no stream");
}

DEVICE_TEST(tensors_of_unknown_devices_come_back) {
  open_device(&with_both, 10);
  umemDLManagedTensorVersioned tensor = of_numbers();
  tensor.dl_tensor.device = (umemDLDevice){10, 3};
  umemArray_release(umemArray_from_dlpack(&device, &tensor, &status));
  assert_int_equal(deleted, 1);
  tensor.dl_tensor.device.device_id = 2;
  REFUSES(umemArray_from_dlpack(&device, &tensor, &status), umemNotSupportedError,
          "device code 10, number 2");
}

DEVICE_TEST(a_context_without_a_device_has_no_tensors) {
  open_device(&without, 2);
  expect_device(export_for(&device, UMEM_DLPACK_DEFAULT_STREAM), -1, 0);
  expect_failure(umemNotSupportedError, "device code 1: allow a copy");
}

DEVICE_TEST(a_stream_waits_or_the_host_does) {
  open_device(&with_both, 2);
  expect_device(export_for(&device, 77), 2, 3);
  assert_int_equal(device.stream, 77);
  expect_device(export_for(&device, UMEM_DLPACK_DEFAULT_STREAM), 2, 3);
  assert_int_equal(device.stream, 1);
  device.stream = 0;
  expect_device(export_for(&device, UMEM_DLPACK_NO_STREAM), 2, 3);
  assert_int_equal(device.stream, 0);
  assert_int_equal(device.synchronized, 0);
  open_device(&with_code, 2);
  expect_device(export_for(&device, 77), 2, 3);
  assert_int_equal(device.synchronized, 1);
  expect_device(export_for(&device, UMEM_DLPACK_NO_STREAM), 2, 3);
  assert_int_equal(device.synchronized, 1);
}

/* Memory that never has work queued: nobody waits. */
DEVICE_TEST(a_context_that_queues_nothing_waits_for_nothing) {
  open_device(&with_both, 2);
  device.super.capabilities &= ~(uint32_t)umemOrdered;
  expect_device(export_for(&device, 77), 2, 3);
  assert_int_equal(device.stream, 0);
}

DEVICE_TEST(adaptors_have_the_methods_of_their_upstream) {
  open_device(&with_both, 2);
  CONTEXT(umemLimit, limit, &device, 1000);
  expect_device(export_for(&limit, 77), 2, 3);
  assert_int_equal(device.stream, 77);
  device.fails = true;
  expect_device(export_for(&limit, 78), -1, 0);
  expect_failure(umemRuntimeError, "the device has crashed");
  assert_false(umem_is_ok(&limit));
  assert_false(umem_is_ok(&device));
  umem_clear_status(&limit);
  umem_clear_status(&device);
}

/* A table that ends before these methods. */
DEVICE_TEST(older_contexts_have_the_defaults) {
  open_device(&with_both, 2);
  device.super.vtbl_size = offsetof(struct umemVtbl, dlpack_device);
  device.super.capabilities |= umemCpuReadable;
  expect_device(export_for(&device, UMEM_DLPACK_DEFAULT_STREAM), 1, 0);
  assert_int_equal(device.synchronized, 1);
}
