/* umem/array_convert.h - copies of arrays to elements of another type.
 *
 *     umemArray_convert(doubles, halves, 0, 0, umemArray_elements(halves), &status);
 *
 * Both types are real, or both are complex, and have the same number of lanes. Real types: bool,
 * integers of 8 to 64 bits, float16, bfloat16, float32, float64. Complex numbers, of float16,
 * float32 or float64, are converted part by part, and vectors lane by lane. A real type and a
 * complex one have no conversion, nor have other types, float8 for example, which are stored only.
 * Between equal types of any kind the bytes are copied.
 *
 *   to integers      floating-point numbers are rounded toward zero. Numbers out of range become
 *                    the nearest number in range, infinities included; NaN becomes 0. With
 *                    umemArray_convert_wrapping they wrap instead.
 *   to floats        the nearest number, of two the one whose last bit is 0: one rounding, whatever
 *                    the types are. What is too large becomes infinity. Subnormal numbers, signed
 *                    zeros, infinities and NaN stay what they are; of NaN the payload is not
 *                    defined.
 *   to bool          0 and -0 are false, all else is true, NaN too. A source of bool may have any
 *                    byte but 0 for true. It becomes 1.
 *
 * This holds in the default floating-point environment; where the thread flushes subnormal numbers
 * to zero they are zero. */
#ifndef UMEM_ARRAY_CONVERT_H
#define UMEM_ARRAY_CONVERT_H

#include <umem/array.h>
#include <umem/base.h>

/* Converts count elements: element src_offset + i of src becomes element dst_offset + i of dst,
 * counted in C order whatever the strides, on any two contexts. Shapes may differ. The two arrays
 * may overlap: the result is as if src were read before dst is written. This takes RAM for all
 * count elements of dst, but not where the two ranges are apart in memory, nor where the elements
 * take turns, as the even and the odd columns do.
 *
 * The CPU converts. On return of the call all is complete, also on ordered contexts: it waits for
 * their queues. The CPU uses the elements where they are if the context says that it can: in RAM,
 * in pinned memory, in pools and adaptors over such, and those of src in managed memory. All others
 * go through buffers in RAM of at most 4 MiB, or of one element, for each side. So does memory
 * below adaptors that look at copies, which are umemDebug, umemLog and umemFault.
 *
 * Errors, with nothing written: umemTypeError where there is no conversion; umemNotSupportedError
 * for a read-only dst; umemIndexError where elements are outside of an array. Those of
 * umem_copy_strided, and umemMemoryError without room for buffers, after some elements perhaps. */
UMEM_EXTERN void umemArray_convert(umemArray *dst, umemArray *src, int64_t dst_offset,
                                   int64_t src_offset, int64_t count, umemStatusType *status);

/* As umemArray_convert, but numbers out of the range of an integer type of n bits wrap: they become
 * the number in range that differs from them by a multiple of 2^n, after rounding toward zero. So
 * 300 becomes 44 in int8, and -1 the largest number of an unsigned type. Infinities and NaN become
 * 0. All other conversions are equal. */
UMEM_EXTERN void umemArray_convert_wrapping(umemArray *dst, umemArray *src, int64_t dst_offset,
                                            int64_t src_offset, int64_t count,
                                            umemStatusType *status);

#endif
