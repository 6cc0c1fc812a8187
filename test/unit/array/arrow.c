/* arrow.c - umem/arrow.h: columns out and in on contexts of every kind; formats; missing elements;
 * structs that are wrong; who ends them; events of GPUs. */
#include "array_gpu.h"

#include "unit/each_backend.h"

/* ---- columns of others ---- */

static int released;
static void count_column(umemArrowArray *self) {
  released++;
  self->release = NULL;
}
static void keep_schema(umemArrowSchema *self) { self->release = NULL; }

static int32_t numbers[6] = {0, 1, 2, 3, 4, 5};
static uint8_t bits[1] = {0x2b}; /* all but 2 and 4 */
static void const *buffers[2] = {NULL, numbers};
static umemArrowSchema const int32s = {.format = "i", .release = keep_schema};

static umemArrowDeviceArray of_numbers(void) {
  released = 0;
  buffers[0] = NULL;
  buffers[1] = numbers;
  return (umemArrowDeviceArray){
      .array = {.length = 6, .n_buffers = 2, .buffers = buffers, .release = count_column},
      .device_id = -1,
      .device_type = umemDLCPU};
}

static void end(umemArrowSchema *schema, umemArrowDeviceArray *column) {
  schema->release(schema);
  column->array.release(&column->array);
  assert_true(!schema->release && !column->array.release);
}

/* ---- every context ---- */

static void expect_flags(umemArray *array, char const *expected) {
  SCOPED(release_array) umemArray *copy = umemArray_copy(array, &host, umemOrderC, &status);
  assert_ok(umem_synchronize(umemArray_context(array)));
  uint8_t const *found = umemArray_host_pointer(copy, false, &status);
  for (size_t i = 0; expected[i]; i++) assert_int_equal(found[i], expected[i] - '0');
}

static void goes_out_and_in(Backend const *row UNUSED, umemVirtual *ctx) {
  umemArrowSchema schema;
  umemArrowDeviceArray column;
  uint8_t const flags[9] = {1, 0, 1, 1, 1, 1, 1, 1, 0};
  umemArray *ram = umemArray_borrow(&host, (uintptr_t)flags, umemBool, SHAPE(9), NULL, &status);
  umemArray *there = umemArray_copy(ram, ctx, umemOrderC, &status);
  int32_t seven = 7;
  umemArray *array = umemArray_full(ctx, umemInt, SHAPE(9), NULL, &seven, &status);
  umemArrowOptions options = {.size = sizeof options, .validity = there, .name = "x"};
  if (umemArray_to_arrow(array, &options, &schema, &column, &status)) {
    assert_string_equal(schema.format, "i");
    assert_string_equal(schema.name, "x");
    assert_int_equal(column.array.length, 9);
    assert_int_equal(column.array.null_count, -1);
    assert_true((uintptr_t)column.array.buffers[1] == umemArray_address(array));
    umemArray *validity = NULL;
    umemArray *back = umemArray_from_arrow(ctx, &schema, &column, &validity, &status);
    assert_true(umemArray_address(back) == umemArray_address(array));
    assert_true(umemArray_is_read_only(back) && !column.array.release);
    umemArray_set_read_only(back, false, &status);
    expect_failure(umemNotSupportedError, "the array stays read-only");
    expect_flags(validity, "101111110");
    schema.release(&schema);
    RELEASE(back, validity);
    assert_true(umemArray_to_arrow(there, NULL, &schema, &column, &status));
    umemArray *bools = umemArray_from_arrow(ctx, &schema, &column, NULL, &status);
    expect_flags(bools, "101111110");
    umemArray_release(bools);
    schema.release(&schema);
    assert_null(column.array.release);
  } else {
    assert_true(can(ctx, umemOffsets) || !can(ctx, umemCpuReadable));
    expect_failure(umemNotSupportedError, "no pointers: copy the array");
    umem_clear_status(ctx);
  }
  RELEASE(array, there, ram);
}

TEST(columns_of_every_context_go_out_and_in) { assert_true(for_each_backend(goes_out_and_in) > 0); }

/* ---- formats ---- */

static void round_trip(umemElementType type, char const *format) {
  umemArrowSchema schema;
  umemArrowDeviceArray column;
  umemArray *array = umemArray_zeros(&host, type, SHAPE(3), NULL, &status);
  assert_true(umemArray_to_arrow(array, NULL, &schema, &column, &status));
  assert_string_equal(schema.format, format);
  umemArray *back = umemArray_from_arrow(&host, &schema, &column, NULL, &status);
  assert_true(umemArray_type(back) == type);
  schema.release(&schema);
  RELEASE(back, array);
}

