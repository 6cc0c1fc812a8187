/* random_loops_avx2.c - random numbers for x86 processors with AVX2. umem_random_loops_here finds
 * out whether this is one. */
#if defined(__x86_64__)
#include <immintrin.h>
#define LOOPS_TABLE umem_random_loops_avx2
#define LOOPS_TARGET __attribute__((target("avx2")))
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
