/* array_convert_rows.h - conversion between two arrays of one shape, row by row, where the CPU may use both. */
#ifndef UMEM_ARRAY_CONVERT_ROWS_H
#define UMEM_ARRAY_CONVERT_ROWS_H

#include "array/array_conversion.h"
#include "array/array_range.h"

/* Converts all elements where they are, without buffers; the conversion has loops. False, with nothing done, where
 * the shapes differ, and where rows of one side are columns of the other: then tiles are faster. to goes up by its
 * strides. */
bool umem_array_convert_rows(umemConversion const *conversion, umemArrayAxes const *from,
                             umemArrayAxes const *to);

#endif
