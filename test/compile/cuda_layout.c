/* cuda_layout.c - compares with CUDA's headers what umem declares of CUDA: the numbers of
 * cuda/cuda_rt.h, and numbers, sizes and offsets of cuda/cuda_driver.h. It is right if it
 * compiles. */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <cuda/cuda_driver.h>
#include <cuda/cuda_rt.h>

/* ---- cuda_rt.h ---- */

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)
SAME(umemCudaInvalidValue, cudaErrorInvalidValue);
SAME(umemCudaOutOfMemory, cudaErrorMemoryAllocation);
SAME(umemCudaInitializationError, cudaErrorInitializationError);
SAME(umemCudaUnloading, cudaErrorCudartUnloading);
SAME(umemCudaStubLibrary, cudaErrorStubLibrary);
SAME(umemCudaInsufficientDriver, cudaErrorInsufficientDriver);
SAME(umemCudaNoGpu, cudaErrorNoDevice);
SAME(umemCudaInvalidOrdinal, cudaErrorInvalidDevice);
SAME(umemCudaInvalidContext, cudaErrorDeviceUninitialized);
SAME(umemCudaMapFailed, cudaErrorMapBufferObjectFailed);
SAME(umemCudaUncorrectable, cudaErrorECCUncorrectable);
SAME(umemCudaLinkUncorrectable, cudaErrorNvlinkUncorrectable);
SAME(umemCudaInvalidHandle, cudaErrorInvalidResourceHandle);
SAME(umemCudaNotReady, cudaErrorNotReady);
SAME(umemCudaIllegalAddress, cudaErrorIllegalAddress);
SAME(umemCudaLaunchTimeout, cudaErrorLaunchTimeout);
SAME(umemCudaPeerAlreadyEnabled, cudaErrorPeerAccessAlreadyEnabled);
SAME(umemCudaContextDestroyed, cudaErrorContextIsDestroyed);
SAME(umemCudaAssert, cudaErrorAssert);
SAME(umemCudaAlreadyRegistered, cudaErrorHostMemoryAlreadyRegistered);
SAME(umemCudaNotRegistered, cudaErrorHostMemoryNotRegistered);
SAME(umemCudaHardwareStackError, cudaErrorHardwareStackError);
SAME(umemCudaIllegalInstruction, cudaErrorIllegalInstruction);
SAME(umemCudaMisalignedAddress, cudaErrorMisalignedAddress);
SAME(umemCudaInvalidAddressSpace, cudaErrorInvalidAddressSpace);
SAME(umemCudaInvalidPc, cudaErrorInvalidPc);
SAME(umemCudaLaunchFailure, cudaErrorLaunchFailure);
SAME(umemCudaNotPermitted, cudaErrorNotPermitted);
SAME(umemCudaNotSupported, cudaErrorNotSupported);
SAME(umemCudaCaptureUnsupported, cudaErrorStreamCaptureUnsupported);
SAME(umemCudaCaptureInvalidated, cudaErrorStreamCaptureInvalidated);
SAME(umemCudaCaptureIsolation, cudaErrorStreamCaptureIsolation);
SAME(umemCudaCaptureImplicit, cudaErrorStreamCaptureImplicit);
SAME(umemCudaCapturedEvent, cudaErrorCapturedEvent);
SAME(umemCudaToDevice, cudaMemcpyHostToDevice);
SAME(umemCudaToHost, cudaMemcpyDeviceToHost);
SAME(umemCudaWithinDevice, cudaMemcpyDeviceToDevice);
SAME(umemCudaAnyDirection, cudaMemcpyDefault);
SAME(umemCudaUnregistered, cudaMemoryTypeUnregistered);
SAME(umemCudaPinned, cudaMemoryTypeHost);
SAME(umemCudaDeviceMemory, cudaMemoryTypeDevice);
SAME(umemCudaManagedMemory, cudaMemoryTypeManaged);
SAME(umemCudaNoCapture, cudaStreamCaptureStatusNone);
SAME(umemCudaCapturing, cudaStreamCaptureStatusActive);
SAME(umemCudaCaptureBroken, cudaStreamCaptureStatusInvalidated);
SAME(umemCudaPortable, cudaHostAllocPortable);
SAME(umemCudaMapped, cudaHostAllocMapped);
SAME(umemCudaWriteCombined, cudaHostAllocWriteCombined);
SAME(umemCudaPortable, cudaHostRegisterPortable);
SAME(umemCudaMapped, cudaHostRegisterMapped);
SAME(2, CU_STREAM_CAPTURE_MODE_RELAXED); /* exchange_capture_mode */

