/* cuda_rt_numbers.h - compares the numbers of cuda_calls.h with those of CUDA. For cuda_rt.c, which has included CUDA's
 * headers. */
#ifndef UMEM_CUDA_RT_NUMBERS_H
#define UMEM_CUDA_RT_NUMBERS_H

#include "cuda/cuda_calls.h"

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

#endif
