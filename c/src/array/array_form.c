/* array_form.c - shapes and strides: checks, spans, order. */
#include "array/array_form.h"
#include "core/layout.h"
#include "core/status.h"

#include <stdio.h>

static bool check_rank(int rank, int64_t const *shape) {
  if (rank < 0 || rank > UMEM_MAX_RANK)
    return UMEM_FAIL(NULL, umemValueError, "rank %d is not in 0 ... %d", rank, UMEM_MAX_RANK);
  return !rank || shape ||
         UMEM_FAIL(NULL, umemValueError, "an array of rank %d has no shape", rank);
}

static bool fail_extent(int64_t extent, int dim) {
  return UMEM_FAIL(NULL, umemValueError, "extent %jd of dimension %d is negative", (intmax_t)extent,
                   dim);
}

static bool fail_size(void) {
  return UMEM_FAIL(NULL, umemValueError, "the elements leave the address space");
}

/* Copies the extents and counts the elements, and then the bytes without gaps to high. */
static bool take_shape(umemArrayForm *form, int64_t const *shape) {
  bool none = false, fits = true;
  int64_t elements = 1;
  for (int k = 0; k < form->rank; k++) {
    int64_t extent = form->shape[k] = shape[k];
    if (extent < 0) return fail_extent(extent, k);
    if (!extent) none = true;
    if (extent && __builtin_mul_overflow(elements, extent, &elements)) fits = false;
  }
  form->low = form->high = form->elements = 0;
  if (none) return true;
  form->elements = elements;
  fits = fits && !__builtin_mul_overflow(elements, (int64_t)form->item_size, &form->high);
  return (fits && form->high <= PTRDIFF_MAX) || fail_size();
}

/* C order. Without elements any strides are good: those of one element, then. */
static void fill_strides(umemArrayForm *form) {
  int64_t stride = (int64_t)form->item_size;
  for (int k = form->rank - 1; k >= 0; k--) {
    form->strides[k] = stride;
    if (form->elements) stride *= form->shape[k];
  }
}

static bool take_strides(umemArrayForm *form, int64_t const *given) {
  size_t extents[UMEM_MAX_RANK];
  ptrdiff_t strides[UMEM_MAX_RANK];
  umemLayoutSpan bytes;
  for (int k = 0; k < form->rank; k++) {
    form->strides[k] = given[k];
    extents[k] = (size_t)form->shape[k];
    strides[k] = (ptrdiff_t)given[k];
    if (strides[k] != given[k]) return fail_size();
  }
  if (!form->elements) return true;
  if (!umem_span_of(form->item_size, form->rank, extents, strides, &bytes)) return fail_size();
  form->low = bytes.low;
  form->high = bytes.high;
  return true;
}

bool umem_array_form(umemArrayForm *form, umemElementType type, int rank, int64_t const *shape,
                     int64_t const *strides) {
  form->type = type;
  form->item_size = umem_element_size(type);
  form->rank = rank;
  if (!form->item_size)
    return UMEM_FAIL(NULL, umemTypeError, "0x%x is no type of elements", (unsigned)type);
  if (!check_rank(rank, shape) || !take_shape(form, shape)) return false;
  if (strides) return take_strides(form, strides);
  fill_strides(form);
  return true;
}

char const *umem_array_write_shape(char text[umemArrayShapeText], int rank, int64_t const *shape) {
  int used = snprintf(text, umemArrayShapeText, "(");
  for (int k = 0; k < rank && used < umemArrayShapeText; k++)
    used += snprintf(text + used, (size_t)(umemArrayShapeText - used), k ? ", %jd" : "%jd",
                     (intmax_t)shape[k]);
  if (used < umemArrayShapeText)
    snprintf(text + used, (size_t)(umemArrayShapeText - used), rank == 1 ? ",)" : ")");
  return text;
}
