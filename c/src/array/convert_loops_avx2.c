/* convert_loops_avx2.c - conversions for x86 processors with AVX2, all of which have F16C, too. umem_conversion
 * asks whether this is one. */
#if defined(__x86_64__)
#include <immintrin.h>
#include <stddef.h>

#include "array/convert_number.h"

#define LOOPS_TABLE umem_convert_loops_avx2
#define LOOPS_TARGET __attribute__((target("avx2,f16c")))
#define LOOPS_HALVES /* below */

LOOPS_TARGET static void f16_to_f32(void const *restrict src, void *restrict dst, size_t count) {
  char const *from = src;
  char *to = dst;
  size_t i = 0;
  for (; i + 8 <= count; i += 8)
    _mm256_storeu_ps((void *)(to + 4 * i),
                     _mm256_cvtph_ps(_mm_loadu_si128((void const *)(from + 2 * i))));
  for (; i < count; i++) {
    uint16_t x;
    memcpy(&x, from + 2 * i, sizeof x);
    float const y = float_of_half(x);
    memcpy(to + 4 * i, &y, sizeof y);
  }
}

LOOPS_TARGET static void f32_to_f16(void const *restrict src, void *restrict dst, size_t count) {
  char const *from = src;
  char *to = dst;
  size_t i = 0;
  for (; i + 8 <= count; i += 8)
    _mm_storeu_si128(
        (void *)(to + 2 * i),
        _mm256_cvtps_ph(_mm256_loadu_ps((void const *)(from + 4 * i)), _MM_FROUND_TO_NEAREST_INT));
  for (; i < count; i++) {
    float x;
    memcpy(&x, from + 4 * i, sizeof x);
    uint16_t const y = half_of_float(x);
    memcpy(to + 2 * i, &y, sizeof y);
  }
}

#include "array/convert_loops.h"
#else
typedef int umemNoAvx2; /* a file of C has at least one declaration */
#endif
