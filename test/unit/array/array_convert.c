/* array_convert.c - umem/array_convert.h against a plain model: random types, shapes, strides,
 * ranges and overlaps, on every context of the table.
 *
 * The model finds each element by its index and converts it alone, by array/array_operand.h,
 * which convert.c tests. All bytes of the destination are compared. */
#include "array_help.h"

#include "array/array_operand.h"
#include "random.h"
#include "unit/each_backend.h"

enum {
  most_elements = 400,
  most_rank = 4,
  most_size = 16,
  most_bytes = 3 * most_elements * most_size
};

static uint64_t seed;

static int64_t draw(int64_t bound) { return (int64_t)below(&seed, (size_t)bound); }

static umemElementType const reals[] = {
    umemBool,   umemInt8,   umemInt16,   umemInt32,    umemInt64,   umemUInt8,  umemUInt16,
    umemUInt32, umemUInt64, umemFloat16, umemBfloat16, umemFloat32, umemFloat64};
static umemElementType const complexes[] = {UMEM_ELEMENT(umemCodeComplex, 32, 1), umemComplex64,
                                            umemComplex128};

static void draw_types(umemElementType *from, umemElementType *to) {
  bool complex = draw(5) == 0;
  *from = complex ? complexes[draw(3)] : reals[draw(13)];
  *to = complex ? complexes[draw(3)] : reals[draw(13)];
  if (draw(8) == 0 && !complex) { /* two lanes */
    *from += 65536;
    *to += 65536;
  }
}

/* ---- random views of a block ---- */

typedef struct Part {
  umemArray *array;
  int64_t base; /* of index 0, in bytes of the block */
} Part;

/* Strides of some order, sign and gaps for a shape, in multiples of unit bytes; the bytes that they
 * span. */
static int64_t draw_strides(int rank, int64_t const *shape, int64_t size, int64_t *strides,
                            int64_t *base) {
  int axes[most_rank];
  int64_t span = size + (draw(3) == 0 ? draw(9) : 0);
  *base = 0;
  for (int k = 0; k < rank; k++) axes[k] = k;
  for (int k = rank - 1; k > 0; k--) {
    int j = draw(3) ? k : (int)draw(k + 1), axis = axes[k];
    axes[k] = axes[j];
    axes[j] = axis;
  }
  for (int k = rank - 1; k >= 0; k--) {
    strides[axes[k]] = span;
    if (shape[axes[k]]) span *= shape[axes[k]];
    if (draw(4) == 0) span += draw(3) * size;
    if (draw(4) == 0 && shape[axes[k]]) {
      *base += (shape[axes[k]] - 1) * strides[axes[k]];
      strides[axes[k]] = -strides[axes[k]];
    }
  }
  return span;
}

static void draw_shape(int *rank, int64_t *shape) {
  int64_t elements;
  do {
    *rank = (int)draw(most_rank + 1);
    elements = 1;
    for (int k = 0; k < *rank; k++) {
      shape[k] = draw(20) ? 1 + draw(draw(3) ? 6 : 200) : 0;
      elements *= shape[k] ? shape[k] : 1;
    }
  } while (elements > most_elements);
}

static int64_t element_at(umemArray const *array, int64_t base, int64_t i) {
  for (int k = umemArray_rank(array) - 1; k >= 0; k--) {
    base += i % umemArray_extent(array, k) * umemArray_stride(array, k);
    i /= umemArray_extent(array, k);
  }
  return base;
}

static unsigned char source[most_bytes], source_before[most_bytes], target[most_bytes],
    found[most_bytes];

static Part part_of(umemVirtual *ctx, uintptr_t block, umemElementType type, int rank,
                    int64_t const *shape, int64_t from, int64_t *end) {
  Part part;
  int64_t strides[most_rank];
  do *end = from + draw_strides(rank, shape, (int64_t)umem_element_size(type), strides, &part.base);
  while (*end > most_bytes);
  part.base += from;
  part.array =
      umemArray_borrow(ctx, block + (uintptr_t)part.base, type, rank, shape, strides, &status);
  return part;
}

