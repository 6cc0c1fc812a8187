/* arrow.c - exchanges columns with Arrow, in both directions. */
#include "array/array_handle.h"
#include "core/context.h"
#include "core/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <umem/arrow.h>

/* ---- formats ---- */

static struct {
  char const *format;
  umemElementType type;
} const formats[] = {{"c", umemInt8},
                     {"C", umemUInt8},
                     {"s", umemInt16},
                     {"S", umemUInt16},
                     {"i", umemInt32},
                     {"I", umemUInt32},
                     {"l", umemInt64},
                     {"L", umemUInt64},
                     {"e", umemFloat16},
                     {"f", umemFloat32},
                     {"g", umemFloat64},
                     {"b", umemBool},
                     /* from here on other words for integers: days, seconds, ... */
                     {"tdD", umemInt32},
                     {"tdm", umemInt64},
                     {"tts", umemInt32},
                     {"ttm", umemInt32},
                     {"ttu", umemInt64},
                     {"ttn", umemInt64},
                     {"tDs", umemInt64},
                     {"tDm", umemInt64},
                     {"tDu", umemInt64},
                     {"tDn", umemInt64},
                     {"tiM", umemInt32}};
enum { format_count = sizeof formats / sizeof *formats };

/* "w:16": bytes. */
static umemElementType read_width(char const *text) {
  unsigned width = 0;
  for (; *text >= '0' && *text <= '9' && width <= 65535; text++)
    width = 10 * width + (unsigned)(*text - '0');
  return *text || !width || width > 65535 ? 0 : UMEM_ELEMENT(umemCodeHandle, 8, width);
}

/* 0 for a format without a fixed width, or of more than one value. */
static umemElementType type_of(char const *format) {
  bool is_time = !strncmp(format, "ts", 2) && format[2] && strchr("smun", format[2]);
  if (is_time && format[3] == ':') return umemInt64; /* behind it the name of a zone */
  if (!strncmp(format, "w:", 2)) return read_width(format + 2);
  for (int i = 0; i < format_count; i++)
    if (!strcmp(format, formats[i].format)) return formats[i].type;
  return 0;
}

/* The format of a type in text; false, and a status, if Arrow has none. */
static bool write_format(umemElementType type, char text[16]) {
  for (int i = 0; i < format_count; i++)
    if (formats[i].type == type) return snprintf(text, 16, "%s", formats[i].format) > 0;
  if (umem_element_code(type) == umemCodeHandle && umem_element_bits(type) == 8)
    return snprintf(text, 16, "w:%u", umem_element_lanes(type)) > 0;
  char name[40];
  umem_element_name(type, name, sizeof name);
  return UMEM_FAIL(NULL, umemTypeError,
                   "Arrow has no elements of %s: take them for integers of the same size", name);
}

/* ---- booleans and bits ---- */

static bool is_in_ram(umemVirtual *ctx) {
  return umem_can(ctx, umemCpuReadable) && !umem_can(ctx, umemOffsets);
}

/* array itself, retained, or a copy in memory that the CPU reads now. NULL, and a status. */
static umemArray *in_ram(umemArray *array) {
  umemVirtual *ctx = array->ctx;
  if (!is_in_ram(ctx)) return umem_array_copy_now(array, ctx->host);
  return umem_finish(ctx) == umemOK ? umemArray_retain(array) : NULL;
}

/* made, which is taken over, or a copy of it on ctx. NULL, and a status. */
static umemArray *move_to(umemVirtual *ctx, umemArray *made) {
  if (!made || made->ctx == ctx) return made;
  umemArray *copy = umem_array_copy_now(made, ctx);
  umemArray_release(made);
  return copy;
}

/* A new array of bytes for work of the CPU: on ctx, or in its host memory. */
static umemArray *new_bytes(umemVirtual *ctx, umemElementType type, int64_t count) {
  umemStatusType made = umemOK;
  bool writes = is_in_ram(ctx) && umem_can(ctx, umemCpuWritable | umemWritable);
  return umemArray_create(writes ? (void *)ctx : ctx->host, type, 1, &count, NULL, &made);
}

