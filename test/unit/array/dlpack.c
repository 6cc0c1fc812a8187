/* dlpack.c - umem/dlpack.h: tensors out, on contexts of every kind with every device code and
 * permission to copy; tensors in, hostile ones too; who ends them, and when. */
#include "dlpack_help.h"

#include "unit/each_backend.h"
/* ---- every context ---- */

/* The code of memory of a row of the table, by what the row says of it; 0: no other library can use
 * it. */
static int code_of(Backend const *row, umemVirtual const *ctx) {
  char const *memory = row->memory ? row->memory : "";
  if (!strncmp(memory, "gpu", 3)) return 2;
  if (!strcmp(memory, "pinned")) return 3;
  if (!strcmp(memory, "managed")) return 13;
  return can(ctx, umemCpuReadable) && !can(ctx, umemOffsets) ? 1 : 0;
}
static int number_of(Backend const *row) { return row->memory && !strcmp(row->memory, "gpu 1"); }

/* Whether all elements of the tensor are 7, as an array of ctx, which ends it. */
static bool is_seven(void *ctx, umemDLManagedTensorVersioned *tensor) {
  bool seven = true;
  umemArray *array = umemArray_from_dlpack(ctx, tensor, &status);
  umemArray *copy = umemArray_copy(array, &host, umemOrderC, &status);
  if (array) assert_ok(umem_synchronize(ctx));
  int32_t const *found = umemArray_host_pointer(copy, false, &status);
  for (int64_t i = 0; i < umemArray_elements(copy); i++) seven = seven && found[i] == 7;
  RELEASE(copy, array);
  return seven && status == umemOK;
}

static void check_export(Backend const *row, umemVirtual *ctx, umemArray *array,
                         umemDLPackOptions const *options) {
  int native = code_of(row, ctx), code = options->device ? (int)options->device : native;
  if (!code) code = 1;
  bool cpu = code == 1 && native && can(ctx, umemCpuReadable);
  bool fits = native && (code == native || cpu || (code == 2 && native == 13));
  bool copies = options->copy == umemDLCopyAlways || (options->copy && !fits);
  bool possible = copies ? fits || code == 1 : fits;
  umemDLManagedTensorVersioned *tensor = umemArray_to_dlpack(array, options, &status);
  if ((tensor != NULL) != possible)
    fail_msg("%s as %d, copy %d: %s", row->name, code, (int)options->copy, umem_thread_message());
  if (!possible) {
    expect_failure(umemNotSupportedError, code == 1 ? "allow a copy" : "device code");
    umem_clear_status(ctx);
    return;
  }
  umemDLTensor const *dl = &tensor->dl_tensor;
  assert_int_equal(tensor->version.major, 1);
  assert_int_equal(tensor->flags, copies ? UMEM_DLPACK_IS_COPIED : 0);
  assert_int_equal(dl->device.device_type, code);
  assert_int_equal(dl->device.device_id, code == 2 ? number_of(row) : 0);
  assert_true(((uintptr_t)dl->data == umemArray_address(array)) == !copies);
  if (copies) assert_int_equal((uintptr_t)dl->data % (code == 1 ? 64 : 256), 0);
  assert_memory_equal(dl->shape, ((int64_t[]){4, 3}), 16);
  assert_memory_equal(dl->strides, copies ? ((int64_t[]){3, 1}) : ((int64_t[]){6, 2}), 16);
  assert_true(dl->dtype.code == 0 && dl->dtype.bits == 32 && dl->dtype.lanes == 1);
  assert_int_equal(dl->ndim, 2);
  assert_int_equal(dl->byte_offset, 0);
  void *place = code == 1 ? (void *)&host : ctx;
  if (code == 2 && native == 13)
    end(tensor); /* it does not say any more that the CPU may use the memory */
  else if (!is_seven(place, tensor))
    fail_msg("%s as %d: %s", row->name, code, umem_thread_message());
}

