/* convert.c - array/array_operand.h: every pair of real types, compared with arithmetic that
 * knows only exact numbers.
 *
 * The model decodes each source to a long double, which holds every number of every type, and
 * rounds it by the definition. Types of 8 and 16 bits are tried with all their bits; others with
 * the limits of all types, the halfway cases of the narrow ones, their neighbours, and random bits.
 * Conversions that wrap are compared with the remainder of a division. */
#include "array_help.h"
#include "random.h"
#include "settings.h"

#include "array/array_operand.h"

#include <math.h>

enum { most = 70000 };

typedef struct Type {
  umemElementType type;
  int size;
  bool is_integer, is_signed;
  /* Of floats: bits of the significand, exponent of the smallest number, first power out of
   * range. */
  int digits, unit, top;
} Type;

static Type const types[] = {
    {umemBool, 1, true, false, 0, 0, 0},
    {umemInt8, 1, true, true, 0, 0, 0},
    {umemInt16, 2, true, true, 0, 0, 0},
    {umemInt32, 4, true, true, 0, 0, 0},
    {umemInt64, 8, true, true, 0, 0, 0},
    {umemUInt8, 1, true, false, 0, 0, 0},
    {umemUInt16, 2, true, false, 0, 0, 0},
    {umemUInt32, 4, true, false, 0, 0, 0},
    {umemUInt64, 8, true, false, 0, 0, 0},
    {umemFloat16, 2, false, true, 11, -24, 16},
    {umemBfloat16, 2, false, true, 8, -133, 128},
    {umemFloat32, 4, false, true, 24, -149, 128},
    {umemFloat64, 8, false, true, 53, -1074, 1024},
};
enum { type_count = sizeof types / sizeof *types };

/* ---- the model ---- */

static uint64_t lowest(int bits) { return bits == 64 ? UINT64_MAX : (1ull << bits) - 1; }

static long double decode(Type const *type, uint64_t bits) {
  int width = 8 * type->size;
  if (type->type == umemBool) return bits != 0;
  if (type->is_integer) {
    bool negative = type->is_signed && bits >> (width - 1);
    return negative ? -(long double)((~bits & lowest(width)) + 1) : (long double)bits;
  }
  int fraction = type->digits - 1;
  uint64_t mantissa = bits & lowest(fraction), exponents = lowest(width - 1 - fraction);
  uint64_t exponent = bits >> fraction & exponents;
  long double x = exponent == exponents ? (mantissa ? (long double)NAN : (long double)INFINITY)
                  : exponent            ? ldexpl((long double)(mantissa | 1ull << fraction),
                                                 type->unit + (int)exponent - 1)
                                        : ldexpl((long double)mantissa, type->unit);
  return bits >> (width - 1) ? -x : x;
}

static long double rounded(Type const *type, long double x) {
  int exponent;
  if (isnan(x) || isinf(x) || x == 0) return x;
  frexpl(x, &exponent);
  int unit = exponent - type->digits;
  if (unit < type->unit) unit = type->unit;
  long double units = ldexpl(fabsl(x), -unit);
  uint64_t whole = (uint64_t)units;
  long double rest = units - (long double)whole;
  if (rest > 0.5L || (rest == 0.5L && whole % 2)) whole++;
  long double result = ldexpl((long double)whole, unit);
  if (result >= ldexpl(1, type->top)) result = (long double)INFINITY;
  return signbit(x) ? -result : result;
}

static long double expected(Type const *to, long double x) {
  int width = 8 * to->size - to->is_signed;
  if (to->type == umemBool) return isnan(x) || x != 0;
  if (!to->is_integer) return rounded(to, x);
  if (isnan(x)) return 0;
  long double top = (long double)lowest(width), bottom = to->is_signed ? -top - 1 : 0;
  x = x > top ? top : x < bottom ? bottom : x;
  return x < 0 ? -(long double)(uint64_t)-x : (long double)(uint64_t)x;
}

/* The result where numbers out of range wrap. */
static long double expected_wrapped(Type const *to, long double x) {
  if (to->type == umemBool || !to->is_integer) return expected(to, x);
  if (isnan(x) || isinf(x)) return 0;
  long double modulus = ldexpl(1, 8 * to->size), rest = fmodl(truncl(x), modulus);
  if (rest < 0) rest += modulus;
  return to->is_signed && rest >= modulus / 2 ? rest - modulus : rest;
}

