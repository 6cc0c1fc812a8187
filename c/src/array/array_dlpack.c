/* array_dlpack.c - umem/dlpack.h: arrays as tensors. */
#include "array/array_dlpack.h"
#include "core/guard.h"
#include "core/layers.h"
#include "core/order.h"
#include "core/sized.h"
#include "core/status.h"

#include <stdlib.h>
#include <string.h>

/* ---- the layout, which other libraries rely on ---- */

_Static_assert(sizeof(umemDLDevice) == 8, "as in DLPack");
_Static_assert(sizeof(umemDLDataType) == 4, "as in DLPack");
_Static_assert(sizeof(umemDLPackVersion) == 8, "as in DLPack");
#if UINTPTR_MAX == UINT64_MAX
_Static_assert(sizeof(umemDLTensor) == 48, "as in DLPack");
_Static_assert(offsetof(umemDLTensor, device) == 8, "as in DLPack");
_Static_assert(offsetof(umemDLTensor, ndim) == 16, "as in DLPack");
_Static_assert(offsetof(umemDLTensor, dtype) == 20, "as in DLPack");
_Static_assert(offsetof(umemDLTensor, shape) == 24, "as in DLPack");
_Static_assert(offsetof(umemDLTensor, strides) == 32, "as in DLPack");
_Static_assert(offsetof(umemDLTensor, byte_offset) == 40, "as in DLPack");
_Static_assert(sizeof(umemDLManagedTensor) == 64, "as in DLPack");
_Static_assert(offsetof(umemDLManagedTensor, manager_ctx) == 48, "as in DLPack");
_Static_assert(offsetof(umemDLManagedTensor, deleter) == 56, "as in DLPack");
_Static_assert(sizeof(umemDLManagedTensorVersioned) == 80, "as in DLPack");
_Static_assert(offsetof(umemDLManagedTensorVersioned, manager_ctx) == 8, "as in DLPack");
_Static_assert(offsetof(umemDLManagedTensorVersioned, deleter) == 16, "as in DLPack");
_Static_assert(offsetof(umemDLManagedTensorVersioned, flags) == 24, "as in DLPack");
_Static_assert(offsetof(umemDLManagedTensorVersioned, dl_tensor) == 32, "as in DLPack");
#endif

/* ---- places ---- */

umemDLDevice umem_dlpack_device(umemVirtual *ctx) {
  umemInfo info = UMEM_INFO_INIT;
  umemDLDevice device = {umemDLDefault, 0};
  if (umem_can(ctx, umemOffsets)) return device;
  umemVirtual *layer = UMEM_LAYER_WITH(ctx, dlpack_device);
  if (layer)
    device.device_type = layer->vptr->dlpack_device(layer);
  else if (umem_can(ctx, umemCpuReadable))
    device.device_type = umemDLCPU;
  bool of_gpu = device.device_type == umemDLCUDA || device.device_type == umemDLCUDAManaged;
  if (of_gpu && umem_get_info(ctx, &info) == umemOK && info.ordinal > 0)
    device.device_id = (int32_t)info.ordinal;
  return device;
}

/* Whether memory of ctx, which is at place, can be exported with this code. */
static bool can_be(umemVirtual *ctx, umemDLDevice place, umemDLDeviceCode code) {
  if (place.device_type == (int32_t)code) return place.device_type != umemDLDefault;
  if (code == umemDLCPU) return place.device_type && umem_can(ctx, umemCpuReadable);
  return code == umemDLCUDA && place.device_type == umemDLCUDAManaged;
}

/* ---- options ---- */

static bool check_options(umemDLPackOptions const *options) {
  bool known = options->device == umemDLDefault || options->device == umemDLCPU ||
               options->device == umemDLCUDA || options->device == umemDLCUDAHost ||
               options->device == umemDLCUDAManaged;
  if (!known)
    return UMEM_FAIL(NULL, umemValueError, "umem exports no tensors for device code %d",
                     (int)options->device);
  if ((int)options->copy < umemDLCopyNever || (int)options->copy > umemDLCopyAlways)
    return UMEM_FAIL(NULL, umemValueError, "%d is no umemDLPackCopy", (int)options->copy);
  if (options->stream == 0)
    return UMEM_FAIL(NULL, umemValueError,
                     "stream 0 is ambiguous: 1 is the legacy default stream, 2 that of the thread");
  return options->stream >= UMEM_DLPACK_NO_STREAM ||
         UMEM_FAIL(NULL, umemValueError, "%jd is no stream", (intmax_t)options->stream);
}

