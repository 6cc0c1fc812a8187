/* random.c - umem/array_random.h: the generator's known answers, equal numbers everywhere, and
 * their distribution. */
#include "array_help.h"

#include "array/loops.h"
#include "unit/each_backend.h"

#include <math.h>

/* ---- known answers ----
 *
 * Source: Random123 1.14, tests/kat_vectors, philox4x32 10. */
static struct {
  uint32_t counter[4], key[2], result[4];
} const known[] = {
    {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
     {0xffffffff, 0xffffffff},
     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     {0xa4093822, 0x299f31d0},
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
};

static void expect_known(umemRandomLoops const *loops) {
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    for (int lane = 0; lane < umemRandomLanes; lane++) {
      uint32_t words[4][umemRandomLanes];
      memset(words, 0x5A, sizeof words);
      for (int w = 0; w < 4; w++) words[w][lane] = known[i].counter[w];
      loops->philox(known[i].key, words);
      for (int w = 0; w < 4; w++) assert_int_equal(words[w][lane], known[i].result[w]);
    }
}

TEST(the_generator_is_philox) {
  expect_known(&umem_random_loops);
  expect_known(umem_random_loops_here());
}

TEST(all_machines_draw_the_same) {
  static double one[4096], other[4096];
  umemRandom const random = {
      .key = {7, 9}, .kind = umemNormal, .origin = -1, .unit = 3, .bottom = -1, .top = 1.9};
  umem_random_loops.uniform(&random, 0xFFFFFFF0u, 2048, one);
  umem_random_loops_here()->uniform(&random, 0xFFFFFFF0u, 2048, other);
  assert_memory_equal(one, other, sizeof one);
  for (size_t count = 8; count <= 2048; count += 8 + count / 2 / 8 * 8) {
    umem_random_loops.normal(&random, 0xFFFFFFF0u, count, one);
    umem_random_loops_here()->normal(&random, 0xFFFFFFF0u, count, other);
    assert_memory_equal(one, other, 2 * count * sizeof *one);
  }
}

/* FNV-1a: Fowler, Noll and Vo. */
static uint64_t hash_of(double const *numbers, size_t count) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (size_t i = 0; i < count; i++) {
    uint64_t bits;
    memcpy(&bits, &numbers[i], sizeof bits);
    for (int k = 0; k < 64; k += 8) hash = (hash ^ (bits >> k & 0xFF)) * 0x100000001B3u;
  }
  return hash;
}

/* On every machine, with every compiler and option, and in every version. */
TEST(the_bits_stay_the_same) {
  static double numbers[2 * 2056]; /* whole batches, and a rest */
  umemRandom const random = {
      .key = {7, 9}, .kind = umemNormal, .origin = -1, .unit = 3, .bottom = -1, .top = 2};
  umem_random_loops.uniform(&random, 0xFFFFFFF0u, 2056, numbers);
  assert_true(hash_of(numbers, 2 * 2056) == 0x73E81708AAFEAB58u);
  umem_random_loops.normal(&random, 0xFFFFFFF0u, 2056, numbers);
  assert_true(hash_of(numbers, 2 * 2056) == 0x9DB0069B45FAA73Au);
}

