/* cuda_rt.c - chooses the table, and fills that of the CUDA runtime, 12.2 and later.
 *
 * The runtime is linked statically and opens the driver when it is first called, so the library
 * loads on machines without one. The few functions of the driver are asked of the runtime. */
#include "cuda/cuda_rt.h"

static umemCudaRt const *replacement;

void umemCudaRt_replace(umemCudaRt const *table) { replacement = table; }

#if defined(UMEM_CUDA_DRIVER)

#include "cuda/cufile_rt.h"

umemCudaRt const *umemCudaRt_get(void) {
  return replacement ? replacement : umemCudaDriver_get(umemCufileRt_get);
}

#elif !defined(UMEM_WITH_CUDA)

umemCudaRt const *umemCudaRt_get(void) { return replacement; }

#else

/* Stream NULL is the legacy default stream, whatever the build is compiled with: CUDA's headers
 * would replace the functions by those of a default stream per thread. */
#undef CUDA_API_PER_THREAD_DEFAULT_STREAM
#undef __CUDA_API_PER_THREAD_DEFAULT_STREAM

#include "cuda/cufile_rt.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#if CUDART_VERSION < 12020
#error "umem needs CUDA 12.2 or later"
#endif

/* The numbers of cuda_rt.h are CUDA's. */
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
#undef SAME

/* ---- the driver's functions ---- */

/* FUNCTION(name here, name in CUDA's header) */
#define FUNCTIONS(FUNCTION)                                                                        \
  FUNCTION(get_current, cuCtxGetCurrent)                                                           \
  FUNCTION(push, cuCtxPushCurrent)                                                                 \
  FUNCTION(pop, cuCtxPopCurrent)                                                                   \
  FUNCTION(get_device, cuCtxGetDevice)                                                             \
  FUNCTION(retain, cuDevicePrimaryCtxRetain)                                                       \
  FUNCTION(release, cuDevicePrimaryCtxRelease)                                                     \
  FUNCTION(stream_context, cuStreamGetCtx)                                                         \
  FUNCTION(get_attribute, cuDeviceGetAttribute)                                                    \
  FUNCTION(get_uuid, cuDeviceGetUuid)                                                              \
  FUNCTION(get_range, cuMemGetAddressRange)                                                        \
  FUNCTION(get_granularity, cuMemGetAllocationGranularity)                                         \
  FUNCTION(range_reserve, cuMemAddressReserve)                                                     \
  FUNCTION(range_free, cuMemAddressFree)                                                           \
  FUNCTION(page_create, cuMemCreate)                                                               \
  FUNCTION(page_retain, cuMemRetainAllocationHandle)                                               \
  FUNCTION(page_release, cuMemRelease)                                                             \
  FUNCTION(page_map, cuMemMap)                                                                     \
  FUNCTION(page_unmap, cuMemUnmap)                                                                 \
  FUNCTION(page_access, cuMemSetAccess)                                                            \
  FUNCTION(exchange_mode, cuThreadExchangeStreamCaptureMode)                                       \
  FUNCTION(is_capturing, cuStreamIsCapturing)                                                      \
  FUNCTION(pool_malloc, cuMemAllocFromPoolAsync)                                                   \
  FUNCTION(pool_free, cuMemFreeAsync)

/* They are called by their types in the header, and found by their names. */
static struct {
  pthread_once_t once;
  bool looked;       /* atomic */
  cudaError_t found; /* what looking for them returned */
#define MEMBER(name, symbol) __typeof__(&symbol) name;
  FUNCTIONS(MEMBER)
#undef MEMBER
} driver = {.once = PTHREAD_ONCE_INIT};

static void find_one(char const *name, void **function) {
  if (driver.found != cudaSuccess) return;
  enum cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSuccess;
#if CUDART_VERSION >= 12050
  driver.found =
      cudaGetDriverEntryPointByVersion(name, function, 12020, cudaEnableLegacyStream, &result);
#else
  driver.found = cudaGetDriverEntryPoint(name, function, cudaEnableLegacyStream, &result);
#endif
  if (driver.found == cudaSuccess && result != cudaDriverEntryPointSuccess)
    driver.found = cudaErrorInsufficientDriver;
}

