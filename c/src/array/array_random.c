/* array_random.c - fills arrays with random numbers. */
#include <umem/array_random.h>

#include "array/array_operand.h"
#include "base/number.h"

#include <string.h>

enum { most_blocks = 512 }; /* at a time: their numbers stay in the first cache */

typedef struct Source {
  umemArrayMaker maker;
  umemRandom random;
  umemRandomLoop *loop;
  umemConversion conversion; /* of one number */
  uint64_t parts;            /* numbers of an element */
} Source;

/* The numbers first ... first + count - 1. */
static void make(umemArrayMaker const *self, int64_t first, int64_t count, void *out,
                 void *scratch) {
  Source const *source = (Source const *)self;
  double numbers[2 * most_blocks];
  uint64_t at = (uint64_t)first * source->parts, end = at + (uint64_t)count * source->parts;
  unsigned char *to = out;
  (void)scratch;
  while (at < end) {
    uint64_t block = at / 2, skip = at % 2, blocks = (end + 1) / 2 - block;
    if (blocks > most_blocks) blocks = most_blocks;
    uint64_t whole = (blocks + umemRandomLanes - 1) / umemRandomLanes * umemRandomLanes;
    uint64_t now = 2 * blocks - skip;
    if (now > end - at) now = end - at;
    bool in_place = !source->conversion.count && now == 2 * whole && /* then there is no skip */
                    (uintptr_t)to % sizeof(double) == 0;
    source->loop(&source->random, block, (size_t)whole, in_place ? (double *)(void *)to : numbers);
    if (!in_place) umem_convert(&source->conversion, numbers + skip, to, (size_t)now);
    to += now * source->conversion.dst_size;
    at += now;
  }
}

/* The real type of the numbers; 0, and a status, if there are none. */
static umemElementType number_type(umemArray const *array) {
  char name[32];
  unsigned code = umem_element_code(array->type), bits = umem_element_bits(array->type);
  if (code == umemCodeComplex) {
    code = umemCodeFloat;
    bits /= 2;
  }
  if (code == umemCodeBfloat || (code == umemCodeFloat && bits <= 64))
    return UMEM_ELEMENT(code, bits, 1);
  umem_element_name(array->type, name, sizeof name);
  return UMEM_FAIL_AS(0, NULL, umemTypeError, "there are no random numbers of type %s", name);
}

static void draw(umemArray *array, umemElementType type, umemRandom const *random, uint64_t seed) {
  umemRandomLoops const *loops = umem_random_loops_here();
  Source source = {.random = *random};
  umemArraySide to = umem_array_side(array, array->ctx, 0);
  umem_conversion(&source.conversion, umemFloat64, type, false);
  source.maker = (umemArrayMaker){.make = make,
                                  .item_size = array->item_size,
                                  .chunk = umem_array_chunk(umemArrayWide, array->item_size)};
  source.parts = array->item_size / source.conversion.dst_size;
  source.random.key[0] = (uint32_t)seed;
  source.random.key[1] = (uint32_t)(seed >> 32);
  source.loop = random->kind == umemNormal ? loops->normal : loops->uniform;
  if (array->elements) umem_array_make(&to, array->elements, &source.maker);
}

/* ---- bounds ---- */

/* The number of a type with these bits, as double, and the bits of a double rounded to the type. */
static double number_at(umemElementType type, uint64_t bits) {
  umemConversion conversion;
  double x;
  umem_conversion(&conversion, type, umemFloat64, false);
  uint16_t two = (uint16_t)bits;
  uint32_t four = (uint32_t)bits;
  size_t size = conversion.src_size;
  umem_convert(&conversion,
               size == 2   ? (void *)&two
               : size == 4 ? (void *)&four
                           : (void *)&bits,
               &x, 1);
  return x;
}

static uint64_t bits_near(umemElementType type, double x) {
  umemConversion conversion;
  uint16_t two;
  uint32_t four;
  uint64_t eight;
  umem_conversion(&conversion, umemFloat64, type, false);
  size_t size = conversion.dst_size;
  umem_convert(&conversion, &x,
               size == 2   ? (void *)&two
               : size == 4 ? (void *)&four
                           : (void *)&eight,
               1);
  return size == 2 ? two : size == 4 ? four : eight;
}

/* The next number of the type below x, which is one or infinite. */
static double below(umemElementType type, double x) {
  uint64_t bits = bits_near(type, x), sign = 1ull << (umem_element_bits(type) - 1);
  if (x == 0) return number_at(type, sign | 1);
  return number_at(type, x < 0 ? bits + 1 : bits - 1);
}

/* The smallest number of the type that is not below x. */
static double not_below(umemElementType type, double x) {
  double near = number_at(type, bits_near(type, x));
  return near < x ? -below(type, -near) : near;
}

static bool is_finite(double x) { return x - x == 0; }

/* ---- the calls ---- */

#define SHORT(x) (umem_number_text(x, 6).text)

static bool check_bounds(double low, double high) {
  if (!is_finite(low) || !is_finite(high))
    return UMEM_FAIL(NULL, umemValueError, "a bound is not finite: low is %s, high is %s",
                     SHORT(low), SHORT(high));
  if (low >= high)
    return UMEM_FAIL(NULL, umemValueError, "low %s is not below high %s", SHORT(low), SHORT(high));
  return is_finite(high - low) ||
         UMEM_FAIL(NULL, umemValueError, "the distance from low %s to high %s is not finite",
                   SHORT(low), SHORT(high));
}

void umemArray_random_uniform(umemArray *array, double low, double high, uint64_t seed,
                              umemStatusType *status) {
  UMEM_ARRAY_ENTER(status);
  umemElementType type = umem_array_writable(array) ? number_type(array) : 0;
  if (!type) return;
  umemRandom random = {.kind = umemUniform, .origin = low, .unit = high - low};
  if (!check_bounds(low, high)) return;
  random.bottom = not_below(type, low);
  random.top = below(type, not_below(type, high));
  char name[32];
  umem_element_name(type, name, sizeof name);
  if (random.bottom <= random.top)
    draw(array, type, &random, seed);
  else
    umemVirtual_fail(NULL, umemValueError, "no number of type %s is in [%s, %s)", name,
                     umem_number_text(low, 17).text, umem_number_text(high, 17).text);
}

void umemArray_random_normal(umemArray *array, double mean, double deviation, uint64_t seed,
                             umemStatusType *status) {
  UMEM_ARRAY_ENTER(status);
  umemElementType type = umem_array_writable(array) ? number_type(array) : 0;
  if (!type) return;
  umemRandom random = {.kind = umemNormal, .origin = mean, .unit = deviation};
  if (!is_finite(mean) || !is_finite(deviation) || deviation < 0)
    umemVirtual_fail(NULL, umemValueError, "mean %s and deviation %s are no normal distribution",
                     SHORT(mean), SHORT(deviation));
  else
    draw(array, type, &random, seed);
}
