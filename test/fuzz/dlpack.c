/* dlpack.c - tensors for umemArray_from_dlpack, as libFuzzer makes them up. A tensor that passes
 * becomes an array of its shape, whose elements stay in the address space. The array can be
 * exported as the same tensor, and its deleter runs once. A tensor that does not pass stays with
 * the caller. Nobody reads the memory. Chains of tables, with rings in them, end. */
#include "numbers.h"

static int ended;
static void end(umemDLManagedTensorVersioned *self) {
  (void)self;
  ended++;
}
static void end_unversioned(umemDLManagedTensor *self) {
  (void)self;
  ended++;
}

/* Strides of dimensions without a second element mean nothing. */
static void expect_same(umemArray *array, umemDLTensor const *dl) {
  umemDLManagedTensorVersioned *out = umemArray_to_dlpack(array, NULL, NULL);
  expect(out && out->dl_tensor.ndim == dl->ndim && out->dl_tensor.byte_offset == 0);
  expect(!memcmp(&out->dl_tensor.dtype, &dl->dtype, sizeof dl->dtype));
  bool some = umemArray_elements(array) > 0;
  uintptr_t first = some ? (uintptr_t)dl->data + (uintptr_t)dl->byte_offset : 0;
  expect((uintptr_t)out->dl_tensor.data == first);
  for (int k = 0; k < dl->ndim; k++) {
    expect(out->dl_tensor.shape[k] == dl->shape[k]);
    if (some && dl->strides && dl->shape[k] > 1)
      expect(out->dl_tensor.strides[k] == dl->strides[k]);
  }
  out->deleter(out);
}

static void check(umemHost *host, umemArray *array, umemDLTensor const *dl) {
  if (!array) {
    expect(ended == 0 && umem_thread_status() != umemOK);
    umem_thread_clear();
    umem_clear_status(host);
    return;
  }
  expect(umemArray_rank(array) == dl->ndim && ended == 0);
  uintptr_t low = umemArray_address(array), high = low;
  for (int k = 0; k < dl->ndim; k++) {
    expect(umemArray_extent(array, k) == dl->shape[k]);
    if (!umemArray_elements(array)) continue;
    int64_t span = umemArray_stride(array, k) * (dl->shape[k] - 1);
    uintptr_t *side = span < 0 ? &low : &high;
    expect(span < 0 ? low >= (uintptr_t)-span : high <= UINTPTR_MAX - (uintptr_t)span);
    *side += (uintptr_t)span;
  }
  expect_same(array, dl);
  umemArray_release(array);
  expect(ended == 1);
}

static int makes_nothing(void *object, umemDLManagedTensorVersioned **tensor) {
  (void)object;
  (void)tensor;
  return -1;
}

/* What is found is a table of the chain of the first, has the version and can make tensors. */
static void check_tables(unsigned char const *data, size_t size) {
  enum { count = 24 };
  umemDLPackExchange tables[count] = {0};
  for (int i = 0; i < count; i++) {
    int64_t choice = number(&data, &size);
    umemDLPackExchangeHeader *next = &tables[(choice & 31) % count].header;
    tables[i].header.version.major = choice & 32 ? (uint32_t)choice : 1 + !(choice & 64);
    tables[i].header.previous = (choice & 31) >= count ? NULL : next;
    if (choice & 128) tables[i].managed_tensor_from_py_object_no_sync = makes_nothing;
  }
  umemDLPackExchange const *found = umem_find_dlpack_exchange(&tables[0].header, NULL);
  umemDLPackExchangeHeader const *first = &tables[0].header;
  for (int i = 0; i < 16 && first && first->version.major != 1; i++) first = first->previous;
  expect(!found || (&found->header == first && found->managed_tensor_from_py_object_no_sync));
  expect(found || umem_thread_status() != umemOK);
  umem_thread_clear();
}

int LLVMFuzzerTestOneInput(unsigned char const *data, size_t size) {
  SCOPED(umem_dtor) umemHost host;
  check_tables(data, size);
  int64_t shape[40], strides[40];
  expect(umemHost_ctor(&host) == umemOK);
  int64_t flags = number(&data, &size);
  umemDLTensor dl = {.data = flags & 1 ? NULL : (void *)(4096 + (uintptr_t)number(&data, &size)),
                     .device = {flags & 2 ? (int32_t)number(&data, &size) : umemDLCPU, 0},
                     .ndim = (int32_t)number(&data, &size),
                     .dtype = {2, 32, 1},
                     .shape = flags & 4 ? NULL : shape,
                     .strides = flags & 8 ? NULL : strides,
                     .byte_offset = (uint64_t)number(&data, &size)};
  if (flags & 16)
    dl.dtype = (umemDLDataType){(uint8_t)number(&data, &size), (uint8_t)number(&data, &size),
                                (uint16_t)number(&data, &size)};
  for (int k = 0; k < 40; k++) shape[k] = number(&data, &size);
  for (int k = 0; k < 40; k++) strides[k] = number(&data, &size);
  umemDLManagedTensorVersioned tensor = {.version = {flags & 32 ? 2 : 1, 0},
                                         .deleter = end,
                                         .flags = (uint64_t)(flags & 64) |
                                                  (flags & 128 ? UMEM_DLPACK_SUBBYTE_PADDED : 0),
                                         .dl_tensor = dl};
  umemDLManagedTensor old = {.deleter = end_unversioned, .dl_tensor = dl};
  ended = 0;
  check(&host, umemArray_from_dlpack(&host, &tensor, NULL), &dl);
  ended = 0;
  check(&host, umemArray_from_dlpack_unversioned(&host, &old, NULL), &dl);
  return 0;
}