/* The numbers by their definition, with the functions of libm. */
TEST(the_numbers_are_as_documented) {
  enum { count = 20000 };
  int64_t const shape = count;
  uint64_t const seed = 0x0123456789ABCDEF;
  umemArray *uniform = umemArray_create(&host, umemDouble, 1, &shape, NULL, &status);
  umemArray *normal = umemArray_create(&host, umemDouble, 1, &shape, NULL, &status);
  umemArray_random_uniform(uniform, -2, 6, seed, &status);
  umemArray_random_normal(normal, 10, 4, seed, &status);
  assert_ok(status);
  double const *u = umemArray_host_pointer(uniform, false, &status);
  double const *n = umemArray_host_pointer(normal, false, &status);
  uint32_t const key[2] = {0x89ABCDEF, 0x01234567};
  for (uint32_t block = 0; block < count / 2; block++)
    for (uint32_t kind = 0; kind < 2; kind++) {
      uint32_t words[4][umemRandomLanes] = {{block}, {0}, {kind}, {0}};
      umem_random_loops.philox(key, words);
      uint64_t a = (uint64_t)words[1][0] << 32 | words[0][0],
               b = (uint64_t)words[3][0] << 32 | words[2][0];
      double x = ldexp((double)(a >> 12), -52), y = ldexp((double)(b >> 12), -52);
      if (kind == 0) {
        assert_true(u[2 * block] == -2 + 8 * x && u[2 * block + 1] == -2 + 8 * y);
        continue;
      }
      double radius = sqrt(-2 * log(1 - x)), turn = 6.283185307179586477 * (y - 0.125);
      assert_true(fabs(n[2 * block] - (10 + 4 * radius * cos(turn))) < 1e-13);
      assert_true(fabs(n[2 * block + 1] - (10 + 4 * radius * sin(turn))) < 1e-13);
    }
  RELEASE(uniform, normal);
}

/* ---- the same everywhere ---- */

static umemElementType const types[] = {umemFloat16, umemBfloat16,     umemFloat,
                                        umemDouble,  umemComplexFloat, umemComplexDouble};

static void draw(umemArray *array, bool normal) {
  if (normal)
    umemArray_random_normal(array, 1, 2, 77, &status);
  else
    umemArray_random_uniform(array, -3, 5, 77, &status);
}

/* Whether the parts of an array are those of `numbers`, rounded. To few bits some are rounded to
 * the upper bound, which the array must not have: these are compared with another array. */
static void expect_numbers(umemArray *array, umemArray *numbers, bool normal, char const *where) {
  umemElementType type = umemArray_type(array);
  int64_t elements = umemArray_elements(array), parts = umemArray_is_complex(array) ? 2 : 1;
  int64_t count = elements * parts;
  unsigned half = umem_element_bits(type) / 2;
  umemElementType part = parts == 2 ? UMEM_ELEMENT(umemCodeFloat, half, 1) : type;
  umemArray *copy = umemArray_copy(array, &host, umemOrderC, &status);
  assert_ok(umem_synchronize(umemArray_context(array)));
  umemArray *want = umemArray_create(&host, part, 1, &count, NULL, &status);
  if (!normal && umem_element_bits(part) == 16)
    draw(want, normal);
  else
    umemArray_convert(want, numbers, 0, 0, count, &status);
  if (status != umemOK) fail_msg("%s: %s", where, umem_thread_message());
  if (memcmp(umemArray_host_pointer(copy, false, &status),
             umemArray_host_pointer(want, false, &status), umemArray_nbytes(want)) != 0)
    fail_msg("%s: other numbers of type 0x%x", where, type);
  RELEASE(copy, want);
}

static void expect_same_on(umemVirtual *ctx, char const *where, int64_t columns) {
  int64_t const shape[] = {7, columns}, all = 2 * 7 * columns;
  SCOPED(release_array)
  umemArray *numbers = umemArray_create(&host, umemDouble, 1, &all, NULL, &status);
  for (int normal = 0; normal < 2; normal++) {
    draw(numbers, normal);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
      umemArray *array = umemArray_zeros(ctx, types[i], 2, shape, NULL, &status);
      draw(array, normal);
      expect_numbers(array, numbers, normal, where);
      umemArray *turned = umemArray_permute(array, NULL, &status);
      umemArray *odd = umemArray_slice(turned, 0, columns - 1, columns / 2, -2, &status);
      draw(odd, normal);
      expect_numbers(odd, numbers, normal, where);
      RELEASE(odd, turned, array);
    }
  }
}

static void expect_same(Backend const *row, umemVirtual *ctx) {
  expect_same_on(ctx, row->name, 11);
  expect_same_on(ctx, row->name, 401);
}