static void goes_out_as_everything(Backend const *row, umemVirtual *ctx) {
  int const codes[] = {0, 1, 2, 3, 13, 7, 99, -1};
  umemDLPackOptions options = UMEM_DLPACK_OPTIONS_INIT;
  int32_t seven = 7;
  umemArray *whole = umemArray_full(ctx, umemInt, SHAPE(4, 6), NULL, &seven, &status);
  umemArray *odd = umemArray_slice(whole, 1, 1, 3, 2, &status);
  for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
    for (int copy = umemDLCopyNever; copy <= umemDLCopyAlways; copy++) {
      options.device = (umemDLDeviceCode)codes[i];
      options.copy = (umemDLPackCopy)copy;
      check_export(row, ctx, odd, &options);
    }
  RELEASE(odd, whole);
}

/* Without a version, and after all handles of the array are gone. */
static void goes_out_alone(Backend const *row, umemVirtual *ctx) {
  int32_t seven = 7;
  if (!code_of(row, ctx)) return;
  umemArray *array = umemArray_full(ctx, umemInt, SHAPE(4, 6), NULL, &seven, &status);
  umemDLManagedTensor *tensor = umemArray_to_dlpack_unversioned(array, NULL, &status);
  umemDLManagedTensorVersioned *versioned = umemArray_to_dlpack(array, NULL, &status);
  umemArray_release(array);
  assert_memory_equal(tensor->dl_tensor.shape, ((int64_t[]){4, 6}), 16);
  assert_memory_equal(tensor->dl_tensor.strides, ((int64_t[]){6, 1}), 16);
  umemArray *back = umemArray_from_dlpack_unversioned(ctx, tensor, &status);
  assert_true(is_seven(ctx, versioned));
  versioned = umemArray_to_dlpack(back, NULL, &status);
  umemArray_release(back);
  assert_true(is_seven(ctx, versioned));
}

static void goes_out_and_in(Backend const *row, umemVirtual *ctx) {
  goes_out_as_everything(row, ctx);
  goes_out_alone(row, ctx);
  if (status != umemOK) fail_msg("%s: %s", row->name, umem_thread_message());
}

TEST(arrays_of_every_context_go_out_and_in) { assert_true(for_each_backend(goes_out_and_in) > 0); }

/* ---- shapes and types ---- */

TEST(shapes_and_types_go_out_as_they_are) {
  int64_t const many = INT64_C(5) << 30, large[] = {3, many};
  int64_t ones[UMEM_MAX_RANK];
  for (int k = 0; k < UMEM_MAX_RANK; k++) ones[k] = 1 + (k == 7);
  struct {
    umemElementType type;
    int rank;
    int64_t const *shape, *strides;
    int64_t first_stride; /* as exported */
  } const rows[] = {
      {umemInt8, 2, large, NULL, many}, /* nobody touches this memory */
      {umemDouble, 2, large, (int64_t[]){-8, 16}, -1},
      {UMEM_ELEMENT(umemCodeFloat, 32, 4), 1, (int64_t[]){9}, (int64_t[]){32}, 2},
      {umemComplex128, UMEM_MAX_RANK, ones, NULL, 2},
      {umemBool, 0, NULL, NULL, 0},
      {umemInt, 2, (int64_t[]){1, 4}, (int64_t[]){5, 4}, 1}, /* of one element: any stride */
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    umemArray *array = umemArray_borrow(&host, INT64_C(1) << 40, rows[i].type, rows[i].rank,
                                        rows[i].shape, rows[i].strides, &status);
    umemDLManagedTensorVersioned *tensor = umemArray_to_dlpack(array, NULL, &status);
    umemDLTensor const *dl = &tensor->dl_tensor;
    assert_non_null(dl->strides);
    assert_int_equal(dl->ndim, rows[i].rank);
    for (int k = 0; k < rows[i].rank; k++) assert_int_equal(dl->shape[k], rows[i].shape[k]);
    if (rows[i].rank) assert_int_equal(dl->strides[0], rows[i].first_stride);
    umemArray *back = umemArray_from_dlpack(&host, tensor, &status);
    assert_int_equal(umemArray_type(back), rows[i].type);
    assert_true(umemArray_elements(back) == umemArray_elements(array));
    assert_true(umemArray_address(back) == umemArray_address(array));
    for (int k = 0; k < rows[i].rank; k++)
      if (rows[i].shape[k] > 1)
        assert_int_equal(umemArray_stride(back, k), umemArray_stride(array, k));
    RELEASE(back, array);
  }
}