static void convert_model(Part const *to, Part const *from, int64_t at, int64_t of, int64_t count) {
  umemConversion conversion;
  assert_true(
      umem_conversion(&conversion, umemArray_type(from->array), umemArray_type(to->array), false));
  for (int64_t i = 0; i < count; i++)
    umem_convert(&conversion, source_before + element_at(from->array, from->base, of + i),
                 target + element_at(to->array, to->base, at + i), 1);
}

/* Both parts in one block: they may overlap, take turns or be apart. */
static void convert_once(umemVirtual *one, umemVirtual *other, bool together) {
  int rank, other_rank;
  int64_t shape[most_rank], other_shape[most_rank], end;
  umemElementType from_type, to_type;
  draw_types(&from_type, &to_type);
  if (draw(4) == 0) to_type = from_type;
  draw_shape(&rank, shape);
  other_rank = rank;
  memcpy(other_shape, shape, sizeof shape);
  if (draw(4) == 0) draw_shape(&other_rank, other_shape);
  uintptr_t src = umem_alloc(one, most_bytes), dst = together ? src : umem_alloc(other, most_bytes);
  if (together) other = one;
  for (size_t i = 0; i < most_bytes; i += 8) {
    uint64_t bits = random64(&seed);
    memcpy(source + i, &bits, sizeof bits);
  }
  memcpy(source_before, source, sizeof source);
  memcpy(target, source, sizeof target);
  assert_ok(umem_copy_from(one, src, &host, (uintptr_t)source, most_bytes));
  if (!together) assert_ok(umem_copy_from(other, dst, &host, (uintptr_t)target, most_bytes));
  assert_ok(umem_synchronize(one));
  assert_ok(umem_synchronize(other));
  Part from = part_of(one, src, from_type, rank, shape, 0, &end);
  Part to = part_of(other, dst, to_type, other_rank, other_shape, together ? draw(8) : 0, &end);
  int64_t elements = umemArray_elements(from.array), others = umemArray_elements(to.array);
  int64_t least = elements < others ? elements : others;
  int64_t count = draw(3) ? least : draw(least + 1);
  int64_t at = draw(others - count + 1), of = draw(elements - count + 1);
  convert_model(&to, &from, at, of, count);
  if (from_type != to_type || draw(3) == 0)
    umemArray_convert(to.array, from.array, at, of, count, &status);
  else if (count == elements && umemArray_is_same_shape(to.array, from.array))
    umemArray_assign(to.array, from.array, &status);
  else
    umemArray_copy_contents(to.array, from.array, at, of, count, &status);
  assert_ok(umem_synchronize(one)); /* copies may be queued */
  assert_ok(umem_synchronize(other));
  if (status != umemOK) fail_msg("seed %ju: %s", (uintmax_t)seed, umem_thread_message());
  assert_ok(umem_copy_to(other, dst, &host, (uintptr_t)found, most_bytes));
  assert_ok(umem_synchronize(other));
  for (size_t i = 0; i < most_bytes; i++)
    if (found[i] != target[i])
      fail_msg("%s to %s, seed %ju: 0x%x to 0x%x, byte %zu", umem_get_device_name(one),
               umem_get_device_name(other), (uintmax_t)seed, from_type, to_type, i);
  RELEASE(from.array, to.array);
  umem_free(one, src);
  if (!together) umem_free(other, dst);
}

static void compare(Backend const *row, umemVirtual *ctx) {
  int rounds = rounds_of(ctx, setting_cases(setting_small() ? 0 : 100000), 20);
  for (int round = 0; round < rounds; round++) {
    seed = (uint64_t)(row - backends) << 32 | (unsigned)round;
    convert_once(round % 2 ? ctx : &host.super, round % 4 < 2 ? &host.super : ctx, round % 5 == 0);
  }
}

