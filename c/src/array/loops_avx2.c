/* loops_avx2.c - loops over numbers for x86 processors with AVX2, all of which have F16C, too.
 * umem_convert_loops_here and umem_random_loops_here find out whether this is one. */
#if defined(__x86_64__)
#include "array/loops.h"

#include <immintrin.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define LOOPS_TARGET __attribute__((target("avx2,f16c")))

/* ---- conversions ---- */

#define CONVERT_TABLE umem_convert_loops_avx2
#define LOOPS_HALVES /* below */

LOOPS_TARGET static void f16_to_f32(void const *restrict src, ptrdiff_t src_step,
                                    void *restrict dst, ptrdiff_t dst_step, size_t count) {
  char const *from = src;
  char *to = dst;
  bool dense = src_step == 2 && dst_step == 4;
  for (; dense && count >= 8; count -= 8, from += 16, to += 32)
    _mm256_storeu_ps((void *)to, _mm256_cvtph_ps(_mm_loadu_si128((void const *)from)));
  for (; count; count--, from += src_step, to += dst_step) {
    uint16_t x;
    memcpy(&x, from, sizeof x);
    float const y = _cvtsh_ss(x);
    memcpy(to, &y, sizeof y);
  }
}

LOOPS_TARGET static void f32_to_f16(void const *restrict src, ptrdiff_t src_step,
                                    void *restrict dst, ptrdiff_t dst_step, size_t count) {
  char const *from = src;
  char *to = dst;
  bool dense = src_step == 4 && dst_step == 2;
  for (; dense && count >= 8; count -= 8, from += 32, to += 16)
    _mm_storeu_si128((void *)to, _mm256_cvtps_ph(_mm256_loadu_ps((void const *)from),
                                                 _MM_FROUND_TO_NEAREST_INT));
  for (; count; count--, from += src_step, to += dst_step) {
    float x;
    memcpy(&x, from, sizeof x);
    uint16_t const y = _cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT);
    memcpy(to, &y, sizeof y);
  }
}

#include "array/convert_loops.h"

/* ---- random numbers ---- */

#define RANDOM_TABLE umem_random_loops_avx2
#define LOOPS_BYTES 32
#define MULTIPLY(a, b) ((Bits)_mm256_mul_epu32((__m256i)(a), (__m256i)(b)))
#define STORE(out, a, b)                                                                           \
  do {                                                                                             \
    __m256d const a_ = (__m256d)(a), b_ = (__m256d)(b);                                            \
    __m256d const even = _mm256_unpacklo_pd(a_, b_), odd = _mm256_unpackhi_pd(a_, b_);             \
    _mm256_storeu_pd((out), _mm256_permute2f128_pd(even, odd, 0x20));                              \
    _mm256_storeu_pd((out) + 4, _mm256_permute2f128_pd(even, odd, 0x31));                          \
  } while (0)
#include "array/random_loops.h"
#else
typedef int umemNoAvx2; /* a file of C has at least one declaration */
#endif
