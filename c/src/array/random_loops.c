/* random_loops.c - random numbers by the instructions that every machine of its kind has. */
#define LOOPS_TABLE umem_random_loops
#define LOOPS_TARGET
#define LOOPS_BYTES 16
#if defined(__x86_64__)
#include <emmintrin.h>
#define MULTIPLY(a, b) ((Bits)_mm_mul_epu32((__m128i)(a), (__m128i)(b)))
#else
#define MULTIPLY(a, b) (((a)&0xFFFFFFFFu) * (b))
#endif
#define STORE(out, a, b)                                                                           \
  do {                                                                                             \
    Numbers const a_ = (a), b_ = (b);                                                              \
    (out)[0] = a_[0], (out)[1] = b_[0];                                                            \
    (out)[2] = a_[1], (out)[3] = b_[1];                                                            \
  } while (0)
#include "array/random_loops.h"

umemRandomLoops const *umem_random_loops_here(void) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return &umem_random_loops_avx2;
#endif
  return &umem_random_loops;
}