TEST(every_context_has_the_same_numbers) { assert_true(for_each_backend(expect_same) > 0); }

/* What one thread draws in one piece, eight draw in several. */
TEST(threads_do_not_matter) {
  int64_t const count = 1 << (setting_small() ? 19 : 21) | 1, shape = count;
  umemArray *one = umemArray_zeros(&host, umemDouble, 1, &shape, NULL, &status);
  umemArray *many = umemArray_zeros(&host, umemDouble, 1, &shape, NULL, &status);
  assert_ok(umem_set_threads(1));
  draw(one, true);
  for (unsigned threads = 2; threads <= 8; threads += setting_small() ? 3 : 1) {
    assert_ok(umem_set_threads(threads));
    umemArray_clear(many, &status);
    draw(many, true);
    assert_ok(status);
    assert_memory_equal(umemArray_host_pointer(one, false, &status),
                        umemArray_host_pointer(many, false, &status),
                        (size_t)count * sizeof(double));
  }
  assert_ok(umem_set_threads(0));
  RELEASE(one, many);
}

/* ---- distribution ---- */

enum { drawn = 1 << 20, bins = 64 };

static double const *draw_many(umemArray **array, bool normal, uint64_t seed) {
  int64_t const shape = drawn;
  *array = umemArray_create(&host, umemDouble, 1, &shape, NULL, &status);
  if (normal)
    umemArray_random_normal(*array, 0, 1, seed, &status);
  else
    umemArray_random_uniform(*array, 0, 1, seed, &status);
  assert_ok(status);
  return umemArray_host_pointer(*array, false, &status);
}

/* share: of all numbers below x. Chi-square with 63 degrees of freedom is above 120 once in 10^5
 * times. */
static void expect_distribution(double const *x, double (*share)(double)) {
  int found[bins] = {0};
  double chi = 0, each = (double)drawn / bins;
  for (int i = 0; i < drawn; i++) {
    int bin = (int)(share(x[i]) * bins);
    found[bin < bins ? bin : bins - 1]++;
  }
  for (int i = 0; i < bins; i++) chi += (found[i] - each) * (found[i] - each) / each;
  assert_true(chi > 25 && chi < 120);
}

static void expect_moments(double const *x, double mean, double variance) {
  double sum = 0, squares = 0, products = 0;
  for (int i = 0; i < drawn; i++) sum += x[i];
  for (int i = 0; i < drawn; i++) squares += (x[i] - mean) * (x[i] - mean);
  for (int i = 1; i < drawn; i++) products += (x[i] - mean) * (x[i - 1] - mean);
  assert_true(fabs(sum / drawn - mean) < 5 * sqrt(variance / drawn));
  assert_true(fabs(squares / drawn / variance - 1) < 5 * sqrt(2.0 / drawn));
  assert_true(fabs(products / drawn / variance) < 5 * sqrt(1.0 / drawn));
}

static double uniform_share(double x) { return x; }
static double normal_share(double x) { return erfc(-x / sqrt(2)) / 2; }

TEST(the_distribution_is_right) {
  for (uint64_t seed = 1; seed < (setting_small() ? 2 : 4); seed++) {
    umemArray *uniform, *normal;
    double const *u = draw_many(&uniform, false, seed), *n = draw_many(&normal, true, seed);
    expect_distribution(u, uniform_share);
    expect_moments(u, 0.5, 1.0 / 12);
    expect_distribution(n, normal_share);
    expect_moments(n, 0, 1);
    for (int i = 0; i < drawn; i++) assert_true(u[i] >= 0 && u[i] < 1 && fabs(n[i]) < 8.5);
    RELEASE(uniform, normal);
  }
}

/* ---- bounds ---- */