/* The errors of the driver's functions that umem calls. */
SAME(umemCudaInvalidValue, CUDA_ERROR_INVALID_VALUE);
SAME(umemCudaOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY);
SAME(umemCudaInitializationError, CUDA_ERROR_NOT_INITIALIZED);
SAME(umemCudaUnloading, CUDA_ERROR_DEINITIALIZED);
SAME(umemCudaNoGpu, CUDA_ERROR_NO_DEVICE);
SAME(umemCudaInvalidOrdinal, CUDA_ERROR_INVALID_DEVICE);
SAME(umemCudaInvalidContext, CUDA_ERROR_INVALID_CONTEXT);
SAME(umemCudaMapFailed, CUDA_ERROR_MAP_FAILED);
SAME(umemCudaInvalidHandle, CUDA_ERROR_INVALID_HANDLE);
SAME(umemCudaContextDestroyed, CUDA_ERROR_CONTEXT_IS_DESTROYED);
SAME(umemCudaNotSupported, CUDA_ERROR_NOT_SUPPORTED);
SAME(umemCudaCaptureImplicit, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
SAME(umemCudaCaptureUnsupported, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
SAME(umemCudaCaptureInvalidated, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
SAME(umemCudaCaptureIsolation, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
SAME(umemCudaNoCapture, CU_STREAM_CAPTURE_STATUS_NONE);
SAME(umemCudaCapturing, CU_STREAM_CAPTURE_STATUS_ACTIVE);
SAME(umemCudaCaptureBroken, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
SAME(umemCudaPortable, CU_MEMHOSTALLOC_PORTABLE);
SAME(umemCudaMapped, CU_MEMHOSTALLOC_DEVICEMAP);
SAME(umemCudaWriteCombined, CU_MEMHOSTALLOC_WRITECOMBINED);
SAME(umemCudaPortable, CU_MEMHOSTREGISTER_PORTABLE);
SAME(umemCudaMapped, CU_MEMHOSTREGISTER_DEVICEMAP);
SAME(umemCudaPinned, CU_MEMORYTYPE_HOST);
SAME(umemCudaDeviceMemory, CU_MEMORYTYPE_DEVICE);

/* ---- cuda_driver.h ---- */

SAME(umemCuHost, CU_MEMORYTYPE_HOST);
SAME(umemCuDevice, CU_MEMORYTYPE_DEVICE);
SAME(umemCuUnified, CU_MEMORYTYPE_UNIFIED);
SAME(umemCuNonBlocking, CU_STREAM_NON_BLOCKING);
SAME(umemCuDisableTiming, CU_EVENT_DISABLE_TIMING);
SAME(umemCuInterprocess, CU_EVENT_INTERPROCESS);
SAME(umemCuLazyPeerAccess, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
SAME(umemCuByDescriptor, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
SAME(umemCuPoolHandles, CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES);
SAME(umemCuAttachGlobal, CU_MEM_ATTACH_GLOBAL);
SAME(umemCuManagedMemory, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY);
SAME(umemCuConcurrentManaged, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS);
SAME(umemCuVirtualMemory, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
SAME(umemCuRdmaWithVirtualMemory, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED);
SAME(umemCuLeastGranularity, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
SAME(umemCuMemoryPools, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
SAME(umemCuMemoryType, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
SAME(umemCuIsManaged, CU_POINTER_ATTRIBUTE_IS_MANAGED);
SAME(umemCuDeviceOrdinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
SAME(umemCuReadMostly, CU_MEM_ADVISE_SET_READ_MOSTLY);
SAME(umemCuPreferredLocation, CU_MEM_ADVISE_SET_PREFERRED_LOCATION);
SAME(umemCuAccessedBy, CU_MEM_ADVISE_SET_ACCESSED_BY);
SAME(umemCuReleaseThreshold, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
SAME(umemCuReserved, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
SAME(umemCuUsed, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
SAME(umemCuPinnedAllocation, CU_MEM_ALLOCATION_TYPE_PINNED);
SAME(umemCuOnDevice, CU_MEM_LOCATION_TYPE_DEVICE);
SAME(umemCuReadWrite, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);

_Static_assert(sizeof(umemCuAddress) == sizeof(CUdeviceptr), "CUdeviceptr");

#define SIZE(ours, theirs) _Static_assert(sizeof(ours) == sizeof(theirs), #theirs)
#if CUDA_VERSION >= 12080
SIZE(umemCuBatch, CUmemcpyAttributes);
_Static_assert(offsetof(umemCuBatch, dst) == offsetof(CUmemcpyAttributes, dstLocHint), "dst");
_Static_assert(offsetof(umemCuBatch, flags) == offsetof(CUmemcpyAttributes, flags), "flags");
_Static_assert((int)umemCuInStreamOrder == (int)CU_MEMCPY_SRC_ACCESS_ORDER_STREAM, "order");
#endif
#define AT(ours, member, theirs, path)                                                             \
  _Static_assert(offsetof(ours, member) == offsetof(theirs, path), #path);                         \
  _Static_assert(sizeof((ours){0}.member) == sizeof((theirs){0}.path), "size of " #path)

#define SIDE(theirs, ours, which, context_)                                                        \
  AT(umemCuCopy3D, ours.x, theirs, which##XInBytes);                                               \
  AT(umemCuCopy3D, ours.y, theirs, which##Y);                                                      \
  AT(umemCuCopy3D, ours.z, theirs, which##Z);                                                      \
  AT(umemCuCopy3D, ours.level, theirs, which##LOD);                                                \
  AT(umemCuCopy3D, ours.type, theirs, which##MemoryType);                                          \
  AT(umemCuCopy3D, ours.host, theirs, which##Host);                                                \
  AT(umemCuCopy3D, ours.device, theirs, which##Device);                                            \
  AT(umemCuCopy3D, ours.array, theirs, which##Array);                                              \
  AT(umemCuCopy3D, ours.context, theirs, context_);                                                \
  AT(umemCuCopy3D, ours.pitch, theirs, which##Pitch);                                              \
  AT(umemCuCopy3D, ours.height, theirs, which##Height)
#define BOX(theirs)                                                                                \
  SIZE(umemCuCopy3D, theirs);                                                                      \
  AT(umemCuCopy3D, width, theirs, WidthInBytes);                                                   \
  AT(umemCuCopy3D, height, theirs, Height);                                                        \
  AT(umemCuCopy3D, depth, theirs, Depth)
BOX(CUDA_MEMCPY3D);
SIDE(CUDA_MEMCPY3D, src, src, reserved0);
SIDE(CUDA_MEMCPY3D, dst, dst, reserved1);
BOX(CUDA_MEMCPY3D_PEER);
SIDE(CUDA_MEMCPY3D_PEER, src, src, srcContext);
SIDE(CUDA_MEMCPY3D_PEER, dst, dst, dstContext);

#define PLANE(side)                                                                                \
  AT(umemCuCopy2D, side.x, CUDA_MEMCPY2D, side##XInBytes);                                         \
  AT(umemCuCopy2D, side.y, CUDA_MEMCPY2D, side##Y);                                                \
  AT(umemCuCopy2D, side.type, CUDA_MEMCPY2D, side##MemoryType);                                    \
  AT(umemCuCopy2D, side.host, CUDA_MEMCPY2D, side##Host);                                          \
  AT(umemCuCopy2D, side.device, CUDA_MEMCPY2D, side##Device);                                      \
  AT(umemCuCopy2D, side.array, CUDA_MEMCPY2D, side##Array);                                        \
  AT(umemCuCopy2D, side.pitch, CUDA_MEMCPY2D, side##Pitch)
SIZE(umemCuCopy2D, CUDA_MEMCPY2D);
PLANE(src);
PLANE(dst);
AT(umemCuCopy2D, width, CUDA_MEMCPY2D, WidthInBytes);
AT(umemCuCopy2D, height, CUDA_MEMCPY2D, Height);

SIZE(umemCuPoolProps, CUmemPoolProps);
AT(umemCuPoolProps, allocation, CUmemPoolProps, allocType);
AT(umemCuPoolProps, handles, CUmemPoolProps, handleTypes);
AT(umemCuPoolProps, location.type, CUmemPoolProps, location.type);
AT(umemCuPoolProps, location.id, CUmemPoolProps, location.id);
AT(umemCuPoolProps, security, CUmemPoolProps, win32SecurityAttributes);
AT(umemCuPoolProps, most, CUmemPoolProps, maxSize);

_Static_assert(sizeof(umemCuPage) == sizeof(CUmemGenericAllocationHandle),
               "CUmemGenericAllocationHandle");
SIZE(umemCuPageProps, CUmemAllocationProp);
AT(umemCuPageProps, allocation, CUmemAllocationProp, type);
AT(umemCuPageProps, handles, CUmemAllocationProp, requestedHandleTypes);
AT(umemCuPageProps, location.type, CUmemAllocationProp, location.type);
AT(umemCuPageProps, location.id, CUmemAllocationProp, location.id);
AT(umemCuPageProps, security, CUmemAllocationProp, win32HandleMetaData);
AT(umemCuPageProps, flags.compression, CUmemAllocationProp, allocFlags.compressionType);
AT(umemCuPageProps, flags.rdma, CUmemAllocationProp, allocFlags.gpuDirectRDMACapable);
AT(umemCuPageProps, flags.usage, CUmemAllocationProp, allocFlags.usage);

SIZE(umemCuAccess, CUmemAccessDesc);
AT(umemCuAccess, location.type, CUmemAccessDesc, location.type);
AT(umemCuAccess, location.id, CUmemAccessDesc, location.id);
AT(umemCuAccess, flags, CUmemAccessDesc, flags);

SIZE(umemCuIpc, CUipcMemHandle);
SIZE(umemCuIpc, CUipcEventHandle);
SIZE(umemCuIpc, CUmemPoolPtrExportData);
SIZE(umemCuUuid, CUuuid);
