/* array_conversion.h - numbers of one type from numbers of another one, in memory that the CPU may
 * use. */
#ifndef UMEM_ARRAY_CONVERSION_H
#define UMEM_ARRAY_CONVERSION_H

#include <stdbool.h>
#include <stddef.h>
#include <umem/array.h>

#include "array/array_operand.h"
#include "array/loops.h"

/* Where elements of one type become elements of another one: by up to three loops, one after the
 * other. */
typedef struct umemConversion {
  umemConvertLoop *loops[3];
  size_t sizes[3];           /* bytes of a number after each loop */
  int count;                 /* of loops; 0 where the bytes stay as they are */
  size_t parts;              /* numbers of an element: 2 for complex, times the lanes */
  size_t src_size, dst_size; /* bytes of an element */
} umemConversion;

/* wraps: numbers out of the range of an integer type wrap. False, with nothing recorded, where
 * umem/array_convert.h defines no conversion. */
bool umem_conversion(umemConversion *conversion, umemElementType from, umemElementType to,
                     bool wraps);

/* Converts count elements without gaps, in the calling thread. */
void umem_convert(umemConversion const *conversion, void const *src, void *dst, size_t count);

/* Converts count elements that are so many bytes apart. The count of loops is not 0. */
void umem_convert_steps(umemConversion const *conversion, void const *src, ptrdiff_t src_step,
                        void *dst, ptrdiff_t dst_step, size_t count);

/* ---- rows ---- */

/* Converts all elements where they are, without buffers; the conversion has loops. False, with
 * nothing done, where the shapes differ, and where rows of one side are columns of the other: then
 * tiles are faster. to goes up by its strides. */
bool umem_array_convert_rows(umemConversion const *conversion, umemArrayAxes const *from,
                             umemArrayAxes const *to);

#endif