TEST(every_context_is_as_the_model) { assert_true(for_each_backend(compare) > 0); }

/* ---- large ones ---- */

static void *element(umemArray const *array, int64_t i, int64_t j) {
  int64_t at = i * umemArray_stride(array, 0) + j * umemArray_stride(array, 1);
  return (void *)(umemArray_address(array) + (uintptr_t)at);
}

/* From int32 to double, with one to eight threads. */
static void convert_in_threads(umemArray *dst, umemArray *src) {
  int64_t rows = umemArray_extent(src, 0), columns = umemArray_extent(src, 1);
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++)
      *(int32_t *)element(src, i, j) = (int32_t)(i * columns + j) * 3 - 7;
  for (unsigned threads = 1; threads <= 8; threads++) {
    assert_ok(umem_set_threads(threads));
    umemArray_clear(dst, &status);
    umemArray_convert(dst, src, 0, 0, rows * columns, &status);
    assert_ok(status);
    for (int64_t i = 0; i < rows; i++)
      for (int64_t j = 0; j < columns; j++)
        assert_true(*(double *)element(dst, i, j) == *(int32_t *)element(src, i, j));
  }
  assert_ok(umem_set_threads(0));
}

/* Many threads and blocks; rows with gaps and a transpose. */
TEST(large_arrays_convert) {
  umemArray *ints = umemArray_create(&host, umemInt32, SHAPE(1100, 1500), NULL, &status);
  umemArray *doubles = umemArray_zeros(&host, umemDouble, SHAPE(1500, 1100), NULL, &status);
  umemArray *all = umemArray_permute(doubles, NULL, &status);
  umemArray *dst = umemArray_slice(all, 1, 100, 1300, 1, &status);
  umemArray *src = umemArray_slice(ints, 1, 1399, 1300, -1, &status);
  convert_in_threads(dst, src);
  RELEASE(src, dst, all, doubles, ints);
}

/* Rows of both sides, shared among threads that get unequal parts. */
TEST(large_rows_convert) {
  umemArray *ints = umemArray_create(&host, umemInt32, SHAPE(900, 1501), NULL, &status);
  umemArray *doubles = umemArray_zeros(&host, umemDouble, SHAPE(900, 1501), NULL, &status);
  umemArray *back = umemArray_slice(ints, 1, 1500, 1501, -1, &status);
  convert_in_threads(doubles, back);
  RELEASE(back, doubles, ints);
}

/* More than a buffer, from a file to a file. */
TEST(large_files_convert) {
  enum { count = 2500000 };
  int64_t const shape = count;
  CONTEXT(umemFile, file, NULL, "w+");
  umemArray *ints = umemArray_create(&host, umemInt32, 1, &shape, NULL, &status);
  umemArray *drawn = umemArray_create(&host, umemFloat, 1, &shape, NULL, &status);
  int32_t *from = umemArray_host_pointer(ints, true, &status);
  for (int i = 0; i < count; i++) from[i] = i * 3 - 7;
  umemArray *kept = umemArray_copy(ints, &file, umemOrderC, &status);
  umemArray *doubles = umemArray_create(&file, umemDouble, 1, &shape, NULL, &status);
  umemArray_convert(doubles, kept, 0, 0, count, &status);
  umemArray *back = umemArray_copy(doubles, &host, umemOrderC, &status);
  double const *x = umemArray_host_pointer(back, false, &status);
  assert_ok(status);
  for (int i = 0; i < count; i++) assert_true(x[i] == i * 3 - 7);
  umemArray_random_uniform(doubles, 0, 1, 5, &status);
  umemArray_random_uniform(back, 0, 1, 5, &status);
  umemArray_convert(drawn, doubles, 0, 0, count, &status);
  float const *y = umemArray_host_pointer(drawn, false, &status);
  assert_ok(status);
  for (int i = 0; i < count; i++) assert_true(y[i] == (float)x[i]);
  RELEASE(back, doubles, kept, drawn, ints);
}

