/* convert_loops_avx2.c - conversions for x86 processors with AVX2. umem_conversion asks whether this is one. */
#if defined(__x86_64__)
#define LOOPS_TABLE umem_convert_loops_avx2
#define LOOPS_TARGET __attribute__((target("avx2")))
#include "array/convert_loops.h"
#else
typedef int umemNoAvx2; /* a file of C has at least one declaration */
#endif