TEST(strides_between_elements_need_a_copy) {
  _Alignas(4) unsigned char bytes[12] = {1, 0, 0, 0, 9, 9, 2, 0, 0, 0, 9, 9};
  umemDLPackOptions options = UMEM_DLPACK_OPTIONS_INIT;
  options.copy = umemDLCopyIfNeeded;
  umemArray *array =
      umemArray_borrow(&host, (uintptr_t)bytes, umemInt, SHAPE(2), (int64_t[]){6}, &status);
  REFUSES(umemArray_to_dlpack(array, NULL, &status), umemNotSupportedError,
          "a stride is no multiple of an element: allow a copy");
  umemDLManagedTensorVersioned *tensor = umemArray_to_dlpack(array, &options, &status);
  assert_memory_equal(tensor->dl_tensor.data, ((int32_t[]){1, 2}), 8);
  assert_int_equal(tensor->flags, UMEM_DLPACK_IS_COPIED);
  end(tensor);
  umemArray_release(array);
}

TEST(offsets_and_empty_tensors_are_read) {
  umemDLManagedTensorVersioned tensor = of_numbers();
  tensor.dl_tensor.byte_offset = 8;
  tensor.dl_tensor.shape = (int64_t[]){2, 2};
  tensor.dl_tensor.strides = (int64_t[]){2, -1};
  tensor.deleter = NULL;
  SCOPED(release_array) umemArray *array = umemArray_from_dlpack(&host, &tensor, &status);
  assert_true(umemArray_address(array) == (uintptr_t)(numbers + 2));
  assert_int_equal(umemArray_stride(array, 1), -4);
  umemArray_release(array);
  tensor = of_numbers();
  tensor.version.minor = 99;
  tensor.dl_tensor.data = NULL;
  tensor.dl_tensor.byte_offset = 16;
  tensor.dl_tensor.shape = (int64_t[]){0, 3};
  array = umemArray_from_dlpack(&host, &tensor, &status);
  assert_int_equal(umemArray_elements(array), 0);
  umemDLManagedTensorVersioned *empty = umemArray_to_dlpack(array, NULL, &status);
  assert_null(empty->dl_tensor.data);
  assert_non_null(empty->dl_tensor.strides);
  end(empty);
  umemArray_release(array);
  assert_int_equal(deleted, 1);
  tensor = of_numbers();
  tensor.dl_tensor.shape = (int64_t[]){1, 3};
  tensor.dl_tensor.strides = (int64_t[]){INT64_MAX, 1}; /* the first means nothing */
  array = umemArray_from_dlpack(&host, &tensor, &status);
  umemArray *none = umemArray_slice(array, 1, 1, 0, 1, &status);
  empty = umemArray_to_dlpack(none, NULL, &status);
  assert_null(empty->dl_tensor.data); /* as the specification has it */
  end(empty);
  RELEASE(none, array);
  tensor = of_numbers();
  tensor.dl_tensor.ndim = 0;
  tensor.dl_tensor.shape = NULL;
  array = umemArray_from_dlpack(&host, &tensor, &status);
  assert_int_equal(umemArray_elements(array), 1);
}

/* ---- who ends a tensor, and when ---- */

TEST(the_deleter_runs_once_after_the_last_user) {
  umemDLManagedTensorVersioned tensor = of_numbers();
  umemArray *array = umemArray_from_dlpack(&host, &tensor, &status);
  umemArray *row = umemArray_select(array, 0, 1, &status);
  umemArray_release(array);
  umemDLManagedTensorVersioned *again = umemArray_to_dlpack(row, NULL, &status);
  umemDLManagedTensor *old = umemArray_to_dlpack_unversioned(row, NULL, &status);
  umemArray_release(row);
  assert_int_equal(((int32_t *)again->dl_tensor.data)[0], 3);
  end(again);
  assert_int_equal(deleted, 0);
  old->deleter(old);
  assert_int_equal(deleted, 1);
}

