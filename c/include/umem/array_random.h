/* umem/array_random.h - arrays of random numbers.
 *
 *     umemArray_random_uniform(array, 0, 1, seed, &status);
 *
 * An element depends on the seed and on its index in C order, and on nothing else: not on the
 * strides, the context or the number of threads. Complex elements have two numbers, and vectors one
 * for each lane: number j of all is the same in each type, rounded to it. The numbers are, bit for
 * bit, the same on every machine with IEEE 754 arithmetic and in every version of umem: umem
 * computes them with +, -, *, / and sqrt alone. This holds in the default floating-point
 * environment. Results that are too small for a normal number of the type are its subnormal numbers
 * there. A thread that flushes subnormal numbers to zero may get other numbers near zero.
 *
 * The generator is Philox4x32-10: the seed is its key. Numbers 2 b and 2 b + 1 come from the block
 * with counter (b mod 2^32, b / 2^32, kind, 0), with kind 0 for uniform and 1 for normal numbers.
 * Of its four words w, the fractions ((w[1] 2^32 + w[0]) / 2^12) / 2^52, rounded down at the first
 * division, and the same of w[3] and w[2], are those of the two numbers. Source: Salmon, Moraes,
 * Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011. It is not for
 * cryptography.
 *
 * The CPU makes the numbers. On return of the call they have arrived, also on ordered contexts.
 * Like umemArray_convert it writes where it can to the memory itself, and else through a buffer in
 * RAM of at most 4 MiB.
 *
 * Errors of both functions: umemTypeError, with nothing written, unless the elements are float16,
 * bfloat16, float32, float64, or complex numbers of such; umemNotSupportedError for a read-only
 * array; umemMemoryError without room for buffers; those of umem_copy_strided. */
#ifndef UMEM_ARRAY_RANDOM_H
#define UMEM_ARRAY_RANDOM_H

#include <umem/array.h>
#include <umem/base.h>

/* Sets all elements to numbers that are uniform in [low, high): low + u (high - low), where u is a
 * multiple of 2^-52 in [0, 1), rounded to the type but kept within the numbers of the type in [low,
 * high). Of complex elements both parts are. Errors: besides, umemValueError where low < high does
 * not hold, or a bound or their distance is not finite, or no number of the type is in [low,
 * high). */
UMEM_EXTERN void umemArray_random_uniform(umemArray *array, double low, double high, uint64_t seed,
                                          umemStatusType *status);

/* Sets all elements to numbers of a normal distribution with this mean and standard deviation, by
 * the method of Box and Muller in double precision, from the two fractions u and v of a block: mean
 * + deviation r cos(a) and mean + deviation r sin(a) with r = sqrt(-2 log(1 - u)) and a = 2 pi (v -
 * 1/8), where v has 54 bits. None is more than 8.5 deviations from the mean. Of complex elements
 * both parts are. Errors: besides, umemValueError where deviation is negative, or a parameter is
 * not finite. */
UMEM_EXTERN void umemArray_random_normal(umemArray *array, double mean, double deviation,
                                         uint64_t seed, umemStatusType *status);

#endif