/* Whether each stride is a number of elements. */
static bool has_whole_strides(umemArray const *array) {
  for (int k = 0; k < array->rank; k++)
    if (umem_array_strides(array)[k] % (int64_t)array->item_size) return false;
  return true;
}

/* ---- what is exported ---- */

/* An array on its way out: the memory, and how the tensor describes it. */
typedef struct Export {
  umemArray *array; /* retained */
  umemDLDevice device;
  uint64_t flags;
} Export;

static umemArray *refuse(umemArray *array, umemDLDeviceCode code, bool placed, bool versioned) {
  char const *name = umem_get_device_name(array->ctx);
  if (umem_can(array->ctx, umemOffsets))
    return UMEM_FAIL_NULL(NULL, umemNotSupportedError,
                          "memory of %s has no pointers: map it (umemMMap), or allow a copy", name);
  if (!placed)
    return UMEM_FAIL_NULL(NULL, umemNotSupportedError,
                          "memory of %s cannot be exported with device code %d: allow a copy", name,
                          (int)code);
  if (!versioned && umem_array_read_only(array))
    return UMEM_FAIL_NULL(NULL, umemNotSupportedError,
                          "a tensor without a version cannot be read-only: allow a copy");
  return UMEM_FAIL_NULL(NULL, umemNotSupportedError,
                        "a stride is no multiple of an element: allow a copy");
}

/* A copy that can be exported with this code: in the context, or in its host memory. It is complete in the order of
 * the context; in host memory it is complete. */
static umemArray *copy_for(umemArray *array, umemDLDevice *place, umemDLDeviceCode code) {
  umemStatusType copied = umemOK;
  umemVirtual *ctx = array->ctx;
  if (!can_be(ctx, *place, code) || !umem_can(ctx, umemWritable)) {
    if (code != umemDLDefault && code != umemDLCPU) return refuse(array, code, false, true);
    ctx = ctx->host;
    if (!ctx)
      return UMEM_FAIL_NULL(NULL, umemNotSupportedError, "%s has no host memory for a copy",
                            umem_get_device_name(array->ctx));
    *place = (umemDLDevice){umemDLCPU, 0};
  }
  umemArray *copy = umemArray_copy(array, ctx, umemOrderC, &copied);
  if (!copy || ctx == array->ctx || umem_finish(array->ctx) == umemOK) return copy;
  umemArray_release(copy);
  return NULL;
}

/* Lets the consumer come after the work on the memory. */
static bool order(umemArray *array, umemDLDevice device, int64_t stream) {
  uint64_t before = umem_thread.failures;
  bool of_host = device.device_type == umemDLCPU || device.device_type == umemDLCUDAHost;
  if (of_host && stream != UMEM_DLPACK_NO_STREAM)
    return UMEM_FAIL(NULL, umemValueError, "stream %jd: tensors of the host have none",
                     (intmax_t)stream);
  if (of_host) return umem_finish(array->ctx) == umemOK;
  if (stream == UMEM_DLPACK_NO_STREAM ||
      !(array->ctx->capabilities & (umemOrdered | umemDeviceShared)))
    return true;
  umemVirtual *layer = UMEM_LAYER_WITH(array->ctx, lead_stream);
  if (!layer) return umem_synchronize(array->ctx) == umemOK;
  layer->vptr->lead_stream(layer, (uintptr_t)stream);
  return umem_adopt_from(layer, array->ctx, before) == umemOK;
}