static bool same(Type const *to, long double x, long double y) {
  if (isnan(x) || isnan(y)) return isnan(x) && isnan(y);
  return x == y && (to->is_integer || x != 0 || signbit(x) == signbit(y));
}

/* ---- sources ---- */

static uint64_t seed = 1;
static uint64_t sources[most];
static int source_count;

/* A number of the type near x, and those beside it. */
static void add_near(Type const *type, long double x) {
  uint64_t bits = 0;
  long double within = expected(type, x);
  if (type->is_integer) {
    bits = within < 0 ? 0 - (uint64_t)-within : (uint64_t)within;
  } else if (type->size == 4) {
    float y = (float)within;
    memcpy(&bits, &y, sizeof y);
  } else {
    double y = (double)within;
    memcpy(&bits, &y, sizeof y);
  }
  for (int k = -2; k <= 2; k++)
    if (source_count < most)
      sources[source_count++] = (bits + (uint64_t)k) & lowest(8 * type->size);
}

/* In a slow environment every seventh stands for the others. */
static void thin_out(void) {
  int all = source_count;
  source_count = 0;
  for (int i = 0; i < all; i += 7) sources[source_count++] = sources[i];
}

static void collect_all(Type const *type) {
  source_count = 0;
  if (type->size < 4) {
    for (uint64_t bits = 0; bits <= lowest(8 * type->size); bits++) sources[source_count++] = bits;
    return;
  }
  for (int k = -1080; k <= 1024; k++) {
    add_near(type, ldexpl(1, k));
    add_near(type, -ldexpl(1, k));
  }
  for (uint64_t half = 0; half < 0x7C00; half += 7) { /* halfway to the next one */
    long double x = decode(&types[9], half) / 2 + decode(&types[9], half + 1) / 2;
    add_near(type, half % 2 ? x : -x);
    x = decode(&types[10], half) / 2 + decode(&types[10], half + 1) / 2;
    if (!isinf(x)) add_near(type, half % 2 ? x : -x);
  }
  add_near(type, 65520);
  add_near(type, -65520);
  while (source_count < most) {
    uint64_t bits = random64(&seed);
    if (bits % 3 == 0) bits >>= random64(&seed) % 64;
    sources[source_count++] = bits & lowest(8 * type->size);
  }
}

static void collect(Type const *type) {
  collect_all(type);
  if (setting_small()) thin_out();
}

static unsigned char packed[most * 8], converted[most * 8];

static void pack(Type const *type, unsigned char *to, int step) {
  for (int i = 0; i < source_count; i++) memcpy(to + i * step, &sources[i], (size_t)type->size);
}

/* ---- tests ---- */

static void expect_pair(Type const *from, Type const *to, bool wraps, umemConversion *conversion) {
  assert_true(umem_conversion(conversion, from->type, to->type, wraps));
  umem_convert(conversion, packed, converted, (size_t)source_count);
  if (from == to && to->type == umemBool) return; /* bytes are copied */
  for (int i = 0; i < source_count; i++) {
    uint64_t bits = 0;
    memcpy(&bits, converted + i * to->size, (size_t)to->size);
    long double x = decode(from, sources[i]), y = decode(to, bits),
                want = wraps ? expected_wrapped(to, x) : expected(to, x);
    if (!same(to, y, want) || (to->type == umemBool && bits > 1))
      fail_msg("0x%x to 0x%x: 0x%jx, %La, becomes 0x%jx, %La instead of %La", from->type, to->type,
               (uintmax_t)sources[i], x, (uintmax_t)bits, y, want);
  }
}

/* They become what they have become at odd addresses, and with gaps between them, from the first to
 * the last and back. */
static void expect_again(Type const *from, Type const *to, umemConversion const *conversion) {
  enum { gap = 3 };
  static unsigned char in[most * (8 + gap)], out[most * (8 + gap)];
  int step = from->size + gap, to_step = to->size + gap, last = source_count - 1;
  pack(from, in + 1, from->size);
  umem_convert(conversion, in + 1, out + 1, (size_t)source_count);
  assert_memory_equal(out + 1, converted, (size_t)(source_count * to->size));
  if (!conversion->count) return;
  pack(from, in, step);
  for (int back = 0; back < 2; back++) {
    memset(out, 0x5A, sizeof out);
    umem_convert_steps(conversion, back ? in + last * step : in, back ? -step : step, out, to_step,
                       (size_t)source_count);
    for (int i = 0; i < source_count; i++) {
      unsigned char const *found = out + (back ? last - i : i) * to_step;
      if (memcmp(found, converted + i * to->size, (size_t)to->size) != 0 ||
          memcmp(found + to->size, "ZZZ", gap) != 0)
        fail_msg("0x%x to 0x%x in steps: element %d", from->type, to->type, i);
    }
  }
}

