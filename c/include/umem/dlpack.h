/* umem/dlpack.h - arrays exchanged with NumPy, PyTorch, CuPy, JAX and others, by DLPack.
 *
 *     umemDLManagedTensorVersioned *tensor = umemArray_to_dlpack(array, NULL, &status);
 *     consume(tensor);                                   // calls tensor->deleter(tensor) once, when it is done
 *
 *     umemArray *array = umemArray_from_dlpack(&host, tensor, &status);
 *     ...
 *     umemArray_release(array);                          // the last release calls the producer's deleter
 *
 * The structs are those of the DLPack specification, version 1.1, with names of umem: cast a pointer from one to the
 * other. This header and an installed dlpack.h may be included in one file.
 *
 *   export    shares the memory. The tensor holds a reference of its own to the array, so the program may release its
 *             handles. The context of the array must live until the consumer has called the deleter. The consumer
 *             calls it exactly once, in any thread. The memory is freed in the order of the array's context: if the
 *             consumer has work on another stream, this work must be done, or the context must wait for it.
 *   import    shares the memory, too. The context that the caller names must live until the last array that shares the
 *             memory is released; this release calls the deleter, in its thread. If the import fails, the tensor still
 *             belongs to the caller, who calls the deleter, also for a version that umem does not know.
 *   shapes    A stride of DLPack counts elements, one of umem bytes. Strides are always exported, and byte_offset is 0.
 *             Tensors without strides (C order) and with a byte_offset can be imported.
 *   alignment Arrays that umem allocates begin at multiples of 64 bytes, on GPUs of 256.
 *
 * Threads: as for the array. */
#ifndef UMEM_DLPACK_H
#define UMEM_DLPACK_H

#include <umem/array.h>
#include <umem/base.h>

/* ---- the structs of the specification ---- */

/* The version that umem exports. */
#define UMEM_DLPACK_MAJOR 1u
#define UMEM_DLPACK_MINOR 1u

/* Where memory is: the codes of DLPack that umem knows. */
typedef enum umemDLDeviceCode {
  umemDLDefault = 0, /* in umemDLPackOptions: the code of the context */
  umemDLCPU = 1,
  umemDLCUDA = 2,
  umemDLCUDAHost = 3,
  umemDLCUDAManaged = 13
} umemDLDeviceCode;

/* DLDevice. */
typedef struct umemDLDevice {
  int32_t device_type; /* umemDLDeviceCode, or another code of DLPack */
  int32_t device_id;   /* the number of the GPU; 0 for the CPU */
} umemDLDevice;

/* DLDataType: the three numbers of a umemElementType. */
typedef struct umemDLDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
} umemDLDataType;

/* DLTensor. */
typedef struct umemDLTensor {
  void *data; /* may be NULL without elements */
  umemDLDevice device;
  int32_t ndim;
  umemDLDataType dtype;
  int64_t *shape;       /* [ndim] */
  int64_t *strides;     /* [ndim] elements; NULL: C order */
  uint64_t byte_offset; /* from data to the first element */
} umemDLTensor;

/* DLManagedTensor: the form without a version. */
typedef struct umemDLManagedTensor {
  umemDLTensor dl_tensor;
  void *manager_ctx;                                 /* the producer's */
  void (*deleter)(struct umemDLManagedTensor *self); /* NULL: there is nothing to end */
} umemDLManagedTensor;

/* DLPackVersion. */
typedef struct umemDLPackVersion {
  uint32_t major;
  uint32_t minor;
} umemDLPackVersion;

/* Flags of a umemDLManagedTensorVersioned. */
#define UMEM_DLPACK_READ_ONLY 1u      /* consumers must not write */
#define UMEM_DLPACK_IS_COPIED 2u      /* the memory is a copy, which nobody else uses */
#define UMEM_DLPACK_SUBBYTE_PADDED 4u /* elements below 8 bits have a byte each (1.1) */

/* DLManagedTensorVersioned. */
typedef struct umemDLManagedTensorVersioned {
  umemDLPackVersion version; /* of another major version only deleter may be used */
  void *manager_ctx;
  void (*deleter)(struct umemDLManagedTensorVersioned *self);
  uint64_t flags;
  umemDLTensor dl_tensor;
} umemDLManagedTensorVersioned;

