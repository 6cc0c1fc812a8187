/* dlpack.c - exchanges arrays with other libraries by DLPack, in both directions. */
#include "array/array_handle.h"
#include "core/context.h"

#include <stdlib.h>
#include <string.h>
#include <umem/dlpack.h>

/* ---- devices ---- */

/* Whether tensors with this code are used on streams of CUDA. */
static bool has_streams(int32_t code) { return code == umemDLCUDA || code == umemDLCUDAManaged; }

int umem_dlpack_device(umemVirtual *ctx, int *id) {
  *id = 0;
  if (umem_can(ctx, umemOffsets)) return umemDLDefault;
  umemVirtual *layer = UMEM_LAYER_WITH(ctx, dlpack_device);
  if (layer) return layer->vptr->dlpack_device(layer, id);
  return umem_can(ctx, umemCpuReadable) ? umemDLCPU : umemDLDefault;
}

/* The device of tensors in memory of ctx. */
static umemDLDevice device_of(umemVirtual *ctx) {
  int id, code = umem_dlpack_device(ctx, &id);
  return (umemDLDevice){code, id};
}

/* ---- options ---- */

/* Whether memory of ctx, which is at place, can be exported with this code. */
static bool can_be(umemVirtual *ctx, umemDLDevice place, int32_t code) {
  if (place.device_type == umemDLDefault) return false;
  if (code == umemDLCPU) return umem_can(ctx, umemCpuReadable);
  return code == place.device_type ||
         (code == umemDLCUDA && place.device_type == umemDLCUDAManaged);
}

/* The device of a tensor with this code in memory at place. */
static umemDLDevice device_for(umemDLDevice place, int32_t code) {
  bool shared = code == umemDLCPU || code == umemDLCUDAHost || code == umemDLCUDAManaged;
  return (umemDLDevice){code, shared ? 0 : place.device_id};
}

static bool check_stream(int32_t code, int64_t stream) {
  if (stream == UMEM_DLPACK_NO_STREAM || stream == UMEM_DLPACK_DEFAULT_STREAM) return true;
  if (!has_streams(code))
    return UMEM_FAIL(NULL, umemValueError, "stream %jd: tensors with device code %d have no stream",
                     (intmax_t)stream, (int)code);
  if (stream == 0)
    return UMEM_FAIL(NULL, umemValueError,
                     "stream 0 is ambiguous: 1 is the legacy default stream, 2 that of the thread");
  return stream > 0 ||
         UMEM_FAIL(NULL, umemValueError, "%jd is no number of a stream", (intmax_t)stream);
}

static bool check_copy(umemDLPackCopy copy) {
  bool known = copy == umemDLCopyNever || copy == umemDLCopyIfNeeded || copy == umemDLCopyAlways;
  return known || UMEM_FAIL(NULL, umemValueError, "%d is no umemDLPackCopy", (int)copy);
}

/* Whether each stride that means something is a number of elements. */
static bool has_whole_strides(umemArray const *array) {
  for (int k = 0; k < array->rank && array->elements; k++)
    if (umem_array_shape(array)[k] > 1 && umem_array_strides(array)[k] % (int64_t)array->item_size)
      return false;
  return true;
}

/* ---- what is exported ---- */

/* An array on its way out: the memory, and how the tensor describes it. */
typedef struct Export {
  umemArray *array; /* retained */
  umemDLDevice device;
  uint64_t flags;
  void (*ended)(void *user);
  void *user;
} Export;

/* Whether each element is one lane of less than a byte, which has a byte. */
static bool is_padded(umemElementType type) {
  return umem_element_lanes(type) == 1 && umem_element_bits(type) < 8;
}

static bool refuse_padded(umemArray const *array) {
  return UMEM_FAIL(NULL, umemNotSupportedError,
                   "a tensor without flags cannot have elements of %u bits in a byte each",
                   umem_element_bits(array->type));
}