/* count booleans on ctx of the bits at adr from bit `first` on. NULL, and a status. */
static umemArray *unpack(umemVirtual *ctx, uintptr_t adr, int64_t first, int64_t count) {
  umemStatusType borrowed = umemOK;
  int64_t nbytes = (first % 8 + count + 7) / 8;
  umemArray *bits =
      umemArray_borrow(ctx, adr + (uintptr_t)(first / 8), umemUInt8, 1, &nbytes, NULL, &borrowed);
  umemArray *source = bits ? in_ram(bits) : NULL;
  umemArray *made = source ? new_bytes(ctx, umemBool, count) : NULL;
  if (made) {
    uint8_t const *from = (uint8_t const *)source->adr;
    uint8_t *to = (uint8_t *)made->adr;
    for (int64_t i = 0, bit = first % 8; i < count; i++, bit++)
      to[i] = from[bit / 8] >> bit % 8 & 1;
  }
  umemArray_release(source);
  umemArray_release(bits);
  return move_to(ctx, made);
}

/* The bits of an array of booleans, on its context. NULL, and a status. */
static umemArray *pack(umemArray *array) {
  int64_t nbytes = (array->elements + 7) / 8;
  umemArray *source = in_ram(array);
  umemArray *made = source ? new_bytes(array->ctx, umemUInt8, nbytes) : NULL;
  if (made && nbytes) {
    int64_t stride = umem_array_strides(source)[0];
    uint8_t *to = memset((void *)made->adr, 0, (size_t)nbytes);
    for (int64_t i = 0; i < source->elements; i++)
      if (*(uint8_t const *)(source->adr + (uintptr_t)(i * stride)))
        to[i / 8] = (uint8_t)(to[i / 8] | 1 << i % 8);
  }
  umemArray_release(source);
  return move_to(array->ctx, made);
}

/* ---- export ---- */

/* What the memory of a column is kept alive by. */
typedef struct Column {
  umemArray *values, *bits; /* retained; bits may be NULL */
  void const *buffers[2];
  void (*ended)(void *user);
  void *user;
} Column;

static void release_schema(umemArrowSchema *self) {
  self->release = NULL;
  free(self->private_data);
}

static bool fill_schema(umemArrowSchema *schema, char const *format, char const *name) {
  size_t length = strlen(format) + 1, all = length + (name ? strlen(name) : 0) + 1;
  char *text = malloc(all);
  if (!text) return UMEM_FAIL(NULL, umemMemoryError, "no memory for a schema");
  snprintf(text, length, "%s", format);
  snprintf(text + length, all - length, "%s", name ? name : "");
  enum { nullable = 2 };
  *schema = (umemArrowSchema){.format = text,
                              .name = text + length,
                              .flags = nullable,
                              .release = release_schema,
                              .private_data = text};
  return true;
}

static bool check_export(umemArray *array, umemArrowOptions const *options) {
  umemArray const *validity = options->validity;
  if (array->rank != 1)
    return UMEM_FAIL(NULL, umemValueError, "Arrow has one dimension, and the array %d: reshape it",
                     array->rank);
  if (validity && (validity->rank != 1 || validity->elements != array->elements ||
                   validity->type != umemBool || validity->ctx != array->ctx))
    return UMEM_FAIL(NULL, umemValueError,
                     "the validity must be %jd booleans on the context of the array",
                     (intmax_t)array->elements);
  if (array->type != umemBool && !umemArray_is_c_contiguous(array))
    return UMEM_FAIL(NULL, umemNotSupportedError, "the elements have gaps: copy the array");
  int id;
  return umem_dlpack_device(array->ctx, &id) != umemDLDefault ||
         UMEM_FAIL(NULL, umemNotSupportedError, "memory of %s has no pointers: copy the array",
                   umem_get_device_name(array->ctx));
}

/* The format of the column in text, or that of the options. NULL, and a status. */
static char const *choose_format(umemArray const *array, char const *given, char text[16]) {
  if (!given) return write_format(array->type, text) ? text : NULL;
  umemElementType type = type_of(given);
  if (type && umem_element_size(type) == array->item_size &&
      (type == umemBool) == (array->type == umemBool))
    return given;
  return UMEM_FAIL_NULL(NULL, umemValueError, "elements of %zu bytes cannot have the format \"%s\"",
                        array->item_size, given);
}