/* Whichever goes last, and nothing is left. */
TEST(the_memory_goes_with_its_last_user) {
  umemDLPackOptions copy = UMEM_DLPACK_OPTIONS_INIT;
  copy.copy = umemDLCopyAlways;
  CONTEXT(umemLimit, limit, &host, 1 << 20);
  for (int first = 0; first < 2; first++) {
    umemArray *array = umemArray_zeros(&limit, umemInt, SHAPE(100), NULL, &status);
    umemDLManagedTensorVersioned *tensor = umemArray_to_dlpack(array, NULL, &status);
    umemDLManagedTensorVersioned *other = umemArray_to_dlpack(array, &copy, &status);
    if (first)
      end(tensor);
    else
      umemArray_release(array);
    assert_true(umemLimit_used(&limit) >= 400);
    if (first)
      umemArray_release(array);
    else
      end(tensor);
    assert_int_equal(umemLimit_used(&limit), 0);
    assert_int_equal(((int32_t *)other->dl_tensor.data)[99], 0); /* has its own memory */
    end(other);
  }
}

TEST(read_only_arrays_stay_so) {
  umemDLManagedTensorVersioned tensor = of_numbers();
  umemDLPackOptions options = UMEM_DLPACK_OPTIONS_INIT;
  tensor.flags = UMEM_DLPACK_READ_ONLY;
  umemArray *array = umemArray_from_dlpack(&host, &tensor, &status);
  assert_true(umemArray_is_read_only(array));
  FAILS(umemArray_set_read_only(array, false, &status), umemNotSupportedError, "read-only");
  umemDLManagedTensorVersioned *again = umemArray_to_dlpack(array, NULL, &status);
  assert_int_equal(again->flags, UMEM_DLPACK_READ_ONLY);
  end(again);
  REFUSES(umemArray_to_dlpack_unversioned(array, NULL, &status), umemNotSupportedError,
          "cannot be read-only: allow a copy");
  options.copy = umemDLCopyIfNeeded;
  umemDLManagedTensor *copy = umemArray_to_dlpack_unversioned(array, &options, &status);
  assert_true(copy->dl_tensor.data != numbers);
  assert_memory_equal(copy->dl_tensor.data, numbers, sizeof numbers);
  copy->deleter(copy);
  umemArray_release(array);
  assert_int_equal(deleted, 1);
}

static void *end_in_thread(void *tensor) {
  end(tensor);
  return &deleted;
}

TEST(another_thread_may_end_a_tensor) {
  umemDLManagedTensorVersioned tensor = of_numbers();
  pthread_t thread[4];
  umemArray *array = umemArray_from_dlpack(&host, &tensor, &status);
  for (int i = 0; i < 4; i++)
    thread[i] = start_thread(end_in_thread, umemArray_to_dlpack(array, NULL, &status));
  umemArray_release(array);
  assert_true(join_threads(thread, 4));
  assert_int_equal(deleted, 1);
}

/* ---- refusals ---- */

#define WRONG(change, type, words)                                                                 \
  do {                                                                                             \
    umemDLManagedTensorVersioned tensor = of_numbers();                                            \
    change;                                                                                        \
    assert_null(umemArray_from_dlpack(&host, &tensor, &status));                                   \
    expect_failure(type, words);                                                                   \
    assert_int_equal(deleted, 0);                                                                  \
  } while (0)

