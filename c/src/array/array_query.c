/* array_query.c - what an array is. */
#include "array/array_handle.h"
#include "core/context.h"
#include "core/order.h"
#include "core/status.h"

#include <string.h>

void *umemArray_context(umemArray const *array) { return array ? array->ctx : NULL; }
uintptr_t umemArray_address(umemArray const *array) { return array ? array->adr : 0; }
umemElementType umemArray_type(umemArray const *array) { return array ? array->type : 0; }
int umemArray_rank(umemArray const *array) { return array ? array->rank : 0; }
int64_t umemArray_elements(umemArray const *array) { return array ? array->elements : 0; }

int64_t const *umemArray_shape(umemArray const *array) {
  return array ? umem_array_shape(array) : NULL;
}
int64_t const *umemArray_strides(umemArray const *array) {
  return array ? umem_array_strides(array) : NULL;
}

static bool has(umemArray const *array, int dim) { return array && dim >= 0 && dim < array->rank; }

int64_t umemArray_extent(umemArray const *array, int dim) {
  return has(array, dim) ? umem_array_shape(array)[dim] : 0;
}
int64_t umemArray_stride(umemArray const *array, int dim) {
  return has(array, dim) ? umem_array_strides(array)[dim] : 0;
}

size_t umemArray_nbytes(umemArray const *array) {
  return array ? (size_t)array->elements * array->item_size : 0;
}

bool umemArray_is_read_only(umemArray const *array) { return array && umem_array_read_only(array); }

bool umemArray_is_c_contiguous(umemArray const *array) {
  if (!array) return false;
  int64_t stride = (int64_t)array->item_size;
  for (int k = array->rank - 1; k >= 0 && array->elements; k--) {
    int64_t extent = umem_array_shape(array)[k];
    if (extent > 1 && umem_array_strides(array)[k] != stride) return false;
    stride *= extent;
  }
  return true;
}

bool umemArray_is_floating_point(umemArray const *array) {
  return umem_element_is_floating_point(umemArray_type(array));
}

bool umemArray_is_complex(umemArray const *array) {
  return array && umem_element_is_complex(array->type);
}

bool umemArray_is_double(umemArray const *array) { return umemArray_type(array) == umemDouble; }

bool umemArray_is_complex4(umemArray const *array) {
  if (!umemArray_is_complex(array)) return false;
  int rank = array->rank;
  return umemArray_extent(array, rank - 1) == 4 ||
         (umemArray_extent(array, rank - 1) == 2 && umemArray_extent(array, rank - 2) == 2);
}

/* ---- two arrays ---- */

bool umemArray_is_same_type(umemArray const *one, umemArray const *other) {
  return one && other && one->type == other->type;
}

bool umemArray_is_same_shape(umemArray const *one, umemArray const *other) {
  return one && other && one->rank == other->rank &&
         memcmp(umem_array_shape(one), umem_array_shape(other),
                (size_t)one->rank * sizeof(int64_t)) == 0;
}

bool umemArray_is_same_place(umemArray const *one, umemArray const *other) {
  return one && other && umem_is_same_device(one->ctx, other->ctx);
}

/* Of two arrays of one shape: strides along a dimension of one element lead nowhere. */
static bool has_equal_strides(umemArray const *one, umemArray const *other) {
  for (int k = 0; k < one->rank && one->elements; k++)
    if (umem_array_shape(one)[k] > 1 && umem_array_strides(one)[k] != umem_array_strides(other)[k])
      return false;
  return true;
}

bool umemArray_is_matching(umemArray const *one, umemArray const *other, bool place) {
  return umemArray_is_same_type(one, other) && umemArray_is_same_shape(one, other) &&
         has_equal_strides(one, other) && (!place || umemArray_is_same_place(one, other));
}

/* ---- pointers ---- */

static bool check_access(umemArray *array, bool writes, unsigned needed, char const *whose) {
  if (!umem_array_given(array) || !umem_check(array->ctx) ||
      (writes && !umem_array_writable(array)))
    return false;
  return umem_can(array->ctx, needed) ||
         UMEM_FAIL(array->ctx, umemNotSupportedError, "%s cannot %s the memory of %s", whose,
                   writes ? "write to" : "read", umem_get_device_name(array->ctx));
}

static void *pointer(umemArray const *array) { return array->elements ? (void *)array->adr : NULL; }

void *umemArray_host_pointer(umemArray *array, bool writes, umemStatusType *status) {
  UMEM_ARRAY_ENTER(status, NULL);
  unsigned needed = umemCpuReadable | (writes ? umemCpuWritable : 0u);
  if (!check_access(array, writes, needed, "the CPU")) return NULL;
  return umem_finish(array->ctx) == umemOK ? pointer(array) : NULL;
}

void *umemArray_device_pointer(umemArray *array, bool writes, umemStatusType *status) {
  UMEM_ARRAY_ENTER(status, NULL);
  return check_access(array, writes, umemDeviceAccessible, "a GPU") ? pointer(array) : NULL;
}
