/* array_handle.c - see array_handle.h. */
#include "array/array_handle.h"
#include "core/context.h"
#include "core/order.h"
#include "core/status.h"

#include <stdlib.h>
#include <string.h>

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

void umem_array_drop(umemArray *array) { free(array); }

umemArray *umem_array_view(umemArray *array, umemArrayForm const *form, int64_t offset) {
  uintptr_t adr = array->elements ? array->adr + (uintptr_t)offset : array->adr;
  umemArray *view = umem_array_new(array->ctx, adr, form);
  if (!view) return NULL;
  view->owner = umemArray_retain(array->owner);
  view->read_only = view->for_good = umem_array_read_only(array);
  return view;
}

/* Whether work may be queued that uses the memory, which who releases it does not know. */
static bool queues(umemVirtual const *ctx) {
  return ctx->vptr && ctx->capabilities & (umemOrdered | umemDeviceShared);
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
    if (queues(owner->ctx)) umem_synchronize_apart(owner->ctx);
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
  while (array && __atomic_sub_fetch(&array->users, 1, __ATOMIC_ACQ_REL) == 0) {
    umemArray *owner = array->owner == array ? NULL : array->owner;
    if (!owner && array->end != umemArrayKeeps) end_memory(array, __builtin_return_address(0));
    free(array);
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