static void drop_column(Column *column) {
  umemArray_release(column->values);
  umemArray_release(column->bits);
  free(column);
}

static void release_column(umemArrowArray *self) {
  Column *column = self->private_data, ended = *column;
  self->release = NULL;
  drop_column(column);
  if (ended.ended) ended.ended(ended.user);
}

/* NULL, and a status. */
static Column *new_column(umemArray *array, umemArrowOptions const *options) {
  umemArray *validity = options->validity;
  Column *column = calloc(1, sizeof *column);
  if (!column) return UMEM_FAIL_NULL(NULL, umemMemoryError, "no memory for a column");
  column->values = array->type == umemBool ? pack(array) : umemArray_retain(array);
  column->bits = column->values && validity ? pack(validity) : NULL;
  if (!column->values || (validity && !column->bits) || umem_finish(array->ctx) != umemOK) {
    drop_column(column);
    return NULL;
  }
  column->buffers[0] = column->bits ? (void *)column->bits->adr : NULL;
  column->buffers[1] = (void *)column->values->adr;
  column->ended = options->ended;
  column->user = options->user;
  return column;
}

bool umemArray_to_arrow(umemArray *array, umemArrowOptions const *given, umemArrowSchema *schema,
                        umemArrowDeviceArray *out, umemStatusType *status) {
  UMEM_ARRAY_ENTER(status, false);
  umemArrowOptions options = UMEM_ARROW_OPTIONS_INIT;
  char text[16];
  if (!umem_array_given(array) || !umem_check(array->ctx) ||
      !umem_read_sized(NULL, &options, sizeof options, given, "umemArrowOptions"))
    return false;
  if (!schema || !out) return UMEM_FAIL(NULL, umemValueError, "the struct of a result is NULL");
  if (!check_export(array, &options)) return false;
  char const *format = choose_format(array, options.format, text);
  Column *column = format ? new_column(array, &options) : NULL;
  if (!column) return false;
  if (!fill_schema(schema, format, options.name)) {
    drop_column(column);
    return false;
  }
  int id, code = umem_dlpack_device(array->ctx, &id);
  *out = (umemArrowDeviceArray){.array = {.length = array->elements,
                                          .null_count = column->bits ? -1 : 0,
                                          .n_buffers = 2,
                                          .buffers = column->buffers,
                                          .release = release_column,
                                          .private_data = column},
                                .device_id = code == umemDLCPU ? -1 : id,
                                .device_type = code};
  return true;
}

/* ---- import ---- */

static bool refuse_column(char const *what) {
  return UMEM_FAIL(NULL, umemValueError, "the column of Arrow is not valid: %s", what);
}

/* Everything that does not depend on the type. */
static bool check_column(umemArrowSchema const *schema, umemArrowDeviceArray const *column) {
  if (!schema || !column) return refuse_column("a struct is NULL");
  umemArrowArray const *array = &column->array;
  if (!schema->release || !array->release) return refuse_column("it was released");
  if (!schema->format) return refuse_column("it has no format");
  if (schema->dictionary || array->dictionary)
    return UMEM_FAIL(NULL, umemNotSupportedError,
                     "the column has a dictionary: decode it (dictionary_decode in pyarrow)");
  if (array->length < 0 || array->offset < 0 || array->null_count < -1 ||
      array->offset > INT64_MAX / 2 || array->length > INT64_MAX / 2)
    return refuse_column("a number is out of range");
  if (array->null_count > array->length) return refuse_column("more are missing than there are");
  return true;
}

/* The buffers of a type of fixed width. */
static bool check_buffers(umemArrowArray const *array) {
  if (array->n_buffers != 2 || !array->buffers || array->n_children)
    return refuse_column("a type of fixed width has two buffers and no children");
  if (array->length && !array->buffers[1]) return refuse_column("its elements are NULL");
  return array->null_count <= 0 || array->buffers[0] ||
         refuse_column("elements are missing, and no bits say which");
}