TEST_CASE(every_pair_is_as_defined) {
  for (Type const *from = types; from < types + type_count; from++) {
    collect(from);
    pack(from, packed, from->size);
    for (Type const *to = types; to < types + type_count; to++)
      for (int wraps = 0; wraps < 2; wraps++) {
        umemConversion conversion;
        expect_pair(from, to, wraps, &conversion);
        expect_again(from, to, &conversion);
      }
  }
}

#if defined(__x86_64__)
static void expect_equal_loops(umemConvertLoop *one, umemConvertLoop *other, Type const *from,
                               int to_size) {
  static unsigned char again[sizeof converted];
  if (!one && !other) return;
  pack(from, packed, from->size);
  memset(converted, 0, sizeof converted);
  memset(again, 0, sizeof again);
  one(packed, from->size, converted, to_size, (size_t)source_count);
  other(packed, from->size, again, to_size, (size_t)source_count);
  assert_memory_equal(converted, again, sizeof again);
}
#endif

/* What this machine does not use is tested here alone. */
TEST_CASE(all_machines_compute_the_same) {
#if defined(__x86_64__)
  umemConvertLoops const *one = &umem_convert_loops, *other = &umem_convert_loops_avx2;
  static int const rows[umemNumbers] = {1, 2, 3, 4, 5, 6, 7, 8, 11, 12}; /* of types */
  if (!__builtin_cpu_supports("avx2")) skip();
  for (int from = 0; from < umemNumbers; from++) {
    Type const *type = &types[rows[from]];
    collect(type);
    for (int to = 0; to < umemNumbers; to++)
      expect_equal_loops(one->between[from][to], other->between[from][to], type,
                         types[rows[to]].size);
    for (int size = 0; size < 4; size++)
      expect_equal_loops(one->wrapping[from][size], other->wrapping[from][size], type, 1 << size);
    expect_equal_loops(one->to_bool[from], other->to_bool[from], type, 1);
    expect_equal_loops(one->to_odd[from], other->to_odd[from], type, 4);
  }
  collect(&types[11]);
  expect_equal_loops(one->f32_to_f16, other->f32_to_f16, &types[11], 2);
  expect_equal_loops(one->f32_to_bf16, other->f32_to_bf16, &types[11], 2);
  collect(&types[9]);
  expect_equal_loops(one->f16_to_f32, other->f16_to_f32, &types[9], 4);
  expect_equal_loops(one->bf16_to_f32, other->bf16_to_f32, &types[9], 4);
  collect(&types[0]);
  expect_equal_loops(one->bool_to_u8, other->bool_to_u8, &types[0], 1);
#else
  skip();
#endif
}

TEST_CASE(some_types_have_no_conversion) {
  umemConversion conversion;
  umemElementType const float8 = UMEM_ELEMENT(umemCodeFloat8_e5m2, 8, 1),
                        handle = UMEM_ELEMENT(umemCodeHandle, 64, 1),
                        quad = UMEM_ELEMENT(umemCodeFloat, 128, 1),
                        four = UMEM_ELEMENT(umemCodeFloat, 32, 4);
  assert_false(umem_conversion(&conversion, float8, umemFloat, false));
  assert_false(umem_conversion(&conversion, umemFloat, float8, false));
  assert_false(umem_conversion(&conversion, umemInt64, handle, false));
  assert_false(umem_conversion(&conversion, quad, umemDouble, false));
  assert_false(umem_conversion(&conversion, umemComplexFloat, umemFloat, false));
  assert_false(umem_conversion(&conversion, umemFloat, umemComplexFloat, false));
  assert_false(umem_conversion(&conversion, umemFloat, four, false));
  assert_true(umem_conversion(&conversion, float8, float8, false) && !conversion.count);
  assert_true(umem_conversion(&conversion, quad, quad, false) && !conversion.count);
}