static void find_driver(void) {
#define FIND(name, symbol) find_one(#symbol, (void **)&driver.name);
  FUNCTIONS(FIND)
#undef FIND
  __atomic_store_n(&driver.looked, true, __ATOMIC_RELEASE);
}

/* Some of the functions take a few ns: from the second call on pthread_once is left out. */
static inline bool driver_is_missing(void) {
  if (!__builtin_expect(__atomic_load_n(&driver.looked, __ATOMIC_ACQUIRE), true))
    pthread_once(&driver.once, find_driver);
  return driver.found != cudaSuccess;
}

/* Most of the driver's numbers are the runtime's too; those that are not have no name there. */
#define DRIVER(call) (driver_is_missing() ? (int)driver.found : (int)driver.call)

static int context_current(void **context) { return DRIVER(get_current((CUcontext *)context)); }
static int context_push(void *context) { return DRIVER(push(context)); }
static int context_pop(void **context) { return DRIVER(pop((CUcontext *)context)); }
static int primary_retain(void **context, int device) {
  return DRIVER(retain((CUcontext *)context, device));
}
static int primary_release(int device) { return DRIVER(release(device)); }

static int stream_device(void *stream, int *device) {
  CUcontext context = NULL;
  int error = DRIVER(stream_context(stream, &context));
  if (!error) error = DRIVER(push(context));
  if (error) return error;
  error = DRIVER(get_device(device));
  int popped = DRIVER(pop(&context));
  return error ? error : popped;
}

/* ---- errors and devices ---- */

static char const *error_name(int error) { return cudaGetErrorName((cudaError_t)error); }
static char const *error_string(int error) { return cudaGetErrorString((cudaError_t)error); }
static int last_error(void) { return (int)cudaGetLastError(); }
static int driver_version(int *version) { return (int)cudaDriverGetVersion(version); }
static int runtime_version(int *version) { return (int)cudaRuntimeGetVersion(version); }
static int device_count(int *count) { return (int)cudaGetDeviceCount(count); }
static int get_device(int *device) { return (int)cudaGetDevice(device); }

/* The runtime has no names for those of pages. */
static int attribute(int *value, umemCudaAttribute what, int device) {
  if (what == umemCudaHasPages)
    return DRIVER(
        get_attribute(value, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device));
  if (what == umemCudaBusReachesPages)
    return DRIVER(
        get_attribute(value, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, device));
  static enum cudaDeviceAttr const theirs[] = {
      [umemCudaHasPools] = cudaDevAttrMemoryPoolsSupported,
      [umemCudaHasManaged] = cudaDevAttrManagedMemory,
      [umemCudaSharesPools] = cudaDevAttrMemoryPoolSupportedHandleTypes,
      [umemCudaConcurrentManaged] = cudaDevAttrConcurrentManagedAccess,
  };
  int error = (int)cudaDeviceGetAttribute(value, theirs[what], device);
  if (what == umemCudaSharesPools) *value &= cudaMemHandleTypePosixFileDescriptor;
  return error;
}

static int device_name(char *name, size_t size, int device) {
  struct cudaDeviceProp properties;
  cudaError_t error = cudaGetDeviceProperties(&properties, device);
  if (error == cudaSuccess) snprintf(name, size, "%s", properties.name);
  return (int)error;
}

static int uuid(uint64_t words[2], int device) {
  CUuuid theirs;
  _Static_assert(sizeof theirs == 2 * sizeof *words, "a UUID has 16 bytes");
  int error = DRIVER(get_uuid(&theirs, device));
  if (!error) memcpy(words, &theirs, sizeof theirs);
  return error;
}

static int bus_id(char *text, size_t size, int device) {
  return (int)cudaDeviceGetPCIBusId(text, (int)size, device);
}

static int memory_info(size_t *available, size_t *capacity) {
  return (int)cudaMemGetInfo(available, capacity);
}

static int can_access_peer(int *can, int device, int peer) {
  return (int)cudaDeviceCanAccessPeer(can, device, peer);
}

static int enable_peer_access(int peer) { return (int)cudaDeviceEnablePeerAccess(peer, 0); }

