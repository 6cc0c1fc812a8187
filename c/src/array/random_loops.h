/* random_loops.h - what loops.c and loops_avx2.c draw random numbers by.
 *
 * RANDOM_TABLE is the name of the table, LOOPS_TARGET the attribute of each function, LOOPS_BYTES
 * the size of vectors, MULTIPLY(a, b) the products of the lower halves of their lanes, and
 * STORE(out, a, b) writes their lanes in turns. The vectors are those of GCC and Clang, so that
 * plain -O2 makes vector code. The arithmetic is that of IEEE 754, one operation at a time: the
 * results do not depend on the compiler, and no function of libm has a part in them. */
#include <string.h>

typedef uint64_t Bits __attribute__((vector_size(LOOPS_BYTES)));
typedef double Numbers __attribute__((vector_size(LOOPS_BYTES)));

enum { lanes = LOOPS_BYTES / 8 };

#define INLINE LOOPS_TARGET static inline __attribute__((always_inline))

/* ---- Philox4x32-10; source: see umem/array_random.h ---- */

/* Words are the lower halves of lanes; the upper halves hold anything. Two vectors at a time: the
 * rounds of one wait for their products while those of the other go on. */
enum { pair = 2 };
typedef struct Words {
  Bits at[4][pair];
} Words;

/* Those of each round, in all lanes. */
enum { all_rounds = 10 };
typedef struct Keys {
  Bits at[all_rounds][2];
} Keys;

