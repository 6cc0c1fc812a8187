/* convert_loops.h - what loops.c and loops_avx2.c convert numbers by: a loop for each pair of
 * types, and their table.
 *
 * CONVERT_TABLE is its name, LOOPS_TARGET the attribute of each function. With LOOPS_HALVES the
 * file has f16_to_f32 and f32_to_f16 already. Addresses need no alignment, so the types have
 * none. */
#include <float.h>
#include <string.h>

/* ==== one number of a type from one of another type ====
 *
 * In words that compilers turn into vector code: no branches, and no conversion that is out of
 * range. */

/* Where a < limit, both below 2^31, one, else other: by arithmetic. Of ?: around longer terms
 * compilers make a branch, and then leave the loop as it is. */
static inline uint32_t choose(uint32_t a, uint32_t limit, uint32_t one, uint32_t other) {
  uint32_t mask = 0 - ((a - limit) >> 31);
  return other ^ ((one ^ other) & mask);
}

static inline uint32_t bits_of_float(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
static inline float float_of_bits(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* ---- to integers ---- */

#define IS_SIGNED(T) ((T)-1 < (T)1)
#define BITS(T) (8 * (int)sizeof(T))
/* Shifts that are in range for both kinds of T. */
#define LARGEST(T) ((T)(UINT64_MAX >> (64 - BITS(T) + (IS_SIGNED(T) ? 1 : 0))))
#define SMALLEST(T) ((T)(IS_SIGNED(T) ? -(int64_t)LARGEST(T) - 1 : 0))

/* An integer: what is out of range becomes the nearest number in range. */
#define INTEGER_TO_INTEGER(S, D, x, result)                                                        \
  do {                                                                                             \
    _Bool below = IS_SIGNED(S) && (!IS_SIGNED(D) || sizeof(D) < sizeof(S));                        \
    _Bool above =                                                                                  \
        sizeof(D) < sizeof(S) || (sizeof(D) == sizeof(S) && !IS_SIGNED(S) && IS_SIGNED(D));        \
    S const low = below ? (S)SMALLEST(D) : SMALLEST(S);                                            \
    S const top = above ? (S)LARGEST(D) : LARGEST(S);                                              \
    S const kept_ = (x) < low ? low : (x);                                                         \
    (result) = (D)(kept_ > top ? top : kept_);                                                     \
  } while (0)

/* A floating-point number: toward zero, NaN to 0. `end` is the first power of two out of range, top
 * the largest number of type F in range. */
#define FLOAT_TO_INTEGER(F, digits, D, x, result)                                                  \
  do {                                                                                             \
    D const half_ = LARGEST(D) / 2 + 1;                                                            \
    F const low = (F)SMALLEST(D), end = (F)half_ * 2;                                              \
    F const top = BITS(D) <= (digits) ? (F)LARGEST(D) : end * (1 - 1 / (F)(1ull << (digits)));     \
    F kept_ = (x) < low ? low : (x);                                                               \
    kept_ = kept_ > top ? top : kept_;                                                             \
    kept_ = (x) == (x) ? kept_ : 0;                                                                \
    D const inside = sizeof(D) < 4 ? (D)(int32_t)kept_ : (D)kept_;                                 \
    (result) = BITS(D) > (digits) && (x) >= end ? LARGEST(D) : inside;                             \
  } while (0)

/* A floating-point number toward zero, modulo 2^64; infinities and NaN become 0. Each step is
 * exact. From 2^127 on all numbers are multiples of 2^64. */
static inline uint64_t wrapped_number(double x) {
  double const length = x < 0 ? -x : x;
  if (!(length < 0x1p127)) return 0;
  double rest = x - (double)(int64_t)(x * 0x1p-64) * 0x1p64;
  return rest < 0 ? 0 - (uint64_t)-rest : (uint64_t)rest;
}

/* ---- float16 and bfloat16 ----
 *
 * By their bits; the same as what processors with such instructions compute. */

static inline uint16_t half_of_float(float x) {
  uint32_t bits = bits_of_float(x), sign = bits >> 16 & 0x8000, a = bits & 0x7fffffff;
  uint32_t normal = (a + 0xfff + (a >> 13 & 1) - (112u << 23)) >> 13;
  /* Below 2^-14 the unit is 2^-24, that of numbers from 0.5 on: the sum is rounded to it. */
  uint32_t small = bits_of_float(float_of_bits(choose(a, 0x38800000, a, 0)) + 0.5f) - 0x3f000000;
  uint32_t nan = 0x7e00 | (a >> 13 & 0x3ff);
  uint32_t half = choose(a, 0x38800000, small, normal);
  half = choose(a, 0x477ff000, half, 0x7c00); /* 65520: half a unit above the largest number */
  half = choose(a, 0x7f800001, half, nan);
  return (uint16_t)(half | sign);
}

static inline float float_of_half(uint16_t half) {
  uint32_t sign = (uint32_t)(half & 0x8000) << 16, a = half & 0x7fff;
  uint32_t small = bits_of_float((float)(int32_t)(a & 0x3ff) * 0x1p-24f);
  uint32_t normal = (a << 13) + (112u << 23);
  uint32_t other = (a << 13) + (224u << 23) + choose(0x7c00, a, (~a & 0x200) << 13, 0);
  uint32_t bits = choose(a, 0x400, small, normal);
  bits = choose(a, 0x7c00, bits, other);
  return float_of_bits(bits | sign);
}

static inline uint16_t bfloat_of_float(float x) {
  uint32_t bits = bits_of_float(x);
  uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1);
  return (uint16_t)(choose(bits & 0x7fffffff, 0x7f800001, rounded, bits | 0x400000) >> 16);
}

static inline float float_of_bfloat(uint16_t x) { return float_of_bits((uint32_t)x << 16); }

/* ---- on the way to them ----
 *
 * To round twice is to round wrongly, but not if the first time is to odd: of the two neighbours of
 * a number that is no float, the one whose last bit is 1. Source: Boldo and Melquiond, "Emulation
 * of FMA and correctly rounded sums: proved algorithms using rounding to odd", IEEE Transactions on
 * Computers 57(4), 2008. */

static inline float odd_of_double(double x) {
  float near = (float)x;
  uint32_t bits = bits_of_float(near), even = ~bits & 1;
  double a = x < 0 ? -x : x, b = near < 0 ? -(double)near : (double)near;
  uint32_t down = b > a ? even : 0, up = b < a ? even : 0;
  return float_of_bits(bits + up - down);
}

/* Of an integer of 64 bits, given as magnitude: its first 53 bits, the last of them 1 where others
 * follow. */
static inline double odd_of_magnitude(uint64_t x) {
  uint64_t cut = x >> 11 | ((x & 2047) != 0);
  return x >> 53 ? (double)(int64_t)cut * 2048.0 : (double)(int64_t)x;
}
static inline float odd_of_u64(uint64_t x) { return odd_of_double(odd_of_magnitude(x)); }
static inline float odd_of_i64(int64_t x) {
  double a = odd_of_magnitude(x < 0 ? 0 - (uint64_t)x : (uint64_t)x);
  return odd_of_double(x < 0 ? -a : a);
}

/* ==== loops ==== */

#define UNALIGNED(T) T __attribute__((aligned(1), may_alias))
typedef UNALIGNED(int8_t) I8;
typedef UNALIGNED(int16_t) I16;
typedef UNALIGNED(int32_t) I32;
typedef UNALIGNED(int64_t) I64;
typedef UNALIGNED(uint8_t) U8;
typedef UNALIGNED(uint16_t) U16;
typedef UNALIGNED(uint32_t) U32;
typedef UNALIGNED(uint64_t) U64;
typedef UNALIGNED(float) F32;
typedef UNALIGNED(double) F64;

#define LOOP(name, S, D, statement)                                                                \
  LOOPS_TARGET static void name(void const *restrict src, ptrdiff_t src_step, void *restrict dst,  \
                                ptrdiff_t dst_step, size_t count) {                                \
    if (src_step == sizeof(S) && dst_step == sizeof(D)) {                                          \
      S const *restrict from = src;                                                                \
      D *restrict to = dst;                                                                        \
      for (size_t i = 0; i < count; i++) {                                                         \
        S const x = from[i];                                                                       \
        D y;                                                                                       \
        statement;                                                                                 \
        to[i] = y;                                                                                 \
      }                                                                                            \
    } else {                                                                                       \
      void const *from = src;                                                                      \
      void *to = dst;                                                                              \
      for (; count; count--) {                                                                     \
        S const x = *(S const *)from;                                                              \
        D y;                                                                                       \
        statement;                                                                                 \
        *(D *)to = y;                                                                              \
        from = (char const *)from + src_step;                                                      \
        to = (char *)to + dst_step;                                                                \
      }                                                                                            \
    }                                                                                              \
  }

#define BY_CAST(S, D) LOOP(S##_to_##D, S, D, y = (D)x)
#define BY_RANGE(S, D) LOOP(S##_to_##D, S, D, INTEGER_TO_INTEGER(S, D, x, y))
#define FROM_F32(S, D) LOOP(F32_to_##D, F32, D, FLOAT_TO_INTEGER(F32, 24, D, x, y))
#define FROM_F64(S, D) LOOP(F64_to_##D, F64, D, FLOAT_TO_INTEGER(F64, 53, D, x, y))
#define FIRST_BITS(S, D) LOOP(S##_wrapping_##D, S, D, y = (D)x)
#define WRAPPING(F, D) LOOP(F##_wrapping_##D, F, D, y = (D)wrapped_number(x))
#define TO_BOOL(S) LOOP(S##_to_bool, S, U8, y = x != 0)

#define TO_INTEGERS(TO, S)                                                                         \
  TO(S, I8) TO(S, I16) TO(S, I32) TO(S, I64) TO(S, U8) TO(S, U16) TO(S, U32) TO(S, U64)
#define OF_INTEGER(S) TO_INTEGERS(BY_RANGE, S) BY_CAST(S, F32) BY_CAST(S, F64) TO_BOOL(S)
#define OF_FLOAT(F)                                                                                \
  TO_INTEGERS(FROM_##F, F)                                                                         \
  BY_CAST(F, F32)                                                                                  \
  BY_CAST(F, F64)                                                                                  \
  TO_BOOL(F)                                                                                       \
  WRAPPING(F, U8)                                                                                  \
  WRAPPING(F, U16)                                                                                 \
  WRAPPING(F, U32)                                                                                 \
  WRAPPING(F, U64)

OF_INTEGER(I8)
OF_INTEGER(I16)
OF_INTEGER(I32)
OF_INTEGER(I64)
OF_INTEGER(U8)
OF_INTEGER(U16)
OF_INTEGER(U32)
OF_INTEGER(U64)
OF_FLOAT(F32)
OF_FLOAT(F64)

FIRST_BITS(U16, U8)
FIRST_BITS(U32, U8)
FIRST_BITS(U32, U16)
FIRST_BITS(U64, U8)
FIRST_BITS(U64, U16)
FIRST_BITS(U64, U32)

LOOP(bool_to_u8, U8, U8, y = x != 0)
#ifndef LOOPS_HALVES
LOOP(f16_to_f32, U16, F32, y = float_of_half(x))
LOOP(f32_to_f16, F32, U16, y = half_of_float(x))
#endif
LOOP(bf16_to_f32, U16, F32, y = float_of_bfloat(x))
LOOP(f32_to_bf16, F32, U16, y = bfloat_of_float(x))
LOOP(I32_to_odd, I32, F32, y = odd_of_double(x))
LOOP(U32_to_odd, U32, F32, y = odd_of_double(x))
LOOP(I64_to_odd, I64, F32, y = odd_of_i64(x))
LOOP(U64_to_odd, U64, F32, y = odd_of_u64(x))
LOOP(F64_to_odd, F64, F32, y = odd_of_double(x))

#define TO_FLOATS(S) [umemNumberF32] = S##_to_F32, [umemNumberF64] = S##_to_F64
#define TO_SIGNED(S)                                                                               \
  [umemNumberI8] = S##_to_I8, [umemNumberI16] = S##_to_I16, [umemNumberI32] = S##_to_I32,          \
  [umemNumberI64] = S##_to_I64
#define TO_UNSIGNED(S)                                                                             \
  [umemNumberU8] = S##_to_U8, [umemNumberU16] = S##_to_U16, [umemNumberU32] = S##_to_U32,          \
  [umemNumberU64] = S##_to_U64

#define ROW(S) [umemNumber##S] = {TO_SIGNED(S), TO_UNSIGNED(S), TO_FLOATS(S)}

#define BOOL(S) [umemNumber##S] = S##_to_bool
#define ODD(S) [umemNumber##S] = S##_to_odd

umemConvertLoops const CONVERT_TABLE = {
    .between = {ROW(I8), ROW(I16), ROW(I32), ROW(I64), ROW(U8), ROW(U16), ROW(U32), ROW(U64),
                ROW(F32), ROW(F64)},
    .wrapping = {[umemNumberI16] = {U16_wrapping_U8},
                 [umemNumberI32] = {U32_wrapping_U8, U32_wrapping_U16},
                 [umemNumberI64] = {U64_wrapping_U8, U64_wrapping_U16, U64_wrapping_U32},
                 [umemNumberU16] = {U16_wrapping_U8},
                 [umemNumberU32] = {U32_wrapping_U8, U32_wrapping_U16},
                 [umemNumberU64] = {U64_wrapping_U8, U64_wrapping_U16, U64_wrapping_U32},
                 [umemNumberF32] = {F32_wrapping_U8, F32_wrapping_U16, F32_wrapping_U32,
                                    F32_wrapping_U64},
                 [umemNumberF64] = {F64_wrapping_U8, F64_wrapping_U16, F64_wrapping_U32,
                                    F64_wrapping_U64}},
    .to_bool = {BOOL(I8), BOOL(I16), BOOL(I32), BOOL(I64), BOOL(U8), BOOL(U16), BOOL(U32),
                BOOL(U64), BOOL(F32), BOOL(F64)},
    .to_odd = {ODD(I32), ODD(I64), ODD(U32), ODD(U64), ODD(F64)},
    .bool_to_u8 = bool_to_u8,
    .f16_to_f32 = f16_to_f32,
    .f32_to_f16 = f32_to_f16,
    .bf16_to_f32 = bf16_to_f32,
    .f32_to_bf16 = f32_to_bf16,
};
