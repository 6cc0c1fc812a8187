/* convert_number.h - one number of a type from one of another type, in words that compilers turn
 * into vector code: no branches, and no conversion that is out of range. */
#ifndef UMEM_CONVERT_NUMBER_H
#define UMEM_CONVERT_NUMBER_H

#include <float.h>
#include <stdint.h>
#include <string.h>

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

#endif