static int pointer(void const *adr, umemCudaMemory *kind, int *device) {
  struct cudaPointerAttributes attributes;
  cudaError_t error = cudaPointerGetAttributes(&attributes, adr);
  if (error != cudaSuccess) return (int)error;
  *kind = (umemCudaMemory)attributes.type;
  *device = attributes.device;
  return 0;
}

static int range(void const *adr, uintptr_t *base, size_t *nbytes) {
  CUdeviceptr first = 0;
  int error = DRIVER(get_range(&first, nbytes, (CUdeviceptr)(uintptr_t)adr));
  if (!error) *base = (uintptr_t)first;
  return error;
}

static int exchange_capture_mode(int *mode) {
  CUstreamCaptureMode theirs = (CUstreamCaptureMode)*mode;
  int error = DRIVER(exchange_mode(&theirs));
  *mode = (int)theirs;
  return error;
}

/* ---- memory ---- */

static int device_malloc(void **adr, size_t nbytes) { return (int)cudaMalloc(adr, nbytes); }
static int device_free(void *adr) { return (int)cudaFree(adr); }
static int malloc_managed(void **adr, size_t nbytes) {
  return (int)cudaMallocManaged(adr, nbytes, cudaMemAttachGlobal);
}

#if CUDART_VERSION >= 13000
static struct cudaMemLocation on_device(int device) {
  return (struct cudaMemLocation){.type = cudaMemLocationTypeDevice, .id = device};
}
#else
static int on_device(int device) { return device; }
#endif

static int prefetch(void const *adr, size_t nbytes, int device, void *stream) {
#if CUDART_VERSION >= 13000
  return (int)cudaMemPrefetchAsync(adr, nbytes, on_device(device), 0, stream);
#else
  return (int)cudaMemPrefetchAsync(adr, nbytes, on_device(device), stream);
#endif
}

static int advise(void const *adr, size_t nbytes, umemCudaAdvice advice, int device) {
  static enum cudaMemoryAdvise const theirs[] = {
      [umemCudaPreferDevice] = cudaMemAdviseSetPreferredLocation,
      [umemCudaReadMostly] = cudaMemAdviseSetReadMostly,
      [umemCudaAccessedByDevice] = cudaMemAdviseSetAccessedBy,
  };
  return (int)cudaMemAdvise(adr, nbytes, theirs[advice], on_device(device));
}

static int host_alloc(void **adr, size_t nbytes, unsigned flags) {
  return (int)cudaHostAlloc(adr, nbytes, flags);
}
static int host_free(void *adr) { return (int)cudaFreeHost(adr); }
static int host_register(void *adr, size_t nbytes, unsigned flags) {
  return (int)cudaHostRegister(adr, nbytes, flags);
}
static int host_unregister(void *adr) { return (int)cudaHostUnregister(adr); }

/* ---- pools ---- */

static int pool_create(void **pool, int device, size_t most, bool shared) {
  struct cudaMemPoolProps properties = {
      .allocType = cudaMemAllocationTypePinned,
      .handleTypes = shared ? cudaMemHandleTypePosixFileDescriptor : cudaMemHandleTypeNone,
      .location = {.type = cudaMemLocationTypeDevice, .id = device},
      .maxSize = most,
  };
  return (int)cudaMemPoolCreate((cudaMemPool_t *)pool, &properties);
}

static int pool_destroy(void *pool) { return (int)cudaMemPoolDestroy(pool); }
static int pool_set_threshold(void *pool, uint64_t nbytes) {
  return (int)cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &nbytes);
}
static int pool_trim(void *pool, size_t keep) { return (int)cudaMemPoolTrimTo(pool, keep); }

static int pool_sizes(void *pool, uint64_t *reserved, uint64_t *used) {
  cudaError_t error = cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, reserved);
  if (error == cudaSuccess)
    error = cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, used);
  return (int)error;
}

static int pool_allow(void *pool, int device) {
  struct cudaMemAccessDesc access = {
      .location = {.type = cudaMemLocationTypeDevice, .id = device},
      .flags = cudaMemAccessFlagsProtReadWrite,
  };
  return (int)cudaMemPoolSetAccess(pool, &access, 1);
}

/* By the driver: the runtime looks up the current context once more, which takes as long as the
 * driver itself. */
