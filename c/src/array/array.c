/* array.c - umem/array.h: how arrays are made. */
#include "array/array_operand.h"
#include "core/context.h"

#include <stdlib.h>
#include <string.h>

enum {
  host_alignment = 64,    /* JAX copies what begins elsewhere; a cache line */
  device_alignment = 256, /* as cudaMalloc */
  small = 1 << 10,        /* bytes */
  large = 1 << 20 /* bytes from which calloc is better than a set: the system's pages are zero */
};

/* ---- memory ---- */

static size_t alignment_for(umemVirtual const *ctx) {
  if (umem_can(ctx, umemOffsets)) return 1;
  return umem_can(ctx, umemDeviceAccessible) ? device_alignment : host_alignment;
}

/* Memory that is zero as it comes, if that is likely to begin at a good address, and does; else
 * null. */
static uintptr_t alloc_zeroed(umemVirtual *ctx, size_t alignment, size_t nbytes) {
  if (ctx->alignment % alignment != 0 && nbytes < large) return umem_null_of(ctx);
  uintptr_t adr = umem_calloc(ctx, nbytes, 1);
  if (adr == umem_null_of(ctx) || adr % alignment == 0) return adr;
  umem_free(ctx, adr);
  return umem_null_of(ctx);
}

/* A block that begins with the array. False, and a status, if that fails. */
static bool alloc_whole(umemArray *array, size_t nbytes, bool zero) {
  umemVirtual *ctx = array->ctx;
  uint64_t before = umem_thread.failures;
  size_t alignment = alignment_for(ctx);
  array->end = umemArrayFrees;
  array->block = zero ? alloc_zeroed(ctx, alignment, nbytes) : umem_null_of(ctx);
  if (umem_thread.failures != before) return false;
  if (array->block != umem_null_of(ctx)) return true;
  bool suffices = ctx->alignment % alignment == 0;
  if (!suffices) array->end = umemArrayFreesAligned;
  array->block = suffices ? umem_alloc(ctx, nbytes) : umem_aligned_alloc(ctx, alignment, nbytes);
  if (array->block == umem_null_of(ctx)) return false;
  if (!zero || umem_set(ctx, array->block, 0, nbytes) == umemOK) return true;
  umem_array_end_memory(array);
  return false;
}

/* What the C library does best without an alignment: malloc takes a third of the time of
 * posix_memalign, and calloc gets large blocks as zero pages. */
static bool gains_inside(umemVirtual const *ctx, size_t nbytes, bool zero) {
  return umem_is_plain_host(ctx) && (nbytes <= small || (zero && nbytes >= large)) &&
         nbytes <= SIZE_MAX - host_alignment;
}

/* Memory of a plain host, for an array that begins somewhere in its block. False, and a status, if
 * that fails. */
static bool alloc_inside(umemArray *array, size_t nbytes, bool zero) {
  umemVirtual *ctx = array->ctx;
  array->end = umemArrayFrees;
  size_t all = nbytes + host_alignment - ctx->alignment;
  bool comes_zero = zero && nbytes >= large;
  array->block = comes_zero ? umem_calloc(ctx, all, 1) : umem_alloc(ctx, all);
  if (!array->block) return false;
  array->adr = (array->block + host_alignment - 1) & ~(uintptr_t)(host_alignment - 1);
  if (zero && !comes_zero) memset((void *)array->adr, 0, nbytes);
  return true;
}

/* Allocates the block of a new owner, and sets adr to the first byte of the array. False, and a
 * status, if that fails. */
static bool alloc_block(umemArray *array, size_t nbytes, bool zero) {
  umemVirtual *ctx = array->ctx;
  if (gains_inside(ctx, nbytes, zero)) return alloc_inside(array, nbytes, zero);
  if (!alloc_whole(array, nbytes, zero)) return false;
  array->adr = array->block;
  return true;
}
static umemArray *create(void *ctx, umemElementType type, int rank, int64_t const *shape,
                         int64_t const *strides, bool zero) {
  umemArrayForm form;
  umemVirtual *self = umem_check(ctx);
  if (!self || !umem_array_form(&form, type, rank, shape, strides)) return NULL;
  umemArray *array = umem_array_new(self, umem_null_of(self), &form);
  if (!array || !form.elements) return array;
  if (!alloc_block(array, (size_t)(form.high - form.low), zero)) {
    umem_array_drop(array);
    return NULL;
  }
  array->adr -= (uintptr_t)form.low;
  return array;
}