TEST(types_have_formats) {
  round_trip(umemInt8, "c");
  round_trip(umemUInt8, "C");
  round_trip(umemInt16, "s");
  round_trip(umemUInt16, "S");
  round_trip(umemInt32, "i");
  round_trip(umemUInt32, "I");
  round_trip(umemInt64, "l");
  round_trip(umemUInt64, "L");
  round_trip(umemFloat16, "e");
  round_trip(umemFloat32, "f");
  round_trip(umemFloat64, "g");
  round_trip(umemBool, "b");
  round_trip(UMEM_ELEMENT(umemCodeHandle, 8, 1), "w:1");
  round_trip(UMEM_ELEMENT(umemCodeHandle, 8, 65535), "w:65535");
}

TEST(other_formats_are_those_of_integers) {
  struct {
    char const *format;
    umemElementType type;
  } const rows[] = {{"tdD", umemInt32}, {"tdm", umemInt64},     {"tts", umemInt32},
                    {"ttn", umemInt64}, {"tsu:UTC", umemInt64}, {"tss:", umemInt64},
                    {"tDn", umemInt64}, {"tiM", umemInt32}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    umemArrowSchema given = {.format = rows[i].format, .release = keep_schema}, schema;
    umemArrowDeviceArray column = of_numbers();
    column.array.length = 3;
    umemArray *array = umemArray_from_arrow(&host, &given, &column, NULL, &status);
    assert_true(umemArray_type(array) == rows[i].type);
    umemArrowOptions options = {.size = sizeof options, .format = rows[i].format};
    assert_true(umemArray_to_arrow(array, &options, &schema, &column, &status));
    assert_string_equal(schema.format, rows[i].format);
    end(&schema, &column);
    assert_int_equal(released, 0);
    umemArray_release(array);
    assert_int_equal(released, 1);
  }
}

/* ---- missing elements ---- */

TEST(missing_elements_need_a_second_array) {
  umemArray *validity = NULL;
  umemArrowDeviceArray column = of_numbers();
  buffers[0] = bits;
  column.array.null_count = 2;
  REFUSES(umemArray_from_arrow(&host, &int32s, &column, NULL, &status), umemNotSupportedError,
          "ask for its validity");
  assert_int_equal(released, 0);
  SCOPED(release_array)
  umemArray *array = umemArray_from_arrow(&host, &int32s, &column, &validity, &status);
  expect_flags(validity, "110101");
  RELEASE(array, validity);
  assert_int_equal(released, 1);
  column = of_numbers();
  buffers[0] = bits;
  column.array.null_count = -1; /* unknown */
  column.array.length = 1;
  column.array.offset = 3;
  array = umemArray_from_arrow(&host, &int32s, &column, &validity, &status);
  assert_null(validity);
  assert_int_equal(*(int32_t const *)umemArray_host_pointer(array, false, &status), 3);
}

/* ---- refusals ---- */

#define WRONG(change, type, words)                                                                 \
  do {                                                                                             \
    umemArrowSchema schema = int32s;                                                               \
    umemArrowDeviceArray column = of_numbers();                                                    \
    change;                                                                                        \
    assert_null(umemArray_from_arrow(&host, &schema, &column, NULL, &status));                     \
    expect_failure(type, words);                                                                   \
    assert_true(released == 0 && schema.release);                                                  \
  } while (0)

TEST(hostile_columns_are_refused_and_left) {
  WRONG(column.array.length = -1, umemValueError, "out of range");
  WRONG(column.array.offset = INT64_MAX, umemValueError, "out of range");
  WRONG(column.array.offset = INT64_MAX / 2, umemValueError, "address");
  WRONG(column.array.length = INT64_MAX / 2, umemValueError, "address");
  WRONG(column.array.null_count = -2, umemValueError, "out of range");
  WRONG(column.array.null_count = 7, umemValueError, "more are missing");
  WRONG(column.array.null_count = 1, umemValueError, "no bits");
  WRONG(column.array.n_buffers = 3, umemValueError, "two buffers");
  WRONG(column.array.n_children = 1, umemValueError, "two buffers");
  WRONG(column.array.buffers = NULL, umemValueError, "two buffers");
  WRONG(buffers[1] = NULL, umemValueError, "are NULL");
  WRONG(column.array.dictionary = &column.array, umemNotSupportedError, "dictionary");
  WRONG(schema.dictionary = &schema, umemNotSupportedError, "dictionary");
  WRONG(schema.format = NULL, umemValueError, "no format");
  WRONG(schema.format = "w:0", umemTypeError, "\"w:0\"");
  WRONG(schema.format = "w:65536", umemTypeError, "fixed width");
  WRONG(schema.format = "+s", umemTypeError, "fixed width");
  WRONG(schema.format = "tsu", umemTypeError, "fixed width");
  WRONG(column.device_type = umemDLCUDA, umemNotSupportedError, "device code 2");
  WRONG(column.sync_event = &column, umemNotSupportedError, "cannot wait");
  umemArrowDeviceArray column = of_numbers();
  column.array.release = NULL;
  REFUSES(umemArray_from_arrow(&host, &int32s, &column, NULL, &status), umemValueError, "released");
  REFUSES(umemArray_from_arrow(&host, &int32s, NULL, NULL, &status), umemValueError, "NULL");
  REFUSES(umemArray_from_arrow(&host, NULL, &column, NULL, &status), umemValueError, "NULL");
}

