/* random_loops.h - the body of random_loops.c and random_loops_avx2.c.
 *
 * LOOPS_TABLE is the name of the table, LOOPS_TARGET the attribute of each function, LOOPS_BYTES the size of vectors, and
 * MULTIPLY(a, b) the products of the lower halves of their lanes. The vectors are those of GCC and Clang, so that plain
 * -O2 makes vector code. The arithmetic is that of IEEE 754, one operation at a time: the results do not depend on the
 * compiler, and no function of libm has a part in them. */
#include "array/random.h"

#include <string.h>

typedef uint64_t Bits __attribute__((vector_size(LOOPS_BYTES)));
typedef double Numbers __attribute__((vector_size(LOOPS_BYTES)));

enum { lanes = LOOPS_BYTES / 8 };

#define INLINE LOOPS_TARGET static inline __attribute__((always_inline))

/* ---- Philox4x32-10; source: see umem/array_random.h ---- */

/* Words are the lower halves of lanes; the upper halves hold anything. */
typedef struct Words {
  Bits at[4];
} Words;

INLINE Words rounds(uint32_t const key[2], Words words) {
  uint32_t k0 = key[0], k1 = key[1];
  Bits const zero = {0};
  for (int round = 0; round < 10; round++) {
    Bits a = MULTIPLY(words.at[0], zero + 0xD2511F53u);
    Bits b = MULTIPLY(words.at[2], zero + 0xCD9E8D57u);
    words.at[0] = b >> 32 ^ words.at[1] ^ (uint64_t)k0;
    words.at[2] = a >> 32 ^ words.at[3] ^ (uint64_t)k1;
    words.at[1] = b;
    words.at[3] = a;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return words;
}

LOOPS_TARGET static void philox(uint32_t const key[2], uint32_t values[4][umemRandomLanes]) {
  for (int first = 0; first < umemRandomLanes; first += lanes) {
    Words words;
    for (int w = 0; w < 4; w++)
      for (int l = 0; l < lanes; l++) words.at[w][l] = values[w][first + l];
    words = rounds(key, words);
    for (int w = 0; w < 4; w++)
      for (int l = 0; l < lanes; l++) values[w][first + l] = (uint32_t)words.at[w][l];
  }
}

/* The two numbers of 64 bits of each of `lanes` blocks. */
INLINE void draw(umemRandom const *random, uint64_t first, Bits *one, Bits *other) {
  Bits const zero = {0};
  Bits counters = zero + first;
  for (int l = 0; l < lanes; l++) counters[l] += (uint64_t)l;
  Words words = {{counters, counters >> 32, zero + random->kind, zero}};
  words = rounds(random->key, words);
  *one = words.at[1] << 32 | (words.at[0] & 0xFFFFFFFFu);
  *other = words.at[3] << 32 | (words.at[2] & 0xFFFFFFFFu);
}

/* ---- doubles ---- */

/* In [1, 2), a multiple of 2^-52. */
INLINE Numbers from_one(Bits bits) { return (Numbers)(bits >> 12 | 0x3FF0000000000000u); }

/* Where the lanes of mask are all ones that of one, else that of other. */
INLINE Numbers choose(Bits mask, Numbers one, Numbers other) {
  return (Numbers)((mask & (Bits)one) | (~mask & (Bits)other));
}

INLINE Numbers uniform_of(umemRandom const *random, Bits bits) {
  Numbers const zero = {0};
  Numbers x = random->origin + (from_one(bits) - 1) * random->unit;
  Numbers bottom = zero + random->bottom, top = zero + random->top;
  x = choose((Bits)(x < bottom), bottom, x);
  return choose((Bits)(x > top), top, x);
}

/* In turns. */
INLINE void store(double *out, Numbers one, Numbers other) {
  for (int l = 0; l < lanes; l++) {
    out[2 * l] = one[l];
    out[2 * l + 1] = other[l];
  }
}

LOOPS_TARGET static void uniform(umemRandom const *random, uint64_t first, size_t count,
                                 double *restrict out) {
  umemRandom const parameters = *random;
  for (size_t i = 0; i < count; i += lanes, out += 2 * lanes) {
    Bits one, other;
    draw(&parameters, first + i, &one, &other);
    store(out, uniform_of(&parameters, one), uniform_of(&parameters, other));
  }
}

/* ---- Box and Muller ----
 *
 * log x = e log 2 + 2 artanh s with s = (m - 1) / (m + 1), x = m 2^e and m in [sqrt 1/2, sqrt 2): |s| < 0.172. The sine and the
 * cosine are of angles in [-pi/4, pi/4]. The Taylor series end where the next term is below 2^-54 of the sum. */

/* Of a normal x in [2^-52, 1]. */
INLINE Numbers log_of(Numbers x) {
  uint64_t const half_root = 0x3FE6A09E667F3BCD, bias = 1023, mantissa = 52;
  Bits t = (Bits)x - half_root + (bias << mantissa);
  Numbers e = (Numbers)(0x4330000000000000u | t >> mantissa) - 4503599627371519.0; /* 2^52 + bias */
  Numbers m = (Numbers)((Bits)x - (t & 0xFFF0000000000000u) + (bias << mantissa));
  Numbers s = (m - 1) / (m + 1), q = s * s;
  Numbers sum = {0};
  sum += 1.0 / 21;
  sum = sum * q + 1.0 / 19;
  sum = sum * q + 1.0 / 17;
  sum = sum * q + 1.0 / 15;
  sum = sum * q + 1.0 / 13;
  sum = sum * q + 1.0 / 11;
  sum = sum * q + 1.0 / 9;
  sum = sum * q + 1.0 / 7;
  sum = sum * q + 1.0 / 5;
  sum = sum * q + 1.0 / 3;
  return e * 0.69314718055994531 + (2 * s + 2 * s * q * sum);
}

INLINE Numbers sine_of(Numbers x, Numbers q) {
  Numbers sum = {0};
  sum -= 1.0 / 1307674368000.0;
  sum = sum * q + 1.0 / 6227020800.0;
  sum = sum * q - 1.0 / 39916800.0;
  sum = sum * q + 1.0 / 362880.0;
  sum = sum * q - 1.0 / 5040.0;
  sum = sum * q + 1.0 / 120.0;
  sum = sum * q - 1.0 / 6.0;
  return x + x * q * sum;
}

INLINE Numbers cosine_of(Numbers q) {
  Numbers sum = {0};
  sum += 1.0 / 20922789888000.0;
  sum = sum * q - 1.0 / 87178291200.0;
  sum = sum * q + 1.0 / 479001600.0;
  sum = sum * q - 1.0 / 3628800.0;
  sum = sum * q + 1.0 / 40320.0;
  sum = sum * q - 1.0 / 720.0;
  sum = sum * q + 1.0 / 24.0;
  sum = sum * q - 0.5;
  return 1 + q * sum;
}

/* Compilers make one instruction of it. */
INLINE Numbers root_of(Numbers x) {
  for (int l = 0; l < lanes; l++) x[l] = __builtin_sqrt(x[l]);
  return x;
}

LOOPS_TARGET static void normal(umemRandom const *random, uint64_t first, size_t count,
                                double *restrict out) {
  umemRandom const parameters = *random;
  double const to_integer = 6755399441055744.0; /* 1.5 * 2^52: sums are rounded to integers */
  for (size_t i = 0; i < count; i += lanes, out += 2 * lanes) {
    Bits one, other;
    draw(&parameters, first + i, &one, &other);
    Numbers radius = root_of(-2 * log_of(2 - from_one(one)));
    Numbers turns = 4 * (from_one(other) - 1); /* quarters of a turn */
    Numbers nearest = turns + to_integer;
    Numbers x = (turns - (nearest - to_integer)) * 1.5707963267948966;
    Bits quarter = (Bits)nearest, sine = (Bits)sine_of(x, x * x), cosine = (Bits)cosine_of(x * x);
    Bits swap = (sine ^ cosine) & (0 - (quarter & 1));
    Numbers along = (Numbers)(cosine ^ swap ^ ((quarter + 1) & 2) << 62);
    Numbers across = (Numbers)(sine ^ swap ^ (quarter & 2) << 62);
    store(out, parameters.origin + parameters.unit * (radius * along),
          parameters.origin + parameters.unit * (radius * across));
  }
}

umemRandomLoops const LOOPS_TABLE = {philox, uniform, normal};