static umemArray *refuse(umemArray *array, int32_t code, bool placed, bool versioned) {
  char const *name = umem_get_device_name(array->ctx);
  if (umem_can(array->ctx, umemOffsets) && code == umemDLCPU)
    return UMEM_FAIL_NULL(NULL, umemNotSupportedError,
                          "memory of %s has no pointers: map it (umemMMap), or allow a copy", name);
  if (!placed)
    return UMEM_FAIL_NULL(NULL, umemNotSupportedError,
                          "memory of %s cannot be exported with device code %d%s", name, (int)code,
                          code == umemDLCPU ? ": allow a copy" : "");
  if (!versioned && umem_array_read_only(array))
    return UMEM_FAIL_NULL(NULL, umemNotSupportedError,
                          "a tensor without a version cannot be read-only: allow a copy");
  return UMEM_FAIL_NULL(NULL, umemNotSupportedError,
                        "a stride is no multiple of an element: allow a copy");
}

/* A copy in the context's host memory. Complete. */
static umemArray *copy_to_host(umemArray *array) {
  if (array->ctx->host) return umem_array_copy_now(array, array->ctx->host);
  return UMEM_FAIL_NULL(NULL, umemNotSupportedError, "%s has no host memory for a copy",
                        umem_get_device_name(array->ctx));
}

/* A copy that can be exported with this code. */
static umemArray *copy_for(umemArray *array, umemDLDevice place, int32_t code) {
  umemStatusType copied = umemOK;
  umemVirtual *ctx = array->ctx;
  if (code == umemDLCPU) return copy_to_host(array);
  if (can_be(ctx, place, code) && umem_can(ctx, umemWritable))
    return umemArray_copy(array, ctx, umemOrderC, &copied);
  return UMEM_FAIL_NULL(NULL, umemNotSupportedError,
                        "a copy in memory of %s cannot be exported with device code %d",
                        umem_get_device_name(ctx), (int)code);
}

/* Puts the consumer's work after that on the memory. */
static bool order(umemArray *array, int32_t code, int64_t stream) {
  umemVirtual *ctx = array->ctx;
  uint64_t before = umem_thread.failures;
  if (!has_streams(code)) return umem_finish(ctx) == umemOK;
  if (stream == UMEM_DLPACK_NO_STREAM || !(ctx->capabilities & (umemOrdered | umemDeviceShared)))
    return true;
  umemVirtual *layer = UMEM_LAYER_WITH(ctx, stream_wait);
  if (!layer) return umem_synchronize(ctx) == umemOK;
  layer->vptr->stream_wait(layer, stream == UMEM_DLPACK_DEFAULT_STREAM ? 1 : (uintptr_t)stream);
  return umem_record_on_layers(layer, ctx, before) == umemOK;
}

/* Finds out what is to be exported. False, and a status, if nothing can be. */
static bool prepare(Export *what, umemArray *array, umemDLPackOptions const *given,
                    bool versioned) {
  umemDLPackOptions options = UMEM_DLPACK_OPTIONS_INIT;
  if (!umem_array_given(array) || !umem_check(array->ctx) ||
      !umem_read_sized(NULL, &options, sizeof options, given, "umemDLPackOptions"))
    return false;
  umemDLDevice place = device_of(array->ctx);
  int32_t code = options.device      ? (int32_t)options.device
                 : place.device_type ? place.device_type
                                     : umemDLCPU;
  if (!check_copy(options.copy) || !check_stream(code, options.stream)) return false;
  bool placed = can_be(array->ctx, place, code), read_only = umem_array_read_only(array);
  if (!versioned && is_padded(array->type)) return refuse_padded(array);
  bool fits = placed && has_whole_strides(array) && (versioned || !read_only);
  if (options.copy == umemDLCopyAlways || (!fits && options.copy == umemDLCopyIfNeeded)) {
    what->array = copy_for(array, place, code);
    what->flags = UMEM_DLPACK_IS_COPIED;
  } else {
    what->array = fits ? umemArray_retain(array) : refuse(array, code, placed, versioned);
    what->flags = read_only ? UMEM_DLPACK_READ_ONLY : 0;
  }
  if (!what->array) return false;
  if (is_padded(array->type)) what->flags |= UMEM_DLPACK_SUBBYTE_PADDED;
  what->ended = options.ended;
  what->user = options.user;
  what->device = device_for(place, code);
  if (order(what->array, code, options.stream)) return true;
  umemArray_release(what->array);
  return false;
}