static int pool_malloc(void **adr, size_t nbytes, void *pool, void *stream) {
  CUdeviceptr address = 0;
  int error = DRIVER(pool_malloc(&address, nbytes, pool, stream));
  if (!error) *adr = (void *)(uintptr_t)address;
  return error;
}
static int pool_free(void *adr, void *stream) {
  return DRIVER(pool_free((CUdeviceptr)(uintptr_t)adr, stream));
}

/* ---- pages ---- */

static CUmemAllocationProp page_of(int device, bool for_bus) {
  return (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                               .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
                               .allocFlags = {.gpuDirectRDMACapable = for_bus}};
}

static int page_size(size_t *nbytes, int device) {
  CUmemAllocationProp properties = page_of(device, false);
  return DRIVER(get_granularity(nbytes, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
}

static int range_reserve(void **adr, size_t nbytes, size_t alignment) {
  CUdeviceptr reserved = 0;
  int error = DRIVER(range_reserve(&reserved, nbytes, alignment, 0, 0));
  if (!error) *adr = (void *)reserved;
  return error;
}
static int range_free(void *adr, size_t nbytes) {
  return DRIVER(range_free((CUdeviceptr)adr, nbytes));
}

static int page_create(uint64_t *page, size_t nbytes, int device, bool for_bus) {
  CUmemAllocationProp properties = page_of(device, for_bus);
  CUmemGenericAllocationHandle created = 0;
  int error = DRIVER(page_create(&created, nbytes, &properties, 0));
  if (!error) *page = created;
  return error;
}

static int page_retain(uint64_t *page, void *adr) {
  CUmemGenericAllocationHandle retained = 0;
  int error = DRIVER(page_retain(&retained, adr));
  if (!error) *page = retained;
  return error;
}

static int page_release(uint64_t page) { return DRIVER(page_release(page)); }
static int page_map(void *adr, size_t nbytes, uint64_t page) {
  return DRIVER(page_map((CUdeviceptr)adr, nbytes, 0, page, 0));
}
static int page_unmap(void *adr, size_t nbytes) {
  return DRIVER(page_unmap((CUdeviceptr)adr, nbytes));
}

static int page_allow(void *adr, size_t nbytes, uint64_t devices) {
  CUmemAccessDesc access[64];
  size_t count = 0;
  for (int device = 0; device < 64; device++)
    if (devices >> device & 1)
      access[count++] =
          (CUmemAccessDesc){.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
                            .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  return DRIVER(page_access((CUdeviceptr)adr, nbytes, access, count));
}

/* ---- copies and sets ---- */

static int copy(void *dst, void const *src, size_t nbytes, umemCudaDirection direction) {
  return (int)cudaMemcpy(dst, src, nbytes, (enum cudaMemcpyKind)direction);
}

static int copy_async(void *dst, void const *src, size_t nbytes, umemCudaDirection direction,
                      void *stream) {
  return (int)cudaMemcpyAsync(dst, src, nbytes, (enum cudaMemcpyKind)direction, stream);
}

static int copy_peer_async(void *dst, int dst_device, void const *src, int src_device,
                           size_t nbytes, void *stream) {
  return (int)cudaMemcpyPeerAsync(dst, dst_device, src, src_device, nbytes, stream);
}

static struct cudaPitchedPtr pitched(void const *adr, size_t pitch, size_t width, size_t rows) {
  return (struct cudaPitchedPtr){.ptr = (void *)(uintptr_t)adr, pitch, width, rows};
}

static int copy_3d_async(umemCudaBox const *box, umemCudaDirection direction, void *stream) {
  struct cudaMemcpy3DParms parameters = {
      .srcPtr = pitched(box->src, box->src_pitch, box->width, box->src_rows),
      .dstPtr = pitched(box->dst, box->dst_pitch, box->width, box->dst_rows),
      .extent = {box->width, box->height, box->depth},
      .kind = (enum cudaMemcpyKind)direction,
  };
  return (int)cudaMemcpy3DAsync(&parameters, stream);
}

static int copy_box_async(umemCudaBox const *box, umemCudaDirection direction, void *stream) {
  umemCudaBox rows;
  if (box->depth > 1) return copy_3d_async(box, direction, stream);
  if (umemCudaBox_is_split(box, direction, &rows)) return copy_3d_async(&rows, direction, stream);
  return (int)cudaMemcpy2DAsync(box->dst, box->dst_pitch, box->src, box->src_pitch, box->width,
                                box->height, (enum cudaMemcpyKind)direction, stream);
}

static int copy_box_peer_async(umemCudaBox const *box, int dst_device, int src_device,
                               void *stream) {
  struct cudaMemcpy3DPeerParms parameters = {
      .srcPtr = pitched(box->src, box->src_pitch, box->width, box->src_rows),
      .srcDevice = src_device,
      .dstPtr = pitched(box->dst, box->dst_pitch, box->width, box->dst_rows),
      .dstDevice = dst_device,
      .extent = {box->width, box->height, box->depth},
  };
  return (int)cudaMemcpy3DPeerAsync(&parameters, stream);
}

static int set_async(void *adr, int c, size_t nbytes, void *stream) {
  return (int)cudaMemsetAsync(adr, c, nbytes, stream);
}

/* ---- streams and events ---- */

static int stream_create(void **stream) {
  return (int)cudaStreamCreateWithFlags((cudaStream_t *)stream, cudaStreamNonBlocking);
}
static int stream_destroy(void *stream) { return (int)cudaStreamDestroy(stream); }
static int stream_synchronize(void *stream) { return (int)cudaStreamSynchronize(stream); }
static int stream_wait(void *stream, void *event) {
  return (int)cudaStreamWaitEvent(stream, event, cudaEventWaitDefault);
}

static int stream_is_capturing(void *stream, umemCudaCapture *capture) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  int error = DRIVER(is_capturing(stream, &status));
  *capture = umemCudaCapture_of(error, (int)status);
  return error;
}

static int stream_capture(void *stream, umemCudaCapture *capture, uint64_t *id) {
  if (!id) return stream_is_capturing(stream, capture);
  enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long number = 0;
#if CUDART_VERSION >= 13000
  cudaError_t error = cudaStreamGetCaptureInfo(stream, &status, &number, NULL, NULL, NULL, NULL);
#else
  cudaError_t error = cudaStreamGetCaptureInfo_v2(stream, &status, &number, NULL, NULL, NULL);
#endif
  *capture = umemCudaCapture_of((int)error, (int)status);
  *id = number;
  return (int)error;
}

static int event_create(void **event) {
  return (int)cudaEventCreateWithFlags((cudaEvent_t *)event, cudaEventDisableTiming);
}
static int event_destroy(void *event) { return (int)cudaEventDestroy(event); }
static int event_record(void *event, void *stream) { return (int)cudaEventRecord(event, stream); }
static int event_synchronize(void *event) { return (int)cudaEventSynchronize(event); }

/* ---- other processes ---- */

_Static_assert(sizeof(umemCudaIpc) == sizeof(cudaIpcMemHandle_t), "cudaIpcMemHandle_t");
_Static_assert(sizeof(umemCudaIpc) == sizeof(cudaIpcEventHandle_t), "cudaIpcEventHandle_t");
_Static_assert(sizeof(umemCudaIpc) == sizeof(struct cudaMemPoolPtrExportData),
               "cudaMemPoolPtrExportData");

static int ipc_memory(umemCudaIpc *handle, void *adr) {
  cudaIpcMemHandle_t theirs;
  cudaError_t error = cudaIpcGetMemHandle(&theirs, adr);
  if (error == cudaSuccess) memcpy(handle, &theirs, sizeof theirs);
  return (int)error;
}

static int ipc_open(void **adr, umemCudaIpc const *handle) {
  cudaIpcMemHandle_t theirs;
  memcpy(&theirs, handle, sizeof theirs);
  return (int)cudaIpcOpenMemHandle(adr, theirs, cudaIpcMemLazyEnablePeerAccess);
}
static int ipc_close(void *adr) { return (int)cudaIpcCloseMemHandle(adr); }

static int ipc_event_create(void **event) {
  return (int)cudaEventCreateWithFlags((cudaEvent_t *)event,
                                       cudaEventDisableTiming | cudaEventInterprocess);
}

static int ipc_event(umemCudaIpc *handle, void *event) {
  cudaIpcEventHandle_t theirs;
  cudaError_t error = cudaIpcGetEventHandle(&theirs, event);
  if (error == cudaSuccess) memcpy(handle, &theirs, sizeof theirs);
  return (int)error;
}

static int ipc_event_open(void **event, umemCudaIpc const *handle) {
  cudaIpcEventHandle_t theirs;
  memcpy(&theirs, handle, sizeof theirs);
  return (int)cudaIpcOpenEventHandle((cudaEvent_t *)event, theirs);
}

static int pool_export(int *fd, void *pool) {
  return (int)cudaMemPoolExportToShareableHandle(fd, pool, cudaMemHandleTypePosixFileDescriptor, 0);
}

static int pool_import(void **pool, int fd) {
  return (int)cudaMemPoolImportFromShareableHandle((cudaMemPool_t *)pool, (void *)(uintptr_t)fd,
                                                   cudaMemHandleTypePosixFileDescriptor, 0);
}

static int pool_export_pointer(umemCudaIpc *data, void *adr) {
  struct cudaMemPoolPtrExportData theirs;
  cudaError_t error = cudaMemPoolExportPointer(&theirs, adr);
  if (error == cudaSuccess) memcpy(data, &theirs, sizeof theirs);
  return (int)error;
}

static int pool_import_pointer(void **adr, void *pool, umemCudaIpc const *data) {
  struct cudaMemPoolPtrExportData theirs;
  memcpy(&theirs, data, sizeof theirs);
  return (int)cudaMemPoolImportPointer(adr, pool, &theirs);
}

/* ---- the table ---- */

static char const *absence(void) { return NULL; }

static umemCudaRt const cuda = {
    .error_name = error_name,
    .error_string = error_string,
    .last_error = last_error,
    .driver_version = driver_version,
    .runtime_version = runtime_version,
    .device_count = device_count,
    .get_device = get_device,
    .attribute = attribute,
    .device_name = device_name,
    .memory_info = memory_info,
    .can_access_peer = can_access_peer,
    .pointer = pointer,
    .uuid = uuid,
    .bus_id = bus_id,
    .range = range,
    .context_current = context_current,
    .context_push = context_push,
    .context_pop = context_pop,
    .primary_retain = primary_retain,
    .primary_release = primary_release,
    .enable_peer_access = enable_peer_access,
    .exchange_capture_mode = exchange_capture_mode,
    .malloc = device_malloc,
    .free = device_free,
    .malloc_managed = malloc_managed,
    .prefetch = prefetch,
    .advise = advise,
    .host_alloc = host_alloc,
    .host_free = host_free,
    .host_register = host_register,
    .host_unregister = host_unregister,
    .pool_create = pool_create,
    .pool_destroy = pool_destroy,
    .pool_set_threshold = pool_set_threshold,
    .pool_trim = pool_trim,
    .pool_sizes = pool_sizes,
    .pool_allow = pool_allow,
    .pool_malloc = pool_malloc,
    .pool_free = pool_free,
    .page_size = page_size,
    .range_reserve = range_reserve,
    .range_free = range_free,
    .page_create = page_create,
    .page_retain = page_retain,
    .page_release = page_release,
    .page_map = page_map,
    .page_unmap = page_unmap,
    .page_allow = page_allow,
    .memcpy = copy,
    .memcpy_async = copy_async,
    .memcpy_peer_async = copy_peer_async,
    .memcpy_box_async = copy_box_async,
    .memcpy_box_peer_async = copy_box_peer_async,
    .memset_async = set_async,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .stream_device = stream_device,
    .stream_synchronize = stream_synchronize,
    .stream_wait = stream_wait,
    .stream_capture = stream_capture,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_synchronize = event_synchronize,
    .ipc_memory = ipc_memory,
    .ipc_open = ipc_open,
    .ipc_close = ipc_close,
    .ipc_event_create = ipc_event_create,
    .ipc_event = ipc_event,
    .ipc_event_open = ipc_event_open,
    .pool_export = pool_export,
    .pool_import = pool_import,
    .pool_export_pointer = pool_export_pointer,
    .pool_import_pointer = pool_import_pointer,
    .cufile = umemCufileRt_get,
    .absence = absence,
};

umemCudaRt const *umemCudaRt_get(void) { return replacement ? replacement : &cuda; }

#endif