/* ---- refusals ---- */

TEST(wrong_calls_are_refused) {
  int64_t const ten = 10;
  double const one = 1;
  umemArray *a = umemArray_full(&host, umemDouble, 1, &ten, NULL, &one, &status);
  umemArray *b = umemArray_zeros(&host, umemInt, 1, &ten, NULL, &status);
  umemArray *z = umemArray_zeros(&host, umemComplexDouble, 1, &ten, NULL, &status);
  umemArray *fixed = umemArray_alias(b, &status);
  umemArray_set_read_only(fixed, true, &status);
  int32_t const *values = umemArray_host_pointer(b, false, &status);
  FAILS(umemArray_convert(b, NULL, 0, 0, 1, &status), umemValueError,
        "umemArray_convert: the source array is NULL");
  FAILS(umemArray_convert(NULL, a, 0, 0, 1, &status), umemValueError,
        "the destination array is NULL");
  FAILS(umemArray_convert(fixed, a, 0, 0, 10, &status), umemNotSupportedError,
        "the destination array is read-only");
  FAILS(umemArray_convert(z, a, 0, 0, 10, &status), umemTypeError,
        "there is no conversion of float64 to complex128");
  FAILS(umemArray_convert(b, a, 1, 0, 10, &status), umemIndexError,
        "10 elements from 1 on are outside of the destination, which has 10");
  FAILS(umemArray_convert(b, a, 0, 5, 6, &status), umemIndexError, "the source");
  FAILS(umemArray_convert(b, a, -1, 0, 1, &status), umemIndexError, "the destination");
  status = umemIOError;
  umemArray_convert(b, a, 0, 0, 10, &status);
  assert_int_equal(status, umemIOError);
  for (int i = 0; i < 10; i++) assert_int_equal(values[i], 0);
  status = umemOK;
  umemArray_convert(b, a, 10, 10, 0, &status);
  umemArray_convert(b, a, 2, 0, 3, &status);
  assert_ok(status);
  for (int i = 0; i < 10; i++) assert_int_equal(values[i], i >= 2 && i < 5);
  RELEASE(a, b, z, fixed);
}

/* ---- numbers out of range ---- */

TEST(numbers_out_of_range_wrap_where_asked) {
  int64_t const six = 6;
  double const zero = 0, values[] = {300.75, -1.5, -129, 4294967296.0 + 7, 1e300, 0.0 / zero};
  umemArray *a = umemArray_create(&host, umemDouble, 1, &six, NULL, &status);
  umemArray *b = umemArray_create(&host, umemInt8, 1, &six, NULL, &status);
  umemArray *c = umemArray_create(&host, umemUInt8, 1, &six, NULL, &status);
  memcpy(umemArray_host_pointer(a, true, &status), values, sizeof values);
  umemArray_convert_wrapping(b, a, 0, 0, six, &status);
  int8_t const wrapped[] = {44, -1, 127, 7, 0, 0};
  assert_memory_equal(umemArray_host_pointer(b, false, &status), wrapped, sizeof wrapped);
  umemArray_convert_wrapping(c, b, 0, 0, six, &status);
  assert_memory_equal(umemArray_host_pointer(c, false, &status), wrapped, sizeof wrapped);
  umemArray_convert(b, a, 0, 0, six, &status);
  int8_t const nearest[] = {127, -1, -128, 127, 127, 0};
  assert_memory_equal(umemArray_host_pointer(b, false, &status), nearest, sizeof nearest);
  assert_ok(status);
  FAILS(umemArray_convert_wrapping(NULL, a, 0, 0, 1, &status), umemValueError,
        "umemArray_convert_wrapping: the destination array is NULL");
  RELEASE(a, b, c);
}
