/* umem/dlpack.h - arrays exchanged with NumPy, PyTorch, CuPy, JAX and others, by DLPack.
 *
 *     umemDLManagedTensorVersioned *tensor = umemArray_to_dlpack(array, NULL, &status);
 *     consume(tensor);  // calls tensor->deleter(tensor) once, when it is done
 *
 *     umemArray *array = umemArray_from_dlpack(&host, tensor, &status);
 *     ...
 *     umemArray_release(array);  // the last release calls the producer's deleter
 *
 * The structs are those of the DLPack specification, version 1.3, with names of umem: cast a
 * pointer from one to the other. One file may include this header and an installed dlpack.h.
 *
 *   export    Shares the memory. The tensor has its own reference to the array, so the program may
 *             release its handles. The context of the array must live until the consumer has called
 *             the deleter. The consumer calls it exactly once, in any thread. If no other array
 *             uses the memory, the deleter frees it in the order of the context. If the consumer
 *             has queued work on another stream, this work must be complete before that, or the
 *             context must wait for it.
 *   import    Shares the memory, too. The caller names a context of this memory, because umem keeps
 *             no contexts of its own. The context must live until the last array that shares the
 *             memory is released. This release waits for the work that is queued on the context,
 *             and calls the deleter, in its thread. If the import fails, the tensor still belongs
 *             to the caller, who calls the deleter, also if umem does not know the version.
 *   strides   DLPack counts strides in elements, umem in bytes. An exported tensor has strides, and
 *             byte_offset 0. Tensors without strides (C order) and with a byte_offset can be
 *             imported.
 *   alignment Arrays that umem allocates begin at multiples of 64 bytes, on GPUs of 256. Some
 *             libraries copy arrays that are not aligned.
 *
 * Threads: as for the array. */
#ifndef UMEM_DLPACK_H
#define UMEM_DLPACK_H

#include <umem/array.h>
#include <umem/base.h>

/* ---- the structs of the specification ---- */

/* The version of DLPack that umem exports. */
#define UMEM_DLPACK_MAJOR 1u
#define UMEM_DLPACK_MINOR 3u

/* DLDevice. */
typedef struct umemDLDevice {
  int32_t device_type; /* umemDLDeviceCode (virtual.h), or another code of DLPack */
  int32_t device_id;   /* the number of the GPU; 0 for memory of the host and for managed memory */
} umemDLDevice;

/* DLDataType: the three numbers of a umemElementType. */
typedef struct umemDLDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
} umemDLDataType;