/* ---- export ---- */

/* Whether an export may copy. A copy is an array in C order that the tensor owns. */
typedef enum umemDLPackCopy {
  umemDLCopyNever = 0,
  umemDLCopyIfNeeded = 1, /* where the memory itself cannot be exported as asked */
  umemDLCopyAlways = 2
} umemDLPackCopy;

/* A stream number: the consumer has no stream, or orders its work itself. */
#define UMEM_DLPACK_NO_STREAM (-1)

/* Options of an export. */
typedef struct umemDLPackOptions {
  size_t size; /* sizeof(umemDLPackOptions) as the caller was compiled */
  /* What the tensor says of its place. Default: umemDLCPU for memory that only the CPU uses, files that are mapped
   * included; umemDLCUDA for memory of a GPU; umemDLCUDAHost for pinned, umemDLCUDAManaged for managed memory. NumPy
   * takes 1, 3 and 13; PyTorch takes 1 and 2; CuPy takes 2 and 13. So you may ask for umemDLCPU for pinned memory,
   * and for umemDLCPU (if the CPU can use it while kernels run) and umemDLCUDA for managed memory. With a copy
   * allowed, umemDLCPU is possible for every array: the copy is in the context's host memory. */
  umemDLDeviceCode device;
  umemDLPackCopy copy;
  /* The consumer's stream, as in the array API: UMEM_DLPACK_NO_STREAM; 1, CUDA's legacy default stream; 2, that of
   * the thread; or a cudaStream_t. Later work of this stream comes after what is queued on the array's context; the
   * host does not wait. With umemDLCPU and umemDLCUDAHost only UMEM_DLPACK_NO_STREAM is allowed: the export then
   * returns after the work that is queued on the context. */
  int64_t stream;
} umemDLPackOptions;

/* The defaults: the device code of the context, no copy, no stream. */
#define UMEM_DLPACK_OPTIONS_INIT                                                                   \
  { sizeof(umemDLPackOptions), umemDLDefault, umemDLCopyNever, UMEM_DLPACK_NO_STREAM }

/* The array as a tensor, with UMEM_DLPACK_READ_ONLY if the array is read-only. options: borrowed for the call; NULL:
 * the defaults. The consumer owns the tensor, and ends it with its deleter.
 * NULL on errors: umemNotSupportedError where the memory has no pointer (umemFile), cannot be what options ask for, or
 * has strides that are no multiples of an element, unless a copy is allowed; umemValueError for unknown options, for
 * stream 0, which is ambiguous, and for a stream where none is allowed; umemMemoryError; those of the copy. */
UMEM_EXTERN umemDLManagedTensorVersioned *
umemArray_to_dlpack(umemArray *array, umemDLPackOptions const *options, umemStatusType *status);

/* The same without a version, for older consumers. umemNotSupportedError besides for a read-only array, which this
 * form cannot express, unless a copy is allowed. */
UMEM_EXTERN umemDLManagedTensor *umemArray_to_dlpack_unversioned(umemArray *array,
                                                                 umemDLPackOptions const *options,
                                                                 umemStatusType *status);

/* ---- import ---- */

/* An array over the memory of tensor, which it takes over. ctx: a context of this memory, borrowed: a umemHost for
 * umemDLCPU; for umemDLCUDA one of device memory of the same GPU; for umemDLCUDAHost also a umemHost; for
 * umemDLCUDAManaged also one of device memory. The producer has ordered its work before the call. The array is
 * read-only if the tensor or ctx is.
 * NULL on errors, and the tensor still belongs to the caller: umemValueError for a tensor that is NULL, or whose shape,
 * strides or address are not valid; umemTypeError for a type that umem does not have; umemNotSupportedError for
 * another major version, and for a device that is not that of ctx. */
UMEM_EXTERN umemArray *umemArray_from_dlpack(void *ctx, umemDLManagedTensorVersioned *tensor,
                                             umemStatusType *status);

/* The same for a tensor without a version. */
UMEM_EXTERN umemArray *umemArray_from_dlpack_unversioned(void *ctx, umemDLManagedTensor *tensor,
                                                         umemStatusType *status);

#endif