static bool wait_for_event(umemVirtual *ctx, void const *sync_event) {
  uint64_t before = umem_thread.failures;
  if (!sync_event) return true;
  umemVirtual *layer = UMEM_LAYER_WITH(ctx, event_wait);
  if (!layer)
    return UMEM_FAIL(NULL, umemNotSupportedError, "%s cannot wait for the event of the column",
                     umem_get_device_name(ctx));
  layer->vptr->event_wait(layer, *(uintptr_t const *)sync_event);
  return umem_record_on_layers(layer, ctx, before) == umemOK;
}

/* Sets *flags to the validity, NULL if no element is missing. False, and a status. */
static bool find_missing(umemVirtual *ctx, umemArrowArray const *array, bool wanted,
                         umemArray **flags) {
  *flags = NULL;
  if (!array->null_count || !array->buffers[0] || !array->length) return true;
  umemArray *found = unpack(ctx, (uintptr_t)array->buffers[0], array->offset, array->length);
  umemArray *read = found ? in_ram(found) : NULL;
  bool is_whole = read && !memchr((void const *)read->adr, 0, (size_t)read->elements);
  umemArray_release(read);
  if (read && !is_whole && wanted) {
    *flags = found;
    return true;
  }
  umemArray_release(found);
  return is_whole || (read && UMEM_FAIL(NULL, umemNotSupportedError,
                                        "elements of the column are missing: ask for its validity, "
                                        "or fill them (fill_null in pyarrow)"));
}

static void end_moved(void *user) {
  umemArrowArray *moved = user;
  moved->release(moved);
  free(moved);
}

/* The array over the values of the column, which it has then. */
static umemArray *take_values(umemVirtual *ctx, umemElementType type, umemArrowArray *array) {
  umemStatusType taken = umemOK;
  uintptr_t bytes, adr;
  if (__builtin_mul_overflow((uintptr_t)array->offset, umem_element_size(type), &bytes) ||
      __builtin_add_overflow((uintptr_t)array->buffers[1], bytes, &adr)) {
    refuse_column("the elements leave the address space");
    return NULL;
  }
  umemArrowArray *moved = malloc(sizeof *moved);
  if (!moved) return UMEM_FAIL_NULL(NULL, umemMemoryError, "no memory for a column");
  *moved = *array;
  umemArray *made =
      umemArray_take(ctx, adr, type, 1, &moved->length, NULL, end_moved, moved, &taken);
  if (made) {
    made->read_only = made->for_good = true;
    array->release = NULL;
  } else {
    free(moved);
  }
  return made;
}

/* Booleans are a copy: the column ends at once. */
static umemArray *take_bits(umemVirtual *ctx, umemArrowArray *array) {
  umemArray *made = unpack(ctx, (uintptr_t)array->buffers[1], array->offset, array->length);
  if (made) {
    UMEM_STEP_ASIDE(running);
    array->release(array);
    array->release = NULL;
  }
  return made;
}

umemArray *umemArray_from_arrow(void *ctx, umemArrowSchema const *schema,
                                umemArrowDeviceArray *column, umemArray **validity,
                                umemStatusType *status) {
  UMEM_ARRAY_ENTER(status, NULL);
  umemArray *flags;
  umemVirtual *self = umem_check(ctx);
  if (!self || !check_column(schema, column)) return NULL;
  umemElementType type = type_of(schema->format);
  if (!type)
    return UMEM_FAIL_NULL(NULL, umemTypeError,
                          "a column of format \"%s\" has no elements of fixed width that umem has",
                          schema->format);
  if (!check_buffers(&column->array) ||
      !umem_dlpack_check_device(self, column->device_type, (int)column->device_id) ||
      !wait_for_event(self, column->sync_event) ||
      !find_missing(self, &column->array, validity != NULL, &flags))
    return NULL;
  umemArray *array =
      type == umemBool ? take_bits(self, &column->array) : take_values(self, type, &column->array);
  if (!array) umemArray_release(flags);
  if (array && validity) *validity = flags;
  return array;
}