/* DLTensor. */
typedef struct umemDLTensor {
  void *data; /* may be NULL if there are no elements */
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
#define UMEM_DLPACK_IS_COPIED 2u      /* the memory is a copy, which only the consumer uses */
#define UMEM_DLPACK_SUBBYTE_PADDED 4u /* elements of less than 8 bits have a byte each */

/* DLManagedTensorVersioned. */
typedef struct umemDLManagedTensorVersioned {
  umemDLPackVersion version; /* if the major version is another one, only deleter may be used */
  void *manager_ctx;         /* the producer's */
  void (*deleter)(struct umemDLManagedTensorVersioned *self); /* NULL: there is nothing to end */
  uint64_t flags;                                             /* those above, or-ed */
  umemDLTensor dl_tensor;
} umemDLManagedTensorVersioned;

/* DLPackExchangeAPIHeader: how every table of functions begins, whatever its version. */
typedef struct umemDLPackExchangeHeader {
  umemDLPackVersion version; /* if the major version is another one, only previous may be used */
  struct umemDLPackExchangeHeader *previous; /* of an older version; NULL: there is none */
} umemDLPackExchangeHeader;

/* DLPackExchangeAPI: the functions of a library whose arrays are objects of Python. A class has it
 * as the capsule "dlpack_exchange_api" in its attribute __dlpack_c_exchange_api__; it lives as long
 * as the process. The functions return 0, or -1 with an exception of Python, but for the allocator,
 * which calls set_error. No exception of C++ leaves them. They need the GIL, but for the allocator.
 * None makes streams wait: the consumer works on the current stream of the producer. Tables of
 * other libraries: see umem_find_dlpack_exchange. */
typedef struct umemDLPackExchange {
  umemDLPackExchangeHeader header;
  /* A new tensor of the shape, type and device of prototype, not initialised. error_kind is the
   * name of a class of exceptions. */
  int (*managed_tensor_allocator)(umemDLTensor *prototype, umemDLManagedTensorVersioned **tensor,
                                  void *error_ctx,
                                  void (*set_error)(void *error_ctx, char const *error_kind,
                                                    char const *message));
  /* The tensor of an object of the class, with a reference of its own. */
  int (*managed_tensor_from_py_object_no_sync)(void *object, umemDLManagedTensorVersioned **tensor);
  /* A new object of the class, which takes tensor over. After a failure tensor is the caller's. */
  int (*managed_tensor_to_py_object_no_sync)(umemDLManagedTensorVersioned *tensor, void **object);
  /* Describes an object of the class until the caller returns to Python. May be NULL. */
  int (*dltensor_from_py_object_no_sync)(void *object, umemDLTensor *tensor);
  /* The stream of a GPU on which the calling thread works: a cudaStream_t. NULL is the default. */
  int (*current_work_stream)(int32_t device_type, int32_t device_id, void **stream);
} umemDLPackExchange;

/* Other libraries are compiled with these sizes and offsets. */
#if defined(__cplusplus)
#define UMEM_DLPACK_ASSERT(what) static_assert(what, "the layout is that of DLPack")
#else
#define UMEM_DLPACK_ASSERT(what) _Static_assert(what, "the layout is that of DLPack")
#endif
#define UMEM_DLPACK_OFFSET(type, member, bytes, pointers)                                          \
  UMEM_DLPACK_ASSERT(offsetof(type, member) == (bytes) + (pointers) * sizeof(void *))

UMEM_DLPACK_ASSERT(sizeof(umemDLDevice) == 8);
UMEM_DLPACK_OFFSET(umemDLDevice, device_id, 4, 0);
UMEM_DLPACK_ASSERT(sizeof(umemDLDataType) == 4);
UMEM_DLPACK_OFFSET(umemDLDataType, bits, 1, 0);
UMEM_DLPACK_OFFSET(umemDLDataType, lanes, 2, 0);
UMEM_DLPACK_ASSERT(sizeof(umemDLPackVersion) == 8);
UMEM_DLPACK_OFFSET(umemDLPackVersion, minor, 4, 0);
UMEM_DLPACK_OFFSET(umemDLTensor, device, 0, 1);
UMEM_DLPACK_OFFSET(umemDLTensor, ndim, 8, 1);
UMEM_DLPACK_OFFSET(umemDLTensor, dtype, 12, 1);
UMEM_DLPACK_OFFSET(umemDLTensor, shape, 16, 1);
UMEM_DLPACK_OFFSET(umemDLTensor, strides, 16, 2);
UMEM_DLPACK_OFFSET(umemDLManagedTensorVersioned, manager_ctx, 8, 0);
UMEM_DLPACK_OFFSET(umemDLManagedTensorVersioned, deleter, 8, 1);
UMEM_DLPACK_OFFSET(umemDLManagedTensorVersioned, flags, 8, 2);
UMEM_DLPACK_OFFSET(umemDLManagedTensorVersioned, dl_tensor, 16, 2);
UMEM_DLPACK_OFFSET(umemDLPackExchangeHeader, previous, 8, 0);
UMEM_DLPACK_OFFSET(umemDLPackExchange, managed_tensor_allocator, 8, 1);
UMEM_DLPACK_OFFSET(umemDLPackExchange, current_work_stream, 8, 5);
#undef UMEM_DLPACK_OFFSET
#undef UMEM_DLPACK_ASSERT

/* ---- export ---- */

/* Whether an export may copy. A copy is an array in C order that the tensor owns. */
typedef enum umemDLPackCopy {
  umemDLCopyNever = 0,
  umemDLCopyIfNeeded = 1, /* if the memory itself cannot be exported as asked */
  umemDLCopyAlways = 2
} umemDLPackCopy;

/* Streams of a consumer, besides 1 (CUDA's legacy default stream), 2 (the default stream of the
 * calling thread) and a cudaStream_t. The numbers are those of the array API of Python. */
#define UMEM_DLPACK_NO_STREAM (-1)           /* the consumer orders its work itself */
#define UMEM_DLPACK_DEFAULT_STREAM INT64_MIN /* None in the array API: as 1 */

/* Options of an export. */
typedef struct umemDLPackOptions {
  size_t size; /* sizeof(umemDLPackOptions) as the caller was compiled */
  /* The device code of the tensor. By default umemDLCPU for memory that only the CPU uses, also for
   * files that are mapped; umemDLCUDA for memory of a GPU; umemDLCUDAHost for pinned memory;
   * umemDLCUDAManaged for managed memory. Not every library accepts every code: NumPy 1, 3 and 13,
   * PyTorch 1 and 2, CuPy 2 and 13. So you may also ask for umemDLCPU for pinned memory and for
   * managed memory that the CPU can use at any time (umemCpuReadable), and for umemDLCUDA for
   * managed memory. If a copy is allowed, umemDLCPU is possible for all arrays. */
  umemDLDeviceCode device;
  umemDLPackCopy copy;
  /* The stream on which the consumer uses the memory. If the tensor is umemDLCUDA or
   * umemDLCUDAManaged, later work of this stream starts after the work that is queued on the
   * array's context; the host does not wait. The stream may be one of another GPU. Tensors of the
   * host have no stream: the export returns when the work that is queued on the context is done,
   * and no other stream than UMEM_DLPACK_DEFAULT_STREAM and UMEM_DLPACK_NO_STREAM is allowed. */
  int64_t stream;
  /* Called with user, unless NULL, when the deleter has ended the tensor, in its thread. */
  void (*ended)(void *user);
  void *user;
} umemDLPackOptions;

/* The defaults: the device code of the context, no copy, the legacy default stream, no function. */
#define UMEM_DLPACK_OPTIONS_INIT                                                                   \
  {                                                                                                \
    sizeof(umemDLPackOptions), umemDLDefault, umemDLCopyNever, UMEM_DLPACK_DEFAULT_STREAM, NULL,   \
        NULL                                                                                       \
  }

/* The array as a tensor, with UMEM_DLPACK_READ_ONLY if the array is read-only and not copied.
 * options: borrowed for the call; NULL: the defaults. The consumer owns the tensor, and ends it
 * with its deleter. A copy in host memory has UMEM_DLPACK_IS_COPIED and is complete on return; a
 * copy on a GPU comes in the order of the context. NULL on errors: umemNotSupportedError if a copy
 * is needed but not allowed (the context has no pointers, such as umemFile; it cannot have this
 * device code; a stride is no multiple of an element), if only a copy in memory that cannot have
 * this device code would do, and if the stream or that of the context is captured into a graph, and
 * the other cannot become a part of it; umemValueError for an unknown umemDLPackCopy, for stream 0,
 * which may be 1 or 2, for other negative streams, and for the stream of a tensor of the host;
 * umemMemoryError; those of the copy. */
UMEM_EXTERN umemDLManagedTensorVersioned *
umemArray_to_dlpack(umemArray *array, umemDLPackOptions const *options, umemStatusType *status);

/* Exports as umemArray_to_dlpack does, without a version, for older consumers. Such a tensor cannot
 * be read-only: for a read-only array it is umemNotSupportedError unless a copy is allowed; nor can
 * it say that a float4 or float6 has a byte, which is always umemNotSupportedError. */
UMEM_EXTERN umemDLManagedTensor *umemArray_to_dlpack_unversioned(umemArray *array,
                                                                 umemDLPackOptions const *options,
                                                                 umemStatusType *status);

/* Describes the array in *tensor without an owner and without an allocation: for a function that
 * uses it only until it returns. shape and strides are borrowed from array, and last as long as its
 * memory: until array is released. stream is that of umemDLPackOptions. Returns false on errors:
 * those of umemArray_to_dlpack without a copy, and umemNotSupportedError for an array that is
 * read-only and for one lane of a float4 or float6, which such a tensor cannot say. */
UMEM_EXTERN bool umemArray_describe_dlpack(umemArray *array, int64_t stream, umemDLTensor *tensor,
                                           umemStatusType *status);

/* ---- import ---- */

/* An array over the memory of tensor, which it takes over. ctx: a context of this memory, borrowed:
 * a umemHost for umemDLCPU; for umemDLCUDA one of device memory of the same GPU; for umemDLCUDAHost
 * also a umemHost; for umemDLCUDAManaged also one of device memory. The producer must have ordered
 * its work before the call. The array is read-only if the tensor or ctx is. NULL on errors, and the
 * tensor still belongs to the caller: umemValueError for a tensor that is NULL, or whose shape,
 * strides or address are not valid; umemTypeError for a type that umem does not have;
 * umemNotSupportedError for another major version, for a device that is not that of ctx, and for
 * elements of less than a byte without UMEM_DLPACK_SUBBYTE_PADDED. */
UMEM_EXTERN umemArray *umemArray_from_dlpack(void *ctx, umemDLManagedTensorVersioned *tensor,
                                             umemStatusType *status);

/* Imports a tensor without a version as umemArray_from_dlpack does. */
UMEM_EXTERN umemArray *umemArray_from_dlpack_unversioned(void *ctx, umemDLManagedTensor *tensor,
                                                         umemStatusType *status);

/* The table of the major version that umem knows: header, or one of those before it, borrowed. NULL
 * on errors: umemValueError for NULL, a table without managed_tensor_from_py_object_no_sync, and a
 * chain of more than 16 tables; umemNotSupportedError if no table has the version. The other
 * functions of the table may be NULL. */
UMEM_EXTERN umemDLPackExchange const *
umem_find_dlpack_exchange(umemDLPackExchangeHeader const *header, umemStatusType *status);

#endif