TEST(hostile_tensors_are_refused_and_left) {
  int64_t const big = INT64_MAX;
  int64_t shape[40] = {0};
  WRONG(tensor.version.major = 2, umemNotSupportedError, "version 2.0");
  WRONG(tensor.version.major = 0, umemNotSupportedError, "version 0.0");
  WRONG(tensor.dl_tensor.ndim = -1, umemValueError, "rank -1");
  WRONG(tensor.dl_tensor.ndim = INT32_MAX, umemValueError, "rank 2147483647");
  WRONG((tensor.dl_tensor.ndim = 33, tensor.dl_tensor.shape = shape), umemValueError, "rank 33");
  WRONG(tensor.dl_tensor.shape = NULL, umemValueError, "no shape");
  WRONG(tensor.dl_tensor.data = NULL, umemValueError, "NULL");
  WRONG(tensor.dl_tensor.byte_offset = UINT64_MAX, umemValueError, "address space");
  WRONG(tensor.dl_tensor.dtype.code = 200, umemTypeError, "no type");
  WRONG(tensor.dl_tensor.dtype.bits = 4, umemTypeError, "no type");
  WRONG(tensor.dl_tensor.dtype.lanes = 0, umemTypeError, "no type");
  WRONG(tensor.dl_tensor.device.device_type = 0, umemNotSupportedError, "code 0");
  WRONG(tensor.dl_tensor.device.device_type = 99, umemNotSupportedError, "code 99");
  WRONG(tensor.dl_tensor.device.device_type = umemDLCUDA, umemNotSupportedError, "code 2");
  WRONG(tensor.dl_tensor.shape = ((int64_t[]){-1, 3}), umemValueError, "negative");
  WRONG(tensor.dl_tensor.shape = ((int64_t[]){big, big}), umemValueError, "address space");
  WRONG(tensor.dl_tensor.strides = ((int64_t[]){big, 1}), umemValueError, "address space");
  WRONG(tensor.dl_tensor.strides = ((int64_t[]){big / 4, 1}), umemValueError, "address");
  WRONG(tensor.dl_tensor.strides = ((int64_t[]){INT64_MIN / 4, 1}), umemValueError, "address");
  REFUSES(umemArray_from_dlpack(&host, NULL, &status), umemValueError, "the tensor is NULL");
  REFUSES(umemArray_from_dlpack_unversioned(&host, NULL, &status), umemValueError,
          "the tensor is NULL");
  umemDLManagedTensorVersioned tensor = of_numbers();
  REFUSES(umemArray_from_dlpack(NULL, &tensor, &status), umemValueError, "NULL");
  REFUSES(umemArray_to_dlpack(NULL, NULL, &status), umemValueError, "NULL");
}

/* ---- elements of less than a byte ---- */

TEST(small_elements_have_a_byte_or_fill_bytes) {
  umemElementType const padded = UMEM_ELEMENT(umemCodeFloat4_e2m1fn, 4, 1);
  umemElementType const packed = UMEM_ELEMENT(umemCodeFloat4_e2m1fn, 4, 2);
  umemArray *array = umemArray_zeros(&host, padded, SHAPE(2, 3), NULL, &status);
  umemDLManagedTensorVersioned *tensor = umemArray_to_dlpack(array, NULL, &status);
  assert_int_equal(umemArray_nbytes(array), 6);
  assert_int_equal(tensor->flags, UMEM_DLPACK_SUBBYTE_PADDED);
  umemArray *back = umemArray_from_dlpack(&host, tensor, &status);
  assert_true(umemArray_type(back) == padded);
  umemDLPackOptions options = UMEM_DLPACK_OPTIONS_INIT;
  options.copy = umemDLCopyIfNeeded;
  REFUSES(umemArray_to_dlpack_unversioned(array, &options, &status), umemNotSupportedError,
          "elements of 4 bits in a byte each");
  RELEASE(back, array);
  array = umemArray_zeros(&host, packed, SHAPE(2, 3), NULL, &status);
  umemDLManagedTensor *unversioned = umemArray_to_dlpack_unversioned(array, NULL, &status);
  assert_true(unversioned->dl_tensor.dtype.lanes == 2 && unversioned->dl_tensor.dtype.bits == 4);
  back = umemArray_from_dlpack_unversioned(&host, unversioned, &status);
  assert_true(umemArray_type(back) == packed);
  RELEASE(back, array);
}

TEST(small_elements_that_share_bytes_are_refused) {
  WRONG((tensor.dl_tensor.dtype = (umemDLDataType){17, 4, 1}), umemNotSupportedError,
        "share bytes");
  WRONG((tensor.dl_tensor.dtype = (umemDLDataType){17, 4, 3}), umemTypeError, "no type");
  WRONG((tensor.dl_tensor.dtype = (umemDLDataType){15, 4, 1}), umemTypeError, "no type");
  WRONG((tensor.dl_tensor.dtype = (umemDLDataType){18, 4, 1}), umemTypeError, "no type");
}