/* ---- tensors ---- */

typedef struct Tensor {
  union {
    umemDLManagedTensorVersioned versioned;
    umemDLManagedTensor unversioned;
  };
  umemArray *array; /* retained */
  void (*ended)(void *user);
  void *user;
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
  tensor->ended = what->ended;
  tensor->user = what->user;
  return tensor;
}

/* shape, strides: in elements. */
static void describe(umemDLTensor *dl, umemArray const *array, umemDLDevice device, int64_t *shape,
                     int64_t *strides) {
  *dl = (umemDLTensor){.data = array->elements ? (void *)array->adr : NULL,
                       .device = device,
                       .ndim = array->rank,
                       .dtype = {(uint8_t)umem_element_code(array->type),
                                 (uint8_t)umem_element_bits(array->type),
                                 (uint16_t)umem_element_lanes(array->type)},
                       .shape = shape,
                       .strides = strides};
}

static void count_strides(umemArray const *array, int64_t *elements) {
  for (int k = 0; k < array->rank; k++)
    elements[k] = umem_array_strides(array)[k] / (int64_t)array->item_size;
}

static void fill_in(umemDLTensor *dl, Tensor *tensor, umemDLDevice device) {
  umemArray const *array = tensor->array;
  int64_t *shape = tensor->numbers, *strides = shape + array->rank;
  memcpy(shape, umem_array_shape(array), (size_t)array->rank * sizeof *shape);
  count_strides(array, strides);
  describe(dl, array, device, shape, strides);
}

static void end_tensor(Tensor *tensor) {
  Tensor const ended = *tensor;
  free(tensor);
  umemArray_release(ended.array);
  if (ended.ended) ended.ended(ended.user);
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

/* The strides of array in elements, which it keeps from the first call on. NULL, and a status,
 * without RAM. */
static int64_t *strides_of(umemArray *array) {
  int64_t *known = __atomic_load_n(&array->element_strides, __ATOMIC_ACQUIRE);
  if (known) return known;
  int64_t *made = malloc(((size_t)array->rank + 1) * sizeof *made);
  if (!made) return UMEM_FAIL_NULL(NULL, umemMemoryError, "no memory for the strides of a tensor");
  count_strides(array, made);
  if (__atomic_compare_exchange_n(&array->element_strides, &known, made, false, __ATOMIC_ACQ_REL,
                                  __ATOMIC_ACQUIRE))
    return made;
  free(made); /* another thread was first */
  return known;
}

bool umemArray_describe_dlpack(umemArray *array, int64_t stream, umemDLTensor *tensor,
                               umemStatusType *status) {
  UMEM_ARRAY_ENTER(status, false);
  if (!umem_array_given(array) || !umem_check(array->ctx)) return false;
  if (!tensor) return UMEM_FAIL(NULL, umemValueError, "the tensor is NULL");
  umemDLDevice place = device_of(array->ctx);
  int32_t code = place.device_type;
  if (!check_stream(code, stream)) return false;
  if (!code || !has_whole_strides(array) || umem_array_read_only(array))
    return refuse(array, code ? code : umemDLCPU, code, false) != NULL;
  if (is_padded(array->type)) return refuse_padded(array);
  int64_t *strides = strides_of(array);
  if (!strides || !order(array, code, stream)) return false;
  describe(tensor, array, device_for(place, code), umem_array_shape(array), strides);
  return true;
}

/* ---- import ---- */

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

bool umem_dlpack_check_device(umemVirtual *ctx, int code, int id) {
  return is_place(device_of(ctx), (umemDLDevice){code, id}) ||
         UMEM_FAIL(NULL, umemNotSupportedError,
                   "memory of device code %d, number %d cannot be an array of %s", code, id,
                   umem_get_device_name(ctx));
}

/* Writes the strides in bytes. Those of dimensions without a second element mean nothing: they are
 * replaced. */
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
  if (!umem_dlpack_check_device(ctx, dl->device.device_type, dl->device.device_id)) return false;
  if (!has_elements(dl)) return true;
  if (!dl->data) return UMEM_FAIL(NULL, umemValueError, "the data of the tensor are NULL");
  return dl->byte_offset <= UINTPTR_MAX - (uintptr_t)dl->data ||
         UMEM_FAIL(NULL, umemValueError, "the elements leave the address space");
}

