/* array_handle.c - makes and ends what arrays point to, and checks shapes and strides. */
#include "array/array_handle.h"
#include "core/context.h"
#include "core/layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- shapes and strides ---- */

static bool check_rank(int rank, int64_t const *shape) {
  if (rank < 0 || rank > UMEM_MAX_RANK)
    return UMEM_FAIL(NULL, umemValueError, "rank %d is not in 0 ... %d", rank, UMEM_MAX_RANK);
  return !rank || shape ||
         UMEM_FAIL(NULL, umemValueError, "an array of rank %d has no shape", rank);
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
    if (extent < 0)
      return UMEM_FAIL(NULL, umemValueError, "extent %jd of dimension %d is negative",
                       (intmax_t)extent, k);
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

/* ---- handles ---- */

/* which: "the array", "the source array" and so on. */
static bool is_given(umemArray const *array, char const *which) {
  return array || UMEM_FAIL(NULL, umemValueError, "%s is NULL", which);
}

static bool is_writable(umemArray const *array, char const *which) {
  if (!is_given(array, which)) return false;
  return !umem_array_read_only(array) ||
         UMEM_FAIL(NULL, umemNotSupportedError, "%s is read-only", which);
}

bool umem_array_given(umemArray const *array) { return is_given(array, "the array"); }
bool umem_array_writable(umemArray const *array) { return is_writable(array, "the array"); }

bool umem_array_given_pair(umemArray const *dst, umemArray const *src) {
  return is_given(src, "the source array") && is_writable(dst, "the destination array");
}

umemArray *umem_array_new(umemVirtual *ctx, uintptr_t adr, umemArrayForm const *form) {
  size_t bytes = (size_t)form->rank * sizeof *form->shape;
  umemArray *array = malloc(sizeof *array + 2 * bytes);
  if (!array) return UMEM_FAIL_NULL(NULL, umemMemoryError, "no memory for an array");
  bool read_only = !umem_can(ctx, umemWritable);
  *array = (umemArray){.users = 1,
                       .owner = array,
                       .generation = umem_fork_count(),
                       .keeps = umem_can(ctx, umemKeepsAll),
                       .ctx = ctx,
                       .adr = adr,
                       .type = form->type,
                       .rank = form->rank,
                       .item_size = form->item_size,
                       .elements = form->elements,
                       .read_only = read_only,
                       .for_good = read_only};
  memcpy(umem_array_shape(array), form->shape, bytes);
  memcpy(umem_array_strides(array), form->strides, bytes);
  return array;
}

void umem_array_drop(umemArray *array) {
  free(array->element_strides);
  free(array);
}

umemArray *umem_array_view(umemArray *array, umemArrayForm const *form, int64_t offset) {
  uintptr_t adr = array->elements ? array->adr + (uintptr_t)offset : array->adr;
  umemArray *view = umem_array_new(array->ctx, adr, form);
  if (!view) return NULL;
  view->owner = umemArray_retain(array->owner);
  view->read_only = view->for_good = umem_array_read_only(array);
  return view;
}

void umem_array_end_memory(umemArray const *owner) {
  switch (owner->end) {
  case umemArrayKeeps:
    break;
  case umemArrayFrees:
  case umemArrayFreesAligned:
    umem_end_block(owner->ctx, owner->block, owner->end == umemArrayFreesAligned,
                   __atomic_load_n(&owner->keeps, __ATOMIC_RELAXED), owner->generation);
    break;
  case umemArrayReleases: {
    /* Queued work may use the memory, which who releases it does not know. */
    if (owner->ctx->vptr && owner->ctx->capabilities & (umemOrdered | umemDeviceShared))
      umem_synchronize_uncaptured(owner->ctx);
    UMEM_STEP_ASIDE(running);
    owner->release(owner->user);
  }
  }
}

umemArray *umemArray_retain(umemArray *array) {
  if (array) __atomic_add_fetch(&array->users, 1, __ATOMIC_RELAXED);
  return array;
}

/* For umemArray_release, which has little to do where the memory stays. */
static __attribute__((noinline)) void end_memory(umemArray const *owner, void const *caller) {
  UMEM_ENTER_AS("umemArray_release", caller);
  umem_array_end_memory(owner);
}

void umemArray_set_keeps(umemArray *array, bool keeps) {
  if (array) __atomic_store_n(&array->owner->keeps, keeps, __ATOMIC_RELAXED);
}

void umemArray_release(umemArray *array) {
  /* A single user need not count, as no other thread can. */
  while (array && (__atomic_load_n(&array->users, __ATOMIC_ACQUIRE) == 1 ||
                   __atomic_sub_fetch(&array->users, 1, __ATOMIC_ACQ_REL) == 0)) {
    umemArray *owner = array->owner == array ? NULL : array->owner;
    if (!owner && array->end != umemArrayKeeps) end_memory(array, __builtin_return_address(0));
    umem_array_drop(array);
    array = owner;
  }
}

void umem_array_form_of(umemArrayForm *form, umemArray const *array) {
  form->type = array->type;
  form->item_size = array->item_size;
  form->rank = array->rank;
  form->elements = array->elements;
  form->low = form->high = 0;
  size_t bytes = (size_t)array->rank * sizeof *form->shape;
  memcpy(form->shape, umem_array_shape(array), bytes);
  memcpy(form->strides, umem_array_strides(array), bytes);
}

void umemArray_set_read_only(umemArray *array, bool read_only, umemStatusType *status) {
  UMEM_ARRAY_ENTER(status);
  if (!umem_array_given(array)) return;
  if (!read_only && array->for_good)
    umemVirtual_fail(
        NULL, umemNotSupportedError,
        "the array stays read-only: its context, or the array that it is a view of, is");
  else
    __atomic_store_n(&array->read_only, read_only, __ATOMIC_RELAXED);
}

bool umemArray_is_same_shape(umemArray const *one, umemArray const *other) {
  return one && other && one->rank == other->rank &&
         memcmp(umem_array_shape(one), umem_array_shape(other),
                (size_t)one->rank * sizeof(int64_t)) == 0;
}