/* Finds out what is to be exported; false, and a status, where that is nothing. */
static bool prepare(Export *what, umemArray *array, umemDLPackOptions const *given,
                    bool versioned) {
  umemDLPackOptions options = UMEM_DLPACK_OPTIONS_INIT;
  if (!umem_array_given(array) ||
      !umem_read_sized(NULL, &options, sizeof options, given, "umemDLPackOptions") ||
      !check_options(&options))
    return false;
  umemDLDevice place = umem_dlpack_device(array->ctx);
  umemDLDeviceCode code = options.device ? options.device : (umemDLDeviceCode)place.device_type;
  bool placed = can_be(array->ctx, place, code);
  bool fits = placed && has_whole_strides(array) && (versioned || !umem_array_read_only(array));
  *what = (Export){.device = place};
  if (options.copy == umemDLCopyAlways || (!fits && options.copy == umemDLCopyIfNeeded)) {
    what->array = copy_for(array, &what->device, code);
    what->flags = UMEM_DLPACK_IS_COPIED;
  } else {
    what->array = fits ? umemArray_retain(array) : refuse(array, code, placed, versioned);
    what->flags = umem_array_read_only(array) ? UMEM_DLPACK_READ_ONLY : 0;
  }
  if (!what->array) return false;
  if (code) what->device.device_type = (int32_t)code;
  if (code == umemDLCPU) what->device.device_id = 0;
  if (order(what->array, what->device, options.stream)) return true;
  umemArray_release(what->array);
  return false;
}

/* ---- tensors ---- */

typedef struct Tensor {
  union {
    umemDLManagedTensorVersioned versioned;
    umemDLManagedTensor unversioned;
  };
  umemArray *array;  /* retained */
  int64_t numbers[]; /* [rank] extents, then [rank] strides */
} Tensor;

static Tensor *make_tensor(Export const *what) {
  size_t bytes = 2 * (size_t)what->array->rank * sizeof(int64_t);
  Tensor *tensor = malloc(sizeof *tensor + bytes);
  if (!tensor) {
    umemArray_release(what->array);
    return UMEM_FAIL_NULL(NULL, umemMemoryError, "no memory for a tensor");
  }
  tensor->array = what->array;
  return tensor;
}

static void fill_in(umemDLTensor *dl, Tensor *tensor, umemDLDevice device) {
  umemArray const *array = tensor->array;
  int64_t *shape = tensor->numbers, *strides = shape + array->rank;
  for (int k = 0; k < array->rank; k++) {
    shape[k] = umem_array_shape(array)[k];
    strides[k] = umem_array_strides(array)[k] / (int64_t)array->item_size;
  }
  *dl = (umemDLTensor){.data = array->elements ? (void *)array->adr : NULL,
                       .device = device,
                       .ndim = array->rank,
                       .dtype = {(uint8_t)umem_element_code(array->type),
                                 (uint8_t)umem_element_bits(array->type),
                                 (uint16_t)umem_element_lanes(array->type)},
                       .shape = shape,
                       .strides = strides};
}

static void end_tensor(Tensor *tensor) {
  umemArray *array = tensor->array;
  free(tensor);
  umemArray_release(array);
}
static void end_versioned(umemDLManagedTensorVersioned *self) { end_tensor(self->manager_ctx); }
static void end_unversioned(umemDLManagedTensor *self) { end_tensor(self->manager_ctx); }

umemDLManagedTensorVersioned *
umemArray_to_dlpack(umemArray *array, umemDLPackOptions const *options, umemStatusType *status) {
  UMEM_ARRAY_ENTER(status, NULL);
  Export what;
  Tensor *tensor = prepare(&what, array, options, true) ? make_tensor(&what) : NULL;
  if (!tensor) return NULL;
  umemDLManagedTensorVersioned *versioned = &tensor->versioned;
  versioned->version = (umemDLPackVersion){UMEM_DLPACK_MAJOR, UMEM_DLPACK_MINOR};
  versioned->manager_ctx = tensor;
  versioned->deleter = end_versioned;
  versioned->flags = what.flags;
  fill_in(&versioned->dl_tensor, tensor, what.device);
  return versioned;
}

umemDLManagedTensor *umemArray_to_dlpack_unversioned(umemArray *array,
                                                     umemDLPackOptions const *options,
                                                     umemStatusType *status) {
  UMEM_ARRAY_ENTER(status, NULL);
  Export what;
  Tensor *tensor = prepare(&what, array, options, false) ? make_tensor(&what) : NULL;
  if (!tensor) return NULL;
  umemDLManagedTensor *unversioned = &tensor->unversioned;
  unversioned->manager_ctx = tensor;
  unversioned->deleter = end_unversioned;
  fill_in(&unversioned->dl_tensor, tensor, what.device);
  return unversioned;
}
