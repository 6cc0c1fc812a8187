/* array.c - umem/array.h: how arrays are made. */
#include "array/array_handle.h"
#include "array/array_range.h"
#include "core/context.h"
#include "core/status.h"

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

/* Memory that is zero as it comes, if that is likely to begin at a good address, and does; else null. */
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

/* What the C library does best without an alignment: malloc takes a third of the time of posix_memalign, and calloc
 * gets large blocks as zero pages. */
static bool gains_inside(umemVirtual const *ctx, size_t nbytes, bool zero) {
  return umem_is_plain_host(ctx) && (nbytes <= small || (zero && nbytes >= large)) &&
         nbytes <= SIZE_MAX - host_alignment;
}

/* Memory of a plain host, for an array that begins somewhere in its block. False, and a status, if that fails. */
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

/* Allocates the block of a new owner, and sets adr to the first byte of the array. False, and a status, if that
 * fails. */
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