static umemArray *import(void *ctx, umemDLTensor const *dl, uint64_t flags,
                         void (*release)(void *user), void *user) {
  int64_t strides[UMEM_MAX_RANK];
  umemStatusType taken = umemOK;
  umemVirtual *self = umem_check(ctx);
  if (!self || !check_tensor(self, dl)) return NULL;
  umemElementType type = UMEM_ELEMENT(dl->dtype.code, dl->dtype.bits, dl->dtype.lanes);
  if (is_padded(type) && umem_element_size(type) && !(flags & UMEM_DLPACK_SUBBYTE_PADDED))
    return UMEM_FAIL_NULL(NULL, umemNotSupportedError,
                          "elements of %u bits that share bytes cannot be an array: a tensor has "
                          "them in a byte each (UMEM_DLPACK_SUBBYTE_PADDED), or in lanes",
                          umem_element_bits(type));
  bool some = has_elements(dl), strided = some && dl->strides;
  if (strided && !take_strides(strides, dl, umem_element_size(type))) return NULL;
  uintptr_t adr = (uintptr_t)dl->data + (some ? (uintptr_t)dl->byte_offset : 0);
  umemArray *array = umemArray_take(self, adr, type, dl->ndim, dl->shape, strided ? strides : NULL,
                                    release, user, &taken);
  if (array && flags & UMEM_DLPACK_READ_ONLY) array->read_only = array->for_good = true;
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
  return import(ctx, &tensor->dl_tensor, tensor->flags, release_versioned, tensor);
}

umemArray *umemArray_from_dlpack_unversioned(void *ctx, umemDLManagedTensor *tensor,
                                             umemStatusType *status) {
  UMEM_ARRAY_ENTER(status, NULL);
  if (!tensor) return UMEM_FAIL_NULL(NULL, umemValueError, "the tensor is NULL");
  return import(ctx, &tensor->dl_tensor, 0, release_unversioned, tensor);
}

umemDLPackExchange const *umem_find_dlpack_exchange(umemDLPackExchangeHeader const *header,
                                                    umemStatusType *status) {
  UMEM_ARRAY_ENTER(status, NULL);
  enum { most = 16 };
  int tables = 0;
  if (!header) return UMEM_FAIL_NULL(NULL, umemValueError, "the table is NULL");
  umemDLPackExchangeHeader const *found = header;
  while (found && found->version.major != UMEM_DLPACK_MAJOR && ++tables <= most)
    found = found->previous;
  if (tables > most)
    return UMEM_FAIL_NULL(NULL, umemValueError, "a chain of more than %d tables", (int)most);
  if (!found)
    return UMEM_FAIL_NULL(NULL, umemNotSupportedError,
                          "the table has version %u.%u of DLPack, and umem knows %u",
                          header->version.major, header->version.minor, UMEM_DLPACK_MAJOR);
  umemDLPackExchange const *table = (umemDLPackExchange const *)found;
  if (!table->managed_tensor_from_py_object_no_sync)
    return UMEM_FAIL_NULL(NULL, umemValueError, "the table cannot make tensors of objects");
  return table;
}
