/* dlpack.c - tensors for umemArray_from_dlpack, as libFuzzer makes them up. Memory is never read: a tensor that passes
 * has an array of its shape, whose elements stay in the address space, and its deleter runs once. */
#include <stdlib.h>
#include <string.h>

#include <umem.h>

int LLVMFuzzerTestOneInput(unsigned char const *data, size_t size);

static int ended;
static void end(umemDLManagedTensorVersioned *self) {
  (void)self;
  ended++;
}
static void end_unversioned(umemDLManagedTensor *self) {
  (void)self;
  ended++;
}

static void expect(bool holds) {
  if (!holds) abort();
}

/* Small numbers, which pass more often, and whole ones. */
static int64_t number(unsigned char const **data, size_t *size) {
  int64_t value = 0;
  size_t bytes = *size && **data & 1 ? sizeof value : 1;
  if (*size < bytes) bytes = *size;
  memcpy(&value, *data, bytes);
  *data += bytes;
  *size -= bytes;
  return bytes == 1 ? value >> 1 : value;
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
  umemArray_release(array);
  expect(ended == 1);
}

int LLVMFuzzerTestOneInput(unsigned char const *data, size_t size) {
  umemHost host;
  int64_t shape[40], strides[40];
  expect(umemHost_ctor(&host) == umemOK);
  int64_t flags = number(&data, &size);
  umemDLTensor dl = {.data = flags & 1 ? NULL : (void *)(uintptr_t)(4096 + number(&data, &size)),
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
  umemDLManagedTensorVersioned tensor = {
      .version = {flags & 32 ? 2 : 1, 0}, .deleter = end, .dl_tensor = dl};
  umemDLManagedTensor old = {.deleter = end_unversioned, .dl_tensor = dl};
  ended = 0;
  check(&host, umemArray_from_dlpack(&host, &tensor, NULL), &dl);
  ended = 0;
  check(&host, umemArray_from_dlpack_unversioned(&host, &old, NULL), &dl);
  umem_dtor(&host);
  return 0;
}