/* ---- tensors without an owner ---- */

static void describes(Backend const *row, umemVirtual *ctx) {
  umemDLTensor dl;
  int64_t const shape[] = {4, 3};
  umemArray *whole = umemArray_zeros(ctx, umemInt, SHAPE(4, 6), NULL, &status);
  umemArray *odd = umemArray_slice(whole, 1, 1, 3, 2, &status);
  int native = code_of(row, ctx);
  if (umemArray_describe_dlpack(odd, UMEM_DLPACK_DEFAULT_STREAM, &dl, &status)) {
    assert_true(dl.device.device_type == native && (uintptr_t)dl.data == umemArray_address(odd));
    assert_memory_equal(dl.shape, shape, sizeof shape);
    assert_memory_equal(dl.strides, ((int64_t[]){6, 2}), 16);
    assert_true(dl.ndim == 2 && dl.dtype.code == umemCodeInt && dl.dtype.bits == 32);
    umemDLTensor again;
    assert_true(umemArray_describe_dlpack(odd, UMEM_DLPACK_DEFAULT_STREAM, &again, &status));
    assert_ptr_equal(again.strides, dl.strides);
    umemArray_set_read_only(odd, true, &status);
    assert_false(umemArray_describe_dlpack(odd, UMEM_DLPACK_DEFAULT_STREAM, &dl, &status));
    expect_failure(umemNotSupportedError, "cannot be read-only");
  } else {
    assert_int_equal(native, 0);
    expect_failure(umemNotSupportedError, "allow a copy");
  }
  umem_clear_status(ctx);
  RELEASE(odd, whole);
}

TEST(tensors_without_an_owner_describe_arrays_on_every_context) {
  assert_true(for_each_backend(describes) > 0);
}

static void *describe_in_thread(void *array) {
  umemDLTensor dl = {.ndim = -1};
  bool done = umemArray_describe_dlpack(array, UMEM_DLPACK_DEFAULT_STREAM, &dl, NULL);
  return done && dl.strides[0] == 3 && dl.strides[1] == 1 ? array : NULL;
}

TEST(threads_describe_one_array) {
  for (int round = 0; round < 50; round++) {
    umemArray *array = umemArray_zeros(&host, umemInt, SHAPE(2, 3), NULL, &status);
    pthread_t thread[4];
    for (int i = 0; i < 4; i++) thread[i] = start_thread(describe_in_thread, array);
    assert_true(join_threads(thread, 4));
    umemArray_release(array);
  }
}

TEST(descriptions_are_refused) {
  umemDLTensor dl;
  umemArray *array = umemArray_zeros(&host, umemInt, SHAPE(2, 3), NULL, &status);
#define NO(call, type, words)                                                                      \
  do {                                                                                             \
    assert_false(call);                                                                            \
    expect_failure(type, words);                                                                   \
  } while (0)
  NO(umemArray_describe_dlpack(NULL, 1, &dl, &status), umemValueError, "NULL");
  NO(umemArray_describe_dlpack(array, -1, NULL, &status), umemValueError, "the tensor is NULL");
  NO(umemArray_describe_dlpack(array, 1, &dl, &status), umemValueError, "have no stream");
  umemArray_release(array);
  array =
      umemArray_zeros(&host, UMEM_ELEMENT(umemCodeFloat6_e2m3fn, 6, 1), SHAPE(2), NULL, &status);
  NO(umemArray_describe_dlpack(array, -1, &dl, &status), umemNotSupportedError, "of 6 bits");
  umemArray_release(array);
#undef NO
}

/* ---- the function after the end ---- */

static void count_user(void *user) { ++*(int *)user; }

