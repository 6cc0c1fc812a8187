/* arrow.c - columns for umemArray_from_arrow, as libFuzzer makes them up. A column that passes
 * becomes an array of its length, whose elements stay in the address space, and its release runs
 * once. A column that does not pass stays with the caller. Bits are read only where they are. */
#include "numbers.h"

static int ended;
static void end_column(umemArrowArray *self) {
  self->release = NULL;
  ended++;
}
static void end_schema(umemArrowSchema *self) { self->release = NULL; }

/* There are as many bits as a column of this length and offset reads, if that is little. */
static bool has_bits(umemArrowArray const *array) {
  return array->length >= 0 && array->offset >= 0 && array->length < 4096 && array->offset < 4096;
}

static void check(umemHost *host, umemArrowSchema *schema, umemArrowDeviceArray *column,
                  bool wants_validity) {
  umemArrowArray const given = column->array;
  umemArray *validity = NULL;
  umemArray *array =
      umemArray_from_arrow(host, schema, column, wants_validity ? &validity : NULL, NULL);
  if (!array) {
    expect(!ended && !validity && umem_thread_status() != umemOK);
    expect(!memcmp(&given, &column->array, sizeof given));
    umem_thread_clear();
    umem_clear_status(host);
    return;
  }
  expect(!column->array.release && umemArray_rank(array) == 1);
  expect(umemArray_elements(array) == given.length);
  expect(umemArray_nbytes(array) <= UINTPTR_MAX - umemArray_address(array));
  if (validity) expect(umemArray_elements(validity) == given.length);
  expect(ended == (umemArray_type(array) == umemBool));
  umemArray_release(array);
  umemArray_release(validity);
  expect(ended == 1);
}

int LLVMFuzzerTestOneInput(unsigned char const *data, size_t size) {
  SCOPED(umem_dtor) umemHost host;
  static uint8_t bits[2048];
  char format[24] = "";
  expect(umemHost_ctor(&host) == umemOK);
  int64_t flags = number(&data, &size), length = number(&data, &size) & 15;
  for (int64_t i = 0; i < length; i++) format[i] = (char)number(&data, &size);
  if (flags & 1) strcpy(format, flags & 2 ? "b" : "l");
  void const *buffers[3] = {flags & 4 ? bits : NULL, flags & 8 ? NULL : bits, NULL};
  umemArrowSchema schema = {.format = format, .release = flags & 16 ? NULL : end_schema};
  umemArrowDeviceArray column = {.array = {.length = number(&data, &size),
                                           .null_count = number(&data, &size) - 1,
                                           .offset = number(&data, &size),
                                           .n_buffers = flags & 32 ? number(&data, &size) : 2,
                                           .buffers = flags & 64 ? NULL : buffers,
                                           .release = end_column},
                                 .device_id = -1,
                                 .device_type = flags & 128 ? (int)number(&data, &size) : 1};
  for (size_t i = 0; i < sizeof bits && i < size; i++) bits[i] = data[i];
  if (!has_bits(&column.array)) { /* they would be read */
    buffers[0] = NULL;
    if (!strcmp(format, "b")) format[0] = 'c';
  }
  ended = 0;
  check(&host, &schema, &column, flags & 256);
  return 0;
}