/* Where numbers are rounded to few bits, the bounds still hold. */
TEST(bounds_hold_in_every_type) {
  int64_t const shape = 10000;
  static double const bounds[][2] = {{0, 1},     {-1, 0},         {1, 1.01}, {-1.01, -1},
                                     {0.1, 0.3}, {-65504, 65504}, {0, 1e-7}, {-1e-7, 1e-7}};
  SCOPED(release_array)
  umemArray *doubles = umemArray_create(&host, umemDouble, 1, &shape, NULL, &status);
  for (size_t k = 0; k < sizeof bounds / sizeof *bounds; k++)
    for (size_t i = 0; i < 4; i++) {
      umemArray *array = umemArray_create(&host, types[i], 1, &shape, NULL, &status);
      umemArray_random_uniform(array, bounds[k][0], bounds[k][1], k, &status);
      umemArray_convert(doubles, array, 0, 0, shape, &status);
      if (status != umemOK) fail_msg("%zu, %zu: %s", k, i, umem_thread_message());
      double const *x = umemArray_host_pointer(doubles, false, &status);
      for (int j = 0; j < shape; j++) assert_true(x[j] >= bounds[k][0] && x[j] < bounds[k][1]);
      umemArray_release(array);
    }
}

TEST(wrong_calls_are_refused) {
  int64_t const shape = 4;
  umemArray *ints = umemArray_zeros(&host, umemInt, 1, &shape, NULL, &status);
  umemArray *halves = umemArray_zeros(&host, umemFloat16, 1, &shape, NULL, &status);
  umemArray *fixed = umemArray_alias(halves, &status);
  umemArray_set_read_only(fixed, true, &status);
  FAILS(umemArray_random_uniform(ints, 0, 1, 1, &status), umemTypeError,
        "there are no random numbers of type int32");
  FAILS(umemArray_random_normal(ints, 0, 1, 1, &status), umemTypeError, "int32");
  FAILS(umemArray_random_uniform(fixed, 0, 1, 1, &status), umemNotSupportedError, "read-only");
  FAILS(umemArray_random_normal(NULL, 0, 1, 1, &status), umemValueError, "NULL");
  FAILS(umemArray_random_uniform(halves, 1, 1, 1, &status), umemValueError,
        "low 1 is not below high 1");
  FAILS(umemArray_random_uniform(halves, 2, 1, 1, &status), umemValueError,
        "low 2 is not below high 1");
  umemArray_random_uniform(halves, 1.0625, 1.0626, 1, &status); /* the bottom alone */
  assert_ok(status);
  umemArray_clear(halves, &status);
  umemArray_random_uniform(halves, 1.03125, 1.03125 + 0x1p-52, 1, &status);
  assert_ok(status);
  umemArray_clear(halves, &status);
  umemArray_random_uniform(halves, 1.0001, 1.0002, 1, &status); /* no float16 is there */
  expect_failure(umemValueError, "no number of type float16 is in [1.0001");
  FAILS(umemArray_random_uniform(halves, 0, (double)NAN, 1, &status), umemValueError,
        "a bound is not finite: low is 0, high is nan");
  FAILS(umemArray_random_uniform(halves, (double)-INFINITY, 1, 1, &status), umemValueError,
        "low is -inf");
  FAILS(umemArray_random_uniform(halves, -1.7e308, 1.7e308, 1, &status), umemValueError,
        "the distance from low -1.7e+308 to high 1.7e+308 is not finite");
  FAILS(umemArray_random_normal(halves, 0, -1, 1, &status), umemValueError, "deviation -1");
  FAILS(umemArray_random_normal(halves, (double)INFINITY, 1, 1, &status), umemValueError,
        "mean inf");
  status = umemIOError;
  umemArray_random_uniform(halves, 0, 1, 1, &status);
  assert_int_equal(status, umemIOError);
  uint16_t const *x = (uint16_t const *)umemArray_address(halves);
  for (int i = 0; i < 4; i++) assert_int_equal(x[i], 0);
  status = umemOK;
  RELEASE(fixed, halves, ints);
}
