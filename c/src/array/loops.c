/* loops.c - loops over numbers by the instructions that every machine of its kind has, and which
 * loops this machine has. */
#include "array/loops.h"

#define LOOPS_TARGET

#define CONVERT_TABLE umem_convert_loops
#include "array/convert_loops.h"

#define RANDOM_TABLE umem_random_loops
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

/* ---- this machine ---- */

#if defined(__x86_64__)
#include <cpuid.h>
#include <stdbool.h>

/* Asked once: on virtual machines the question takes longer than short conversions. */
static bool has_avx2(void) {
  enum { unknown, no, yes };
  static int answer; /* atomic */
  int known = __atomic_load_n(&answer, __ATOMIC_RELAXED);
  if (known == unknown) {
    unsigned a, b, c, d;
    bool has_f16c = __get_cpuid(1, &a, &b, &c, &d) && c & bit_F16C;
    known = has_f16c && __builtin_cpu_supports("avx2") ? yes : no;
    __atomic_store_n(&answer, known, __ATOMIC_RELAXED);
  }
  return known == yes;
}
#endif

umemConvertLoops const *umem_convert_loops_here(void) {
#if defined(__x86_64__)
  if (has_avx2()) return &umem_convert_loops_avx2;
#endif
  return &umem_convert_loops;
}

umemRandomLoops const *umem_random_loops_here(void) {
#if defined(__x86_64__)
  if (has_avx2()) return &umem_random_loops_avx2;
#endif
  return &umem_random_loops;
}