#define NO(change, type, words)                                                                    \
  do {                                                                                             \
    umemArrowSchema schema;                                                                        \
    umemArrowDeviceArray column;                                                                   \
    umemArrowOptions options = UMEM_ARROW_OPTIONS_INIT;                                            \
    umemArray *array = whole;                                                                      \
    change;                                                                                        \
    assert_false(umemArray_to_arrow(array, &options, &schema, &column, &status));                  \
    expect_failure(type, words);                                                                   \
  } while (0)

static void count_end(void *user) { ++*(int *)user; }

TEST(exports_are_refused) {
  int ends = 0;
  umemArray *whole = umemArray_zeros(&host, umemInt, SHAPE(6), NULL, &status);
  umemArray *odd = umemArray_slice(whole, 0, 0, 3, 2, &status);
  umemArray *plane = umemArray_reshape(whole, SHAPE(2, 3), &status);
  umemArray *complex = umemArray_zeros(&host, umemComplexDouble, SHAPE(6), NULL, &status);
  NO(array = odd, umemNotSupportedError, "gaps");
  NO(array = plane, umemValueError, "one dimension, and the array 2");
  NO(array = complex, umemTypeError, "no elements of complex128");
  NO(array = NULL, umemValueError, "NULL");
  NO(options.validity = whole, umemValueError, "6 booleans");
  NO(options.format = "l", umemValueError, "4 bytes cannot have the format");
  NO(options.format = "b", umemValueError, "format \"b\"");
  NO(options.size = 4, umemValueError, "umemArrowOptions");
  NO((options.ended = count_end, options.user = &ends, options.format = ""), umemValueError,
     "\"\"");
  assert_int_equal(ends, 0);
  umemArrowSchema schema;
  umemArrowDeviceArray column;
  umemArrowOptions options = {.size = sizeof options, .ended = count_end, .user = &ends};
  assert_true(umemArray_to_arrow(whole, &options, &schema, &column, &status));
  RELEASE(complex, plane, odd, whole);
  assert_int_equal(ends, 0);
  end(&schema, &column);
  assert_int_equal(ends, 1);
}

/* ---- events ---- */

static uintptr_t written;
static void write_seven(void *unused UNUSED) {
  assert_true(fake_cudart_poke(written, &(int32_t){7}, 4));
}

/* The producer's kernel is queued, and the double runs it as late as it may. */
static int32_t read_after_event(void *ctx, bool waits) {
  void *event;
  int32_t found = 0;
  CONTEXT(umemCudaAsync, producer, 0, UMEM_STREAM_NEW);
  SCOPED(release_array)
  umemArray *memory = umemArray_zeros(&producer, umemInt, SHAPE(6), NULL, &status);
  assert_ok(umem_synchronize(&producer));
  void *stream = (void *)umemCudaAsync_stream(&producer);
  written = umemArray_address(memory);
  umemArrowDeviceArray column = of_numbers();
  buffers[1] = (void *)written;
  column.device_type = umemDLCUDA;
  column.device_id = 0;
  enter(0);
  assert_int_equal(fake_cudart_launch(stream, write_seven, NULL), 0);
  assert_int_equal(rt->event_create(&event), 0);
  assert_int_equal(rt->event_record(event, stream), 0);
  leave(0);
  column.sync_event = waits ? &event : NULL;
  umemArray *array = umemArray_from_arrow(ctx, &int32s, &column, NULL, &status);
  umem_copy_to(ctx, umemArray_address(array), &host, (uintptr_t)&found, sizeof found);
  assert_ok(umem_synchronize(ctx));
  umemArray_release(array);
  assert_ok(umem_synchronize(&producer));
  enter(0);
  assert_int_equal(rt->event_destroy(event), 0);
  leave(0);
  return found;
}

GPU_TEST(work_comes_after_the_event_of_a_column) {
  CONTEXT(umemCudaAsync, ordered, 0, UMEM_STREAM_NEW);
  CONTEXT(umemCuda, legacy, 0);
  assert_int_equal(read_after_event(&ordered, true), 7);
  assert_int_equal(read_after_event(&legacy, true), 7);
  assert_int_equal(read_after_event(&ordered, false), 0); /* the test would find a missing wait */
}