TEST(the_end_of_a_tensor_is_reported_once) {
  int ends = 0;
  umemDLPackOptions options = UMEM_DLPACK_OPTIONS_INIT;
  options.ended = count_user;
  options.user = &ends;
  umemArray *array = umemArray_zeros(&host, umemInt, SHAPE(2, 3), NULL, &status);
  umemDLManagedTensorVersioned *one = umemArray_to_dlpack(array, &options, &status);
  umemDLManagedTensor *other = umemArray_to_dlpack_unversioned(array, &options, &status);
  options.device = umemDLCUDA;
  REFUSES(umemArray_to_dlpack(array, &options, &status), umemNotSupportedError, "device code 2");
  umemArray_release(array);
  assert_int_equal(ends, 0);
  end(one);
  assert_int_equal(ends, 1);
  other->deleter(other);
  assert_int_equal(ends, 2);
}

/* ---- tables of functions ---- */

static int makes_nothing(void *object UNUSED, umemDLManagedTensorVersioned **tensor UNUSED) {
  return -1;
}

TEST(a_chain_of_tables_is_searched_for_the_version) {
  umemDLPackExchange tables[20];
  for (int i = 0; i < 20; i++)
    tables[i] = (umemDLPackExchange){.header = {{2, 0}, i ? &tables[i - 1].header : NULL},
                                     .managed_tensor_from_py_object_no_sync = makes_nothing};
  tables[0].header.version = (umemDLPackVersion){1, 2};
  for (int i = 0; i < 16; i++)
    assert_ptr_equal(umem_find_dlpack_exchange(&tables[i].header, &status), &tables[0]);
  REFUSES(umem_find_dlpack_exchange(&tables[19].header, &status), umemValueError, "more than 16");
  tables[3].header.previous = &tables[3].header;
  REFUSES(umem_find_dlpack_exchange(&tables[3].header, &status), umemValueError, "more than 16");
  tables[3].header.previous = NULL;
  REFUSES(umem_find_dlpack_exchange(&tables[5].header, &status), umemNotSupportedError,
          "version 2.0");
  tables[0].managed_tensor_from_py_object_no_sync = NULL;
  REFUSES(umem_find_dlpack_exchange(&tables[2].header, &status), umemValueError, "cannot make");
  REFUSES(umem_find_dlpack_exchange(NULL, &status), umemValueError, "NULL");
}

/* Nothing of a context is used that has ended. */
TEST(a_context_that_has_ended_is_found) {
  umemHost other;
  assert_ok(umemHost_ctor(&other));
  SCOPED(release_array)
  umemArray *array = umemArray_borrow(&other, (uintptr_t)numbers, umemInt, SHAPE(6), NULL, &status);
  umem_dtor(&other);
  REFUSES(umemArray_to_dlpack(array, NULL, &status), umemValueError, "not constructed");
  umemDLManagedTensorVersioned tensor = of_numbers();
  REFUSES(umemArray_from_dlpack(&other, &tensor, &status), umemValueError, "not constructed");
  assert_int_equal(deleted, 0);
}

/* A sequence of calls that has failed neither takes nor makes a tensor. */
TEST(a_failed_status_leaves_tensors_alone) {
  umemStatusType failed = umemIOError;
  umemDLManagedTensorVersioned tensor = of_numbers();
  umemArray *array = umemArray_from_dlpack(&host, &tensor, &status);
  assert_null(umemArray_from_dlpack(&host, &tensor, &failed));
  assert_null(umemArray_to_dlpack(array, NULL, &failed));
  assert_null(umemArray_to_dlpack_unversioned(array, NULL, &failed));
  assert_int_equal(failed, umemIOError);
  assert_int_equal(deleted, 0);
  umemArray_release(array);
  assert_int_equal(deleted, 1);
}

TEST(options_are_checked) {
  umemDLManagedTensorVersioned tensor = of_numbers();
  SCOPED(release_array) umemArray *array = umemArray_from_dlpack(&host, &tensor, &status);
  umemDLPackOptions options = UMEM_DLPACK_OPTIONS_INIT;
  options.copy = (umemDLPackCopy)3;
  REFUSES(umemArray_to_dlpack(array, &options, &status), umemValueError, "3 is no umemDLPackCopy");
  options = (umemDLPackOptions){.size = 4};
  REFUSES(umemArray_to_dlpack(array, &options, &status), umemValueError, "umemDLPackOptions");
}
