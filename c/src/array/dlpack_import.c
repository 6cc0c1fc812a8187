/* dlpack_import.c - umem/dlpack.h: tensors of other libraries as arrays. Nothing in a tensor is trusted. */
#include "array/array_handle.h"
#include "array/dlpack_device.h"
#include "core/context.h"
#include "core/status.h"

/* Whether addresses of a tensor on this device mean the same bytes in memory at mine. */
static bool is_place(umemDLDevice mine, umemDLDevice of) {
  switch (of.device_type) {
  case umemDLDefault:
    return false;
  case umemDLCPU:
    return mine.device_type == umemDLCPU;
  case umemDLCUDAHost:
    return mine.device_type == umemDLCUDAHost || mine.device_type == umemDLCPU;
  case umemDLCUDAManaged: /* of all GPUs: its number means nothing */
    return mine.device_type == umemDLCUDAManaged || mine.device_type == umemDLCUDA;
  default:
    return mine.device_type == of.device_type && mine.device_id == of.device_id;
  }
}

static bool check_device(umemVirtual *ctx, umemDLDevice of) {
  return is_place(umem_dlpack_device(ctx), of) ||
         UMEM_FAIL(NULL, umemNotSupportedError,
                   "a tensor of device code %d, number %d cannot be an array of %s",
                   (int)of.device_type, (int)of.device_id, umem_get_device_name(ctx));
}

/* Writes the strides in bytes. Those of dimensions without a second element mean nothing: they are replaced. */
static bool take_strides(int64_t *bytes, umemDLTensor const *dl, size_t item_size) {
  for (int k = 0; k < dl->ndim; k++) {
    int64_t stride = dl->shape[k] > 1 ? dl->strides[k] : 1;
    if (__builtin_mul_overflow(stride, (int64_t)item_size, &bytes[k]))
      return UMEM_FAIL(NULL, umemValueError, "the elements leave the address space");
  }
  return true;
}

static bool has_elements(umemDLTensor const *dl) {
  for (int k = 0; k < dl->ndim; k++)
    if (!dl->shape[k]) return false;
  return true;
}

/* Everything that umemArray_take does not check itself. */
static bool check_tensor(umemVirtual *ctx, umemDLTensor const *dl) {
  if (dl->ndim < 0 || dl->ndim > UMEM_MAX_RANK)
    return UMEM_FAIL(NULL, umemValueError, "rank %d is not in 0 ... %d", (int)dl->ndim,
                     UMEM_MAX_RANK);
  if (dl->ndim && !dl->shape)
    return UMEM_FAIL(NULL, umemValueError, "a tensor of rank %d has no shape", (int)dl->ndim);
  if (!check_device(ctx, dl->device)) return false;
  if (!has_elements(dl)) return true;
  if (!dl->data) return UMEM_FAIL(NULL, umemValueError, "the data of the tensor are NULL");
  return dl->byte_offset <= UINTPTR_MAX - (uintptr_t)dl->data ||
         UMEM_FAIL(NULL, umemValueError, "the elements leave the address space");
}

static umemArray *import(void *ctx, umemDLTensor const *dl, bool read_only,
                         void (*release)(void *user), void *user) {
  int64_t strides[UMEM_MAX_RANK];
  umemStatusType taken = umemOK;
  umemVirtual *self = umem_check(ctx);
  if (!self || !check_tensor(self, dl)) return NULL;
  umemElementType type = UMEM_ELEMENT(dl->dtype.code, dl->dtype.bits, dl->dtype.lanes);
  bool some = has_elements(dl), strided = some && dl->strides;
  if (strided && !take_strides(strides, dl, umem_element_size(type))) return NULL;
  uintptr_t adr = (uintptr_t)dl->data + (some ? (uintptr_t)dl->byte_offset : 0);
  umemArray *array = umemArray_take(self, adr, type, dl->ndim, dl->shape, strided ? strides : NULL,
                                    release, user, &taken);
  if (array && read_only) array->read_only = array->for_good = true;
  return array;
}

static void release_versioned(void *user) {
  umemDLManagedTensorVersioned *tensor = user;
  if (tensor->deleter) tensor->deleter(tensor);
}
static void release_unversioned(void *user) {
  umemDLManagedTensor *tensor = user;
  if (tensor->deleter) tensor->deleter(tensor);
}

umemArray *umemArray_from_dlpack(void *ctx, umemDLManagedTensorVersioned *tensor,
                                 umemStatusType *status) {
  UMEM_ARRAY_ENTER(status, NULL);
  if (!tensor) return UMEM_FAIL_NULL(NULL, umemValueError, "the tensor is NULL");
  if (tensor->version.major != UMEM_DLPACK_MAJOR)
    return UMEM_FAIL_NULL(NULL, umemNotSupportedError,
                          "the tensor has version %u.%u of DLPack, and umem knows %u",
                          tensor->version.major, tensor->version.minor, UMEM_DLPACK_MAJOR);
  return import(ctx, &tensor->dl_tensor, tensor->flags & UMEM_DLPACK_READ_ONLY, release_versioned,
                tensor);
}

umemArray *umemArray_from_dlpack_unversioned(void *ctx, umemDLManagedTensor *tensor,
                                             umemStatusType *status) {
  UMEM_ARRAY_ENTER(status, NULL);
  if (!tensor) return UMEM_FAIL_NULL(NULL, umemValueError, "the tensor is NULL");
  return import(ctx, &tensor->dl_tensor, false, release_unversioned, tensor);
}
