/* dlpack_layout.c - compares what umem/dlpack.h and umem/element.h declare with an installed
 * dlpack.h: numbers, sizes and offsets. It is right if it compiles. Headers before version 1.0 lack
 * some of it. The command of the test includes dlpack.h. */
#include <stddef.h>

#include <umem/dlpack.h>

#define SAME(ours, theirs) _Static_assert((long long)(ours) == (long long)(theirs), #theirs)
#define SIZE(ours, theirs) SAME(sizeof(ours), sizeof(theirs))
#define MEMBER(ours, theirs, member)                                                               \
  SAME(offsetof(ours, member), offsetof(theirs, member));                                          \
  SAME(sizeof(((ours *)0)->member), sizeof(((theirs *)0)->member))

SAME(umemDLCPU, kDLCPU);
SAME(umemDLCUDA, kDLCUDA);
SAME(umemDLCUDAHost, kDLCUDAHost);
SAME(umemDLCUDAManaged, kDLCUDAManaged);

SAME(umemCodeInt, kDLInt);
SAME(umemCodeUInt, kDLUInt);
SAME(umemCodeFloat, kDLFloat);
SAME(umemCodeHandle, kDLOpaqueHandle);
SAME(umemCodeBfloat, kDLBfloat);
SAME(umemCodeComplex, kDLComplex);

SIZE(umemDLDevice, DLDevice);
MEMBER(umemDLDevice, DLDevice, device_type);
MEMBER(umemDLDevice, DLDevice, device_id);

SIZE(umemDLDataType, DLDataType);
MEMBER(umemDLDataType, DLDataType, code);
MEMBER(umemDLDataType, DLDataType, bits);
MEMBER(umemDLDataType, DLDataType, lanes);

SIZE(umemDLTensor, DLTensor);
MEMBER(umemDLTensor, DLTensor, data);
MEMBER(umemDLTensor, DLTensor, device);
MEMBER(umemDLTensor, DLTensor, ndim);
MEMBER(umemDLTensor, DLTensor, dtype);
MEMBER(umemDLTensor, DLTensor, shape);
MEMBER(umemDLTensor, DLTensor, strides);
MEMBER(umemDLTensor, DLTensor, byte_offset);

SIZE(umemDLManagedTensor, DLManagedTensor);
MEMBER(umemDLManagedTensor, DLManagedTensor, dl_tensor);
MEMBER(umemDLManagedTensor, DLManagedTensor, manager_ctx);
MEMBER(umemDLManagedTensor, DLManagedTensor, deleter);

#if defined(DLPACK_MAJOR_VERSION)
SAME(umemCodeBool, kDLBool);
SAME(UMEM_DLPACK_MAJOR, DLPACK_MAJOR_VERSION);
SAME(UMEM_DLPACK_READ_ONLY, DLPACK_FLAG_BITMASK_READ_ONLY);
#if defined(DLPACK_FLAG_BITMASK_IS_COPIED)
SAME(UMEM_DLPACK_IS_COPIED, DLPACK_FLAG_BITMASK_IS_COPIED);
#endif

SIZE(umemDLPackVersion, DLPackVersion);
MEMBER(umemDLPackVersion, DLPackVersion, major);
MEMBER(umemDLPackVersion, DLPackVersion, minor);

SIZE(umemDLManagedTensorVersioned, DLManagedTensorVersioned);
MEMBER(umemDLManagedTensorVersioned, DLManagedTensorVersioned, version);
MEMBER(umemDLManagedTensorVersioned, DLManagedTensorVersioned, manager_ctx);
MEMBER(umemDLManagedTensorVersioned, DLManagedTensorVersioned, deleter);
MEMBER(umemDLManagedTensorVersioned, DLManagedTensorVersioned, flags);
MEMBER(umemDLManagedTensorVersioned, DLManagedTensorVersioned, dl_tensor);
#endif

#if defined(DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED) /* version 1.1 */
SAME(UMEM_DLPACK_SUBBYTE_PADDED, DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED);
SAME(umemCodeFloat8_e3m4, kDLFloat8_e3m4);
SAME(umemCodeFloat8_e4m3, kDLFloat8_e4m3);
SAME(umemCodeFloat8_e4m3b11fnuz, kDLFloat8_e4m3b11fnuz);
SAME(umemCodeFloat8_e4m3fn, kDLFloat8_e4m3fn);
SAME(umemCodeFloat8_e4m3fnuz, kDLFloat8_e4m3fnuz);
SAME(umemCodeFloat8_e5m2, kDLFloat8_e5m2);
SAME(umemCodeFloat8_e5m2fnuz, kDLFloat8_e5m2fnuz);
SAME(umemCodeFloat8_e8m0fnu, kDLFloat8_e8m0fnu);
SAME(umemCodeFloat6_e2m3fn, kDLFloat6_e2m3fn);
SAME(umemCodeFloat6_e3m2fn, kDLFloat6_e3m2fn);
SAME(umemCodeFloat4_e2m1fn, kDLFloat4_e2m1fn);
#endif

#if defined(DLPACK_MAJOR_VERSION) && (DLPACK_MAJOR_VERSION > 1 || DLPACK_MINOR_VERSION >= 3)
SIZE(umemDLPackExchangeHeader, DLPackExchangeAPIHeader);
MEMBER(umemDLPackExchangeHeader, DLPackExchangeAPIHeader, version);
SAME(offsetof(umemDLPackExchangeHeader, previous), offsetof(DLPackExchangeAPIHeader, prev_api));

SIZE(umemDLPackExchange, DLPackExchangeAPI);
MEMBER(umemDLPackExchange, DLPackExchangeAPI, header);
MEMBER(umemDLPackExchange, DLPackExchangeAPI, managed_tensor_allocator);
MEMBER(umemDLPackExchange, DLPackExchangeAPI, managed_tensor_from_py_object_no_sync);
MEMBER(umemDLPackExchange, DLPackExchangeAPI, managed_tensor_to_py_object_no_sync);
MEMBER(umemDLPackExchange, DLPackExchangeAPI, dltensor_from_py_object_no_sync);
MEMBER(umemDLPackExchange, DLPackExchangeAPI, current_work_stream);
#endif
