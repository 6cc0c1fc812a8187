/* array_range.c - see array_range.h. */
#include "array/array_range.h"

#include <string.h>

static void add_axis(umemArrayAxes *axes, int64_t extent, int64_t stride) {
  int last = axes->rank - 1;
  if (extent == 1 ||
      (axes->rank && umem_array_join(&axes->shape[last], &axes->strides[last], extent, stride)))
    return;
  axes->shape[axes->rank] = extent;
  axes->strides[axes->rank++] = stride;
}

void umem_array_end_axes(umemArrayAxes *axes, size_t item_size) {
  if (axes->rank) return;
  axes->rank = 1;
  axes->shape[0] = 1;
  axes->strides[0] = (int64_t)item_size;
}

void umem_array_axes(umemArrayAxes *axes, umemArray const *array) {
  axes->adr = array->adr;
  axes->rank = 0;
  for (int k = 0; k < array->rank; k++)
    add_axis(axes, umem_array_shape(array)[k], umem_array_strides(array)[k]);
  umem_array_end_axes(axes, array->item_size);
}

static uint64_t size_of(int64_t stride) {
  return stride < 0 ? 0 - (uint64_t)stride : (uint64_t)stride;
}

void umem_array_sort(int rank, int64_t const *strides, int *order) {
  for (int k = 0; k < rank; k++) {
    int j = k;
    for (; j > 0 && size_of(strides[order[j - 1]]) < size_of(strides[k]); j--)
      order[j] = order[j - 1];
    order[j] = k;
  }
}

void umem_array_axes_of_memory(umemArrayAxes *axes, umemArray const *array) {
  int order[UMEM_MAX_RANK];
  umem_array_sort(array->rank, umem_array_strides(array), order);
  axes->adr = array->adr;
  axes->rank = 0;
  for (int j = 0; j < array->rank; j++) {
    int64_t extent = umem_array_shape(array)[order[j]];
    int64_t stride = umem_array_strides(array)[order[j]];
    if (extent > 1 && stride < 0) {
      axes->adr += (uintptr_t)((extent - 1) * stride);
      stride = -stride;
    }
    add_axis(axes, extent, stride);
  }
  umem_array_end_axes(axes, array->item_size);
}

bool umem_array_is_run(umemArrayAxes const *axes, size_t item_size) {
  return axes->rank == 1 && (axes->shape[0] == 1 || axes->strides[0] == (int64_t)item_size);
}

/* A box is some whole inner dimensions, as many as the offset and the count allow, and a part of the next one. */
void umem_array_box(umemArrayBox *box, umemArrayAxes const *axes, int64_t offset, int64_t count) {
  int64_t inner = 1; /* elements of the whole inner dimensions */
  int k = axes->rank - 1;
  while (k > 0 && offset % (inner * axes->shape[k]) == 0 && count >= inner * axes->shape[k])
    inner *= axes->shape[k--];
  int64_t index = offset / inner % axes->shape[k], left = axes->shape[k] - index;
  int64_t part = count / inner < left ? count / inner : left;
  box->rank = axes->rank - k;
  box->strides = axes->strides + k;
  memcpy(box->shape, axes->shape + k, (size_t)box->rank * sizeof *box->shape);
  box->shape[0] = part;
  box->elements = part * inner;
  box->adr = axes->adr;
  for (int j = axes->rank - 1; j >= 0; j--) {
    box->adr += (uintptr_t)(offset % axes->shape[j] * axes->strides[j]);
    offset /= axes->shape[j];
  }
}