umemArray *umemArray_create(void *ctx, umemElementType type, int rank, int64_t const *shape,
                            int64_t const *strides, umemStatusType *status) {
  UMEM_ARRAY_ENTER(status, NULL);
  return create(ctx, type, rank, shape, strides, false);
}

umemArray *umemArray_zeros(void *ctx, umemElementType type, int rank, int64_t const *shape,
                           int64_t const *strides, umemStatusType *status) {
  UMEM_ARRAY_ENTER(status, NULL);
  return create(ctx, type, rank, shape, strides, true);
}

umemArray *umemArray_full(void *ctx, umemElementType type, int rank, int64_t const *shape,
                          int64_t const *strides, void const *value, umemStatusType *status) {
  UMEM_ARRAY_ENTER(status, NULL);
  umemStatusType filled = umemOK;
  umemArray *array = create(ctx, type, rank, shape, strides, false);
  if (!array) return NULL;
  umemArray_fill(array, value, &filled);
  if (filled == umemOK) return array;
  umemArray_release(array);
  return NULL;
}

/* ---- memory of others ---- */

static umemArray *wrap(void *ctx, uintptr_t adr, umemElementType type, int rank,
                       int64_t const *shape, int64_t const *strides) {
  umemArrayForm form;
  umemVirtual *self = umem_check(ctx);
  if (!self || !umem_array_form(&form, type, rank, shape, strides)) return NULL;
  bool fits = adr != umem_null_of(self) && (form.low >= 0 || adr >= (uintptr_t)-form.low) &&
              adr <= UINTPTR_MAX - (uintptr_t)form.high;
  if (form.elements && !fits)
    return UMEM_FAIL_NULL(self, umemValueError, "no elements can be at address 0x%jx of %s",
                          (uintmax_t)adr, umem_get_device_name(self));
  return umem_array_new(self, adr, &form);
}

umemArray *umemArray_borrow(void *ctx, uintptr_t adr, umemElementType type, int rank,
                            int64_t const *shape, int64_t const *strides, umemStatusType *status) {
  UMEM_ARRAY_ENTER(status, NULL);
  return wrap(ctx, adr, type, rank, shape, strides);
}

umemArray *umemArray_take(void *ctx, uintptr_t adr, umemElementType type, int rank,
                          int64_t const *shape, int64_t const *strides, void (*release)(void *user),
                          void *user, umemStatusType *status) {
  UMEM_ARRAY_ENTER(status, NULL);
  umemArray *array = wrap(ctx, adr, type, rank, shape, strides);
  if (!array) return NULL;
  array->end = release ? umemArrayReleases : umemArrayFrees;
  array->block = adr;
  array->release = release;
  array->user = user;
  return array;
}

/* ---- copies ---- */

umemArray *umemArray_copy(umemArray *array, void *ctx, umemArrayOrder order,
                          umemStatusType *status) {
  UMEM_ARRAY_ENTER(status, NULL);
  int axes[UMEM_MAX_RANK];
  int64_t strides[UMEM_MAX_RANK];
  if (!umem_array_given(array)) return NULL;
  int64_t stride = (int64_t)array->item_size;
  umem_array_sort(array->rank, umem_array_strides(array), axes);
  for (int k = array->rank - 1; k >= 0; k--) {
    strides[axes[k]] = stride;
    if (array->elements)
      stride *= umem_array_shape(array)[axes[k]]; /* without any it may not fit */
  }
  umemStatusType done = umemOK;
  umemArray *copy = umemArray_create(ctx, array->type, array->rank, umem_array_shape(array),
                                     order == umemOrderKeep ? strides : NULL, &done);
  umemArray_assign(copy, array, &done);
  if (done == umemOK) return copy;
  umemArray_release(copy);
  return NULL;
}

umemArray *umem_array_copy_now(umemArray *array, void *ctx) {
  umemStatusType copied = umemOK;
  umemArray *copy = umemArray_copy(array, ctx, umemOrderC, &copied);
  if (!copy || (umem_finish(array->ctx) == umemOK && umem_finish(copy->ctx) == umemOK)) return copy;
  umemArray_release(copy);
  return NULL;
}

/* ---- what an array is ---- */

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

/* ---- views ---- */

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

/* Counts the elements of a form whose shape is a part of a valid one. Without any, the product of
 * the other extents need not fit. */
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

/* Writes the dimensions of more than one element to shape and strides, those joined that follow one
 * another without a gap. Returns how many there are. */
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

/* Fills in the strides of form, from the last dimension on: each joined dimension must be the
 * product of some dimensions of the form. False if there are none. */
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