INLINE void spread(Keys *keys, uint32_t const key[2]) {
  Bits const zero = {0};
  uint32_t k0 = key[0], k1 = key[1];
  for (int round = 0; round < all_rounds; round++) {
    keys->at[round][0] = zero + k0;
    keys->at[round][1] = zero + k1;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
}

INLINE void rounds(Keys const *keys, Words *words) {
  Bits const zero = {0};
  for (int round = 0; round < all_rounds; round++) {
    for (int v = 0; v < pair; v++) {
      Bits a = MULTIPLY(words->at[0][v], zero + 0xD2511F53u);
      Bits b = MULTIPLY(words->at[2][v], zero + 0xCD9E8D57u);
      words->at[0][v] = b >> 32 ^ words->at[1][v] ^ keys->at[round][0];
      words->at[2][v] = a >> 32 ^ words->at[3][v] ^ keys->at[round][1];
      words->at[1][v] = b;
      words->at[3][v] = a;
    }
  }
}

LOOPS_TARGET static void philox(uint32_t const key[2], uint32_t values[4][umemRandomLanes]) {
  Keys keys;
  spread(&keys, key);
  for (int first = 0; first < umemRandomLanes; first += pair * lanes) {
    uint64_t wide[4][pair * lanes];
    Words words;
    for (int w = 0; w < 4; w++)
      for (int l = 0; l < pair * lanes; l++) wide[w][l] = values[w][first + l];
    memcpy(&words, wide, sizeof words);
    rounds(&keys, &words);
    memcpy(wide, &words, sizeof wide);
    for (int w = 0; w < 4; w++)
      for (int l = 0; l < pair * lanes; l++) values[w][first + l] = (uint32_t)wide[w][l];
  }
}

/* The two numbers of 64 bits of each of pair * lanes blocks. */
INLINE void draw(Keys const *keys, uint32_t kind, uint64_t first, Bits one[pair],
                 Bits other[pair]) {
  Bits const zero = {0};
  Bits counters = zero + first;
  Words words;
  for (int l = 0; l < lanes; l++) counters[l] += (uint64_t)l;
  for (int v = 0; v < pair; v++) {
    words.at[0][v] = counters + (uint64_t)(v * lanes);
    words.at[1][v] = words.at[0][v] >> 32;
    words.at[2][v] = zero + kind;
    words.at[3][v] = zero;
  }
  rounds(keys, &words);
  for (int v = 0; v < pair; v++) {
    one[v] = words.at[1][v] << 32 | (words.at[0][v] & 0xFFFFFFFFu);
    other[v] = words.at[3][v] << 32 | (words.at[2][v] & 0xFFFFFFFFu);
  }
}

/* ---- doubles ---- */

/* In [1, 2), a multiple of 2^-52. */
INLINE Numbers from_one(Bits bits) { return (Numbers)(bits >> 12 | 0x3FF0000000000000u); }

/* Where the lanes of mask are all ones that of one, else that of other. */
INLINE Numbers choose_lanes(Bits mask, Numbers one, Numbers other) {
  return (Numbers)((mask & (Bits)one) | (~mask & (Bits)other));
}

INLINE Numbers uniform_of(umemRandom const *random, Bits bits) {
  Numbers const zero = {0};
  Numbers x = random->origin + (from_one(bits) - 1) * random->unit;
  Numbers bottom = zero + random->bottom, top = zero + random->top;
  x = choose_lanes((Bits)(x < bottom), bottom, x);
  return choose_lanes((Bits)(x > top), top, x);
}

LOOPS_TARGET static void uniform(umemRandom const *random, uint64_t first, size_t count,
                                 double *restrict out) {
  umemRandom const parameters = *random;
  Keys keys;
  spread(&keys, parameters.key);
  for (size_t i = 0; i < count; i += pair * lanes) {
    Bits one[pair], other[pair];
    draw(&keys, parameters.kind, first + i, one, other);
    for (int v = 0; v < pair; v++, out += 2 * lanes)
      STORE(out, uniform_of(&parameters, one[v]), uniform_of(&parameters, other[v]));
  }
}

/* ---- Box and Muller ----
 *
 * log x = e log 2 + 2 artanh s with s = (m - 1) / (m + 1), x = m 2^e and m in [sqrt 1/2, sqrt 2):
 * |s| < 0.172. The sine and the cosine are of angles in [-pi/4, pi/4]. The polynomials in q, the
 * square of s or of the angle, interpolate at the zeros of a Chebyshev polynomial: artanh s = s (1
 * + q p(q)), relative error 2^-57; sin x = x (1 + q p(q)), 2^-55; cos x = 1 + q p(q), 2^-61. Terms
 * are added in pairs: the sums of the pairs do not wait for one another. */

/* -2 log x, for a normal x in [2^-52, 1]. */
INLINE Numbers square_of(Numbers x) {
  uint64_t const half_root = 0x3FE6A09E667F3BCD, bias = 1023, mantissa = 52;
  Bits t = (Bits)x - half_root + (bias << mantissa);
  Numbers e = (Numbers)(0x4330000000000000u | t >> mantissa) - 4503599627371519.0; /* 2^52 + bias */
  Numbers m = (Numbers)((Bits)x - (t & 0xFFF0000000000000u) + (bias << mantissa));
  Numbers s = (m - 1) / (m + 1), q = s * s, qq = q * q, r = -4 * s;
  Numbers sum = 0.07665860800278021 + q * 0.073082248425217031;
  sum = 0.1111110556739754 + q * 0.090914445626308613 + qq * sum;
  sum = 0.19999999999949752 + q * 0.14285714312987743 + qq * sum;
  sum = 0.33333333333333348 + q * sum;
  return e * -1.3862943611198906 + (r + r * (q * sum));
}

INLINE Numbers sine_of(Numbers x, Numbers q) {
  Numbers qq = q * q;
  Numbers sum = -2.5051131845003624e-08 + q * 1.5918129294866608e-10;
  sum = -0.00019841269836758574 + q * 2.7557316102552439e-06 + qq * sum;
  sum = -0.16666666666666666 + q * 0.008333333333330948 + qq * sum;
  return x + x * (q * sum);
}

INLINE Numbers cosine_of(Numbers q) {
  Numbers qq = q * q;
  Numbers sum = 2.0875886738047052e-09 + q * -1.1367998654022494e-11;
  sum = 2.4801587293693459e-05 + q * -2.7557315566341895e-07 + qq * sum;
  sum = 0.041666666666666637 + q * -0.0013888888888880775 + qq * sum;
  return 1 + q * (-0.5 + q * sum);
}

/* Compilers make one instruction of it. */
INLINE Numbers root_of(Numbers x) {
  for (int l = 0; l < lanes; l++) x[l] = __builtin_sqrt(x[l]);
  return x;
}

/* Numbers of a normal distribution from a radius and the bits of an angle: the upper two are its
 * quarter of a turn, the others the place in the quarter, from -1/2 to 1/2 of it. */
INLINE void turn(umemRandom const *random, Numbers radius, Bits bits, double *out) {
  Numbers x = (from_one(bits << 2) - 1.5) * 1.5707963267948966;
  Bits quarter = bits >> 62, sine = (Bits)sine_of(x, x * x), cosine = (Bits)cosine_of(x * x);
  Bits swap = (sine ^ cosine) & (0 - (quarter & 1));
  Bits sign = (Bits){0} + 0x8000000000000000u;
  Numbers along = (Numbers)(cosine ^ swap ^ ((bits ^ bits << 1) & sign));
  Numbers across = (Numbers)(sine ^ swap ^ (bits & sign));
  radius *= random->unit;
  STORE(out, random->origin + radius * along, random->origin + radius * across);
}

/* Each step for a batch of vectors: a processor works on the short loops of several vectors at a
 * time, and not on whole numbers, which are long chains of operations. */
LOOPS_TARGET static void normal(umemRandom const *random, uint64_t first, size_t count,
                                double *restrict out) {
  enum { batch = 64 };
  umemRandom const parameters = *random;
  Keys keys;
  spread(&keys, parameters.key);
  for (size_t i = 0; i < count; i += batch * lanes) {
    Bits one[batch], other[batch];
    Numbers square[batch]; /* of the radius */
    size_t vectors = (count - i) / lanes < batch ? (count - i) / lanes : batch;
    for (size_t v = 0; v < vectors; v += pair)
      draw(&keys, parameters.kind, first + i + v * lanes, one + v, other + v);
    for (size_t v = 0; v < vectors; v++) square[v] = square_of(2 - from_one(one[v]));
    for (size_t v = 0; v < vectors; v++, out += 2 * lanes)
      turn(&parameters, root_of(square[v]), other[v], out);
  }
}

umemRandomLoops const RANDOM_TABLE = {philox, uniform, normal};
