/* array_view.c - handles over a part of an array's memory. */
#include "array/array_handle.h"
#include "array/array_range.h"
#include "core/status.h"

#include <string.h>

static bool has_dim(umemArray const *array, int dim) {
  return (dim >= 0 && dim < array->rank) ||
         UMEM_FAIL(NULL, umemIndexError, "the array of rank %d has no dimension %d", array->rank,
                   dim);
}

umemArray *umemArray_alias(umemArray *array, umemStatusType *status) {
  UMEM_ARRAY_ENTER(status, NULL);
  umemArrayForm form;
  if (!umem_array_given(array)) return NULL;
  umem_array_form_of(&form, array);
  return umem_array_view(array, &form, 0);
}

/* Counts the elements of a form whose shape is a part of a valid one. Without any, the product of the other extents need
 * not fit. */
static void recount(umemArrayForm *form) {
  form->elements = 1;
  for (int k = 0; k < form->rank; k++)
    if (!form->shape[k]) form->elements = 0;
  for (int k = 0; k < form->rank && form->elements; k++) form->elements *= form->shape[k];
}

/* Whether 0 <= index < extent; else records umemIndexError. */
static bool check_index(int64_t index, int64_t extent, int dim) {
  return (index >= 0 && index < extent) ||
         UMEM_FAIL(NULL, umemIndexError, "element %jd is outside of dimension %d, which has %jd",
                   (intmax_t)index, dim, (intmax_t)extent);
}

umemArray *umemArray_slice(umemArray *array, int dim, int64_t first, int64_t count, int64_t step,
                           umemStatusType *status) {
  UMEM_ARRAY_ENTER(status, NULL);
  umemArrayForm form;
  int64_t last = first;
  if (!umem_array_given(array) || !has_dim(array, dim)) return NULL;
  umem_array_form_of(&form, array);
  if (count < 0 || !step)
    return UMEM_FAIL_NULL(NULL, umemValueError, "count %jd, step %jd: no slice", (intmax_t)count,
                          (intmax_t)step);
  if (count > 1 && (__builtin_mul_overflow(count - 1, step, &last) ||
                    __builtin_add_overflow(last, first, &last)))
    last = INT64_MAX;
  if (count &&
      (!check_index(first, form.shape[dim], dim) || !check_index(last, form.shape[dim], dim)))
    return NULL;
  int64_t offset = count && form.elements ? first * form.strides[dim] : 0;
  form.shape[dim] = count;
  if (count > 1) /* fits, if there are elements */
    form.strides[dim] = (int64_t)((uint64_t)form.strides[dim] * (uint64_t)step);
  recount(&form);
  return umem_array_view(array, &form, offset);
}

umemArray *umemArray_select(umemArray *array, int dim, int64_t i, umemStatusType *status) {
  UMEM_ARRAY_ENTER(status, NULL);
  umemArrayForm form;
  if (!umem_array_given(array) || !has_dim(array, dim)) return NULL;
  umem_array_form_of(&form, array);
  if (!check_index(i, form.shape[dim], dim)) return NULL;
  int64_t offset = form.elements ? i * form.strides[dim] : 0;
  size_t behind = (size_t)(--form.rank - dim) * sizeof *form.shape;
  memmove(form.shape + dim, form.shape + dim + 1, behind);
  memmove(form.strides + dim, form.strides + dim + 1, behind);
  recount(&form);
  return umem_array_view(array, &form, offset);
}

static bool is_permutation(int rank, int const *axes) {
  uint32_t seen = 0; /* UMEM_MAX_RANK bits */
  for (int k = 0; k < rank; k++) {
    if (axes[k] < 0 || axes[k] >= rank || seen >> axes[k] & 1) return false;
    seen |= 1u << axes[k];
  }
  return true;
}

umemArray *umemArray_permute(umemArray *array, int const *axes, umemStatusType *status) {
  UMEM_ARRAY_ENTER(status, NULL);
  umemArrayForm form;
  if (!umem_array_given(array)) return NULL;
  umem_array_form_of(&form, array);
  if (axes && !is_permutation(form.rank, axes))
    return UMEM_FAIL_NULL(NULL, umemValueError, "the axes are no permutation of 0 ... %d",
                          form.rank - 1);
  for (int k = 0; k < form.rank; k++) {
    int axis = axes ? axes[k] : form.rank - 1 - k;
    form.shape[k] = umem_array_shape(array)[axis];
    form.strides[k] = umem_array_strides(array)[axis];
  }
  return umem_array_view(array, &form, 0);
}

/* ---- reshape ---- */

/* Writes the dimensions of more than one element to shape and strides, those joined that follow one another
 * without a gap. Returns how many there are. */
static int join(umemArray const *array, int64_t *shape, int64_t *strides) {
  int rank = 0;
  for (int k = 0; k < array->rank; k++) {
    int64_t extent = umem_array_shape(array)[k], stride = umem_array_strides(array)[k];
    if (extent == 1) continue;
    if (rank && umem_array_join(&shape[rank - 1], &strides[rank - 1], extent, stride)) continue;
    shape[rank] = extent;
    strides[rank++] = stride;
  }
  return rank;
}

/* Fills in the strides of form, from the last dimension on: each joined dimension must be the product of some
 * dimensions of the form. False if there are none. */
static bool split(umemArrayForm *form, int rank, int64_t const *shape, int64_t const *strides) {
  int k = form->rank - 1;
  for (int j = rank - 1; j >= 0; j--) {
    int64_t covered = 1;
    for (; covered < shape[j] && k >= 0; k--) {
      form->strides[k] = strides[j] * covered;
      covered *= form->shape[k];
    }
    if (covered != shape[j]) return false;
  }
  for (; k >= 0; k--) form->strides[k] = (int64_t)form->item_size; /* of one element */
  return true;
}

umemArray *umemArray_reshape(umemArray *array, int rank, int64_t const *shape,
                             umemStatusType *status) {
  UMEM_ARRAY_ENTER(status, NULL);
  umemArrayForm form;
  int64_t joined_shape[UMEM_MAX_RANK], joined_strides[UMEM_MAX_RANK];
  if (!umem_array_given(array) || !umem_array_form(&form, array->type, rank, shape, NULL))
    return NULL;
  if (form.elements != array->elements)
    return UMEM_FAIL_NULL(NULL, umemValueError, "%jd elements cannot become %jd",
                          (intmax_t)array->elements, (intmax_t)form.elements);
  int joined = form.elements ? join(array, joined_shape, joined_strides) : 0;
  if (form.elements && !split(&form, joined, joined_shape, joined_strides))
    return UMEM_FAIL_NULL(NULL, umemValueError,
                          "the strides of the array allow no view of this shape: copy it first");
  return umem_array_view(array, &form, 0);
}
