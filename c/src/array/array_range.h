/* array_range.h - ranges of an array's elements in C order, as boxes.
 *
 * The elements offset ... offset + count - 1 of an array of any strides are at most 2 * rank - 1 boxes, each with a
 * shape and the strides of the array. */
#ifndef UMEM_ARRAY_RANGE_H
#define UMEM_ARRAY_RANGE_H

#include "array/array_handle.h"

/* The dimensions of an array, those joined that need no stride of their own. */
typedef struct umemArrayAxes {
  uintptr_t adr;
  int rank; /* at least 1 */
  int64_t shape[UMEM_MAX_RANK];
  int64_t strides[UMEM_MAX_RANK];
} umemArrayAxes;

void umem_array_axes(umemArrayAxes *axes, umemArray const *array);

/* One element has an axis, too: adds it where there is none. */
void umem_array_end_axes(umemArrayAxes *axes, size_t item_size);

/* Fills order[rank] with the dimensions by falling size of their strides; those of equal size keep their order. */
void umem_array_sort(int rank, int64_t const *strides, int *order);

/* The same for elements in any order: by falling strides, which are not negative, and adr is the first byte of all. The
 * array has elements. */
void umem_array_axes_of_memory(umemArrayAxes *axes, umemArray const *array);

/* Whether the elements follow one another without gaps. */
bool umem_array_is_run(umemArrayAxes const *axes, size_t item_size);

typedef struct umemArrayBox {
  uintptr_t adr;
  int64_t elements;
  int rank;
  int64_t shape[UMEM_MAX_RANK];
  int64_t const *strides; /* [rank], of the axes */
} umemArrayBox;

/* The largest box that begins with element offset and has at most count > 0 elements. */
void umem_array_box(umemArrayBox *box, umemArrayAxes const *axes, int64_t offset, int64_t count);

/* Joins a dimension with the one before it, of *extent elements that are *stride bytes apart, where they follow one
 * another without a gap. False where they do not, and where the numbers do not fit. */
static inline bool umem_array_join(int64_t *extent, int64_t *stride, int64_t inner_extent,
                                   int64_t inner_stride) {
  int64_t row, all;
  if (__builtin_mul_overflow(inner_extent, inner_stride, &row) || *stride != row ||
      __builtin_mul_overflow(*extent, inner_extent, &all))
    return false;
  *extent = all;
  *stride = inner_stride;
  return true;
}

#endif
