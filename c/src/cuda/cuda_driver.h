/* cuda_driver.h - the functions of NVIDIA's driver that umem calls, and what it passes to them:
 * their binary interface since CUDA 12.0.
 *
 * test/compile/cuda_layout.c compares it with cuda.h. Contexts, pools, streams and events
 * are pointers; a device is an int, its number. */
#ifndef UMEM_CUDA_DRIVER_H
#define UMEM_CUDA_DRIVER_H

#include <stddef.h>
#include <stdint.h>

typedef void const *umemCuAddress; /* CUdeviceptr, a number of as many bits; results are void * */

/* CUmemorytype */
enum { umemCuHost = 1, umemCuDevice = 2, umemCuUnified = 4 };

enum {
  umemCuNonBlocking = 1,   /* CU_STREAM_NON_BLOCKING */
  umemCuDisableTiming = 2, /* CU_EVENT_DISABLE_TIMING */
  umemCuInterprocess = 4,  /* CU_EVENT_INTERPROCESS */
  umemCuAttachGlobal = 1   /* CU_MEM_ATTACH_GLOBAL */
};

/* CUdevice_attribute */
enum {
  umemCuManagedMemory = 83,
  umemCuConcurrentManaged = 89,
  umemCuVirtualMemory = 102,
  umemCuRdmaWithVirtualMemory = 110,
  umemCuMemoryPools = 115,
  umemCuPoolHandles = 119 /* CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES */
};

enum {
  umemCuLazyPeerAccess = 1, /* CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS */
  umemCuByDescriptor = 1    /* CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR */
};

/* CUipcMemHandle, CUipcEventHandle, CUmemPoolPtrExportData; the first two are passed by value */
typedef struct umemCuIpc {
  char reserved[64];
} umemCuIpc;

/* CUuuid */
typedef struct umemCuUuid {
  char bytes[16];
} umemCuUuid;

/* CUpointer_attribute; an unsigned int, an unsigned int that is 0 or 1, and an int */
enum { umemCuMemoryType = 2, umemCuIsManaged = 8, umemCuDeviceOrdinal = 9 };

/* CUmem_advise */
enum { umemCuReadMostly = 1, umemCuPreferredLocation = 3, umemCuAccessedBy = 5 };

/* CUmemPool_attribute; of type uint64_t */
enum { umemCuReleaseThreshold = 4, umemCuReserved = 5, umemCuUsed = 7 };

/* CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE */
enum { umemCuPinnedAllocation = 1, umemCuOnDevice = 1, umemCuReadWrite = 3 };

/* One side of a copy of a box: the first members of CUDA_MEMCPY3D for the source, the next ones for
 * the destination. In CUDA_MEMCPY3D_PEER context is its context; otherwise it is NULL. */
typedef struct umemCuSide {
  size_t x, y, z, level;
  int type;
  void const *host;
  umemCuAddress device;
  void *array, *context;
  size_t pitch, height;
} umemCuSide;

/* CUDA_MEMCPY3D, CUDA_MEMCPY3D_PEER */
typedef struct umemCuCopy3D {
  umemCuSide src, dst;
  size_t width, height, depth;
} umemCuCopy3D;

/* CUDA_MEMCPY2D */
typedef struct umemCuPlane {
  size_t x, y;
  int type;
  void const *host;
  umemCuAddress device;
  void *array;
  size_t pitch;
} umemCuPlane;
typedef struct umemCuCopy2D {
  umemCuPlane src, dst;
  size_t width, height;
} umemCuCopy2D;

/* CUmemLocation */
typedef struct umemCuLocation {
  int type, id;
} umemCuLocation;

/* CUmemPoolProps */
typedef struct umemCuPoolProps {
  int allocation, handles;
  umemCuLocation location;
  void *security;
  size_t most;
  unsigned short usage;
  unsigned char reserved[54];
} umemCuPoolProps;

/* CUmemGenericAllocationHandle */
typedef uint64_t umemCuPage;

/* CUmemAllocationProp */
typedef struct umemCuPageProps {
  int allocation, handles;
  umemCuLocation location;
  void *security;
  struct {
    unsigned char compression, rdma;
    unsigned short usage;
    unsigned char reserved[4];
  } flags;
} umemCuPageProps;

enum { umemCuLeastGranularity = 0 }; /* CU_MEM_ALLOC_GRANULARITY_MINIMUM */

/* CUmemAccessDesc */
typedef struct umemCuAccess {
  umemCuLocation location;
  int flags;
} umemCuAccess;

/* CUmemcpyAttributes */
typedef struct umemCuBatch {
  int order; /* in which sources are read: CUmemcpySrcAccessOrder */
  umemCuLocation src, dst;
  unsigned flags;
} umemCuBatch;

enum { umemCuInStreamOrder = 1 }; /* CU_MEMCPY_SRC_ACCESS_ORDER_STREAM */

/* cuMemcpyBatchAsync of CUDA 12.8, which older drivers lack. */
typedef int umemCuCopyBatch(void *const *dst, void const *const *src, size_t const *nbytes,
                            size_t count, umemCuBatch *attributes, size_t *first_of_attribute,
                            size_t attribute_count, size_t *failed, void *stream);

/* ---- functions ---- */

/* They have the names of their binary interfaces, with "_v2" where CUDA has changed one: a driver
 * keeps those of all versions before. */

/* Those that fill a member of umemCudaRt as they are, because their parameters are its own:
 * SLOT(member, name in the library) */
#define UMEM_CU_SLOTS(SLOT)                                                                        \
  SLOT(driver_version, cuDriverGetVersion)                                                         \
  SLOT(can_access_peer, cuDeviceCanAccessPeer)                                                     \
  SLOT(memory_info, cuMemGetInfo_v2)                                                               \
  SLOT(uuid, cuDeviceGetUuid_v2)                                                                   \
  SLOT(context_push, cuCtxPushCurrent_v2)                                                          \
  SLOT(context_pop, cuCtxPopCurrent_v2)                                                            \
  SLOT(primary_release, cuDevicePrimaryCtxRelease_v2)                                              \
  SLOT(exchange_capture_mode, cuThreadExchangeStreamCaptureMode)                                   \
  SLOT(malloc, cuMemAlloc_v2)                                                                      \
  SLOT(free, cuMemFree_v2)                                                                         \
  SLOT(prefetch, cuMemPrefetchAsync)                                                               \
  SLOT(host_alloc, cuMemHostAlloc)                                                                 \
  SLOT(host_free, cuMemFreeHost)                                                                   \
  SLOT(host_register, cuMemHostRegister_v2)                                                        \
  SLOT(host_unregister, cuMemHostUnregister)                                                       \
  SLOT(pool_destroy, cuMemPoolDestroy)                                                             \
  SLOT(pool_trim, cuMemPoolTrimTo)                                                                 \
  SLOT(pool_malloc, cuMemAllocFromPoolAsync)                                                       \
  SLOT(pool_free, cuMemFreeAsync)                                                                  \
  SLOT(range_free, cuMemAddressFree)                                                               \
  SLOT(page_retain, cuMemRetainAllocationHandle)                                                   \
  SLOT(page_release, cuMemRelease)                                                                 \
  SLOT(page_unmap, cuMemUnmap)                                                                     \
  SLOT(ipc_memory, cuIpcGetMemHandle)                                                              \
  SLOT(ipc_close, cuIpcCloseMemHandle)                                                             \
  SLOT(ipc_event, cuIpcGetEventHandle)                                                             \
  SLOT(pool_export_pointer, cuMemPoolExportPointer)                                                \
  SLOT(pool_import_pointer, cuMemPoolImportPointer)                                                \
  SLOT(stream_destroy, cuStreamDestroy_v2)                                                         \
  SLOT(stream_synchronize, cuStreamSynchronize)                                                    \
  SLOT(event_destroy, cuEventDestroy_v2)                                                           \
  SLOT(event_record, cuEventRecord)                                                                \
  SLOT(event_synchronize, cuEventSynchronize)                                                      \
  SLOT(event_query, cuEventQuery)

/* Those that cuda_driver.c calls: FUNCTION(name here, name in the library, parameters) */
#define UMEM_CU_FUNCTIONS(FUNCTION)                                                                \
  FUNCTION(init, cuInit, (unsigned))                                                               \
  FUNCTION(get_name, cuGetErrorName, (int, char const **))                                         \
  FUNCTION(get_string, cuGetErrorString, (int, char const **))                                     \
  FUNCTION(get_count, cuDeviceGetCount, (int *))                                                   \
  FUNCTION(device_get_name, cuDeviceGetName, (char *, int, int))                                   \
  FUNCTION(device_get_attribute, cuDeviceGetAttribute, (int *, int, int))                          \
  FUNCTION(retain, cuDevicePrimaryCtxRetain, (void **, int))                                       \
  FUNCTION(get_current, cuCtxGetCurrent, (void **))                                                \
  FUNCTION(context_device, cuCtxGetDevice, (int *))                                                \
  FUNCTION(enable_access, cuCtxEnablePeerAccess, (void *, unsigned))                               \
  FUNCTION(get_attributes, cuPointerGetAttributes, (unsigned, int *, void **, umemCuAddress))      \
  FUNCTION(get_bus_id, cuDeviceGetPCIBusId, (char *, int, int))                                    \
  FUNCTION(get_range, cuMemGetAddressRange_v2, (void **, size_t *, umemCuAddress))                 \
  FUNCTION(alloc_managed, cuMemAllocManaged, (void **, size_t, unsigned))                          \
  FUNCTION(advise, cuMemAdvise, (umemCuAddress, size_t, int, int))                                 \
  FUNCTION(pool_create, cuMemPoolCreate, (void **, umemCuPoolProps const *))                       \
  FUNCTION(pool_set, cuMemPoolSetAttribute, (void *, int, void *))                                 \
  FUNCTION(pool_get, cuMemPoolGetAttribute, (void *, int, void *))                                 \
  FUNCTION(pool_access, cuMemPoolSetAccess, (void *, umemCuAccess const *, size_t))                \
  FUNCTION(get_granularity, cuMemGetAllocationGranularity,                                         \
           (size_t *, umemCuPageProps const *, int))                                               \
  FUNCTION(range_reserve, cuMemAddressReserve,                                                     \
           (void **, size_t, size_t, umemCuAddress, unsigned long long))                           \
  FUNCTION(page_create, cuMemCreate,                                                               \
           (umemCuPage *, size_t, umemCuPageProps const *, unsigned long long))                    \
  FUNCTION(page_map, cuMemMap, (umemCuAddress, size_t, size_t, umemCuPage, unsigned long long))    \
  FUNCTION(page_access, cuMemSetAccess, (umemCuAddress, size_t, umemCuAccess const *, size_t))     \
  FUNCTION(ipc_open, cuIpcOpenMemHandle_v2, (void **, umemCuIpc, unsigned))                        \
  FUNCTION(ipc_event_open, cuIpcOpenEventHandle, (void **, umemCuIpc))                             \
  FUNCTION(pool_export, cuMemPoolExportToShareableHandle,                                          \
           (void *, void *, int, unsigned long long))                                              \
  FUNCTION(pool_import, cuMemPoolImportFromShareableHandle,                                        \
           (void **, void *, int, unsigned long long))                                             \
  FUNCTION(copy, cuMemcpy, (umemCuAddress, umemCuAddress, size_t))                                 \
  FUNCTION(copy_in, cuMemcpyHtoD_v2, (umemCuAddress, void const *, size_t))                        \
  FUNCTION(copy_out, cuMemcpyDtoH_v2, (void *, umemCuAddress, size_t))                             \
  FUNCTION(copy_within, cuMemcpyDtoD_v2, (umemCuAddress, umemCuAddress, size_t))                   \
  FUNCTION(copy_async, cuMemcpyAsync, (umemCuAddress, umemCuAddress, size_t, void *))              \
  FUNCTION(copy_in_async, cuMemcpyHtoDAsync_v2, (umemCuAddress, void const *, size_t, void *))     \
  FUNCTION(copy_out_async, cuMemcpyDtoHAsync_v2, (void *, umemCuAddress, size_t, void *))          \
  FUNCTION(copy_within_async, cuMemcpyDtoDAsync_v2,                                                \
           (umemCuAddress, umemCuAddress, size_t, void *))                                         \
  FUNCTION(copy_peer_async, cuMemcpyPeerAsync,                                                     \
           (umemCuAddress, void *, umemCuAddress, void *, size_t, void *))                         \
  FUNCTION(copy_2d_async, cuMemcpy2DAsync_v2, (umemCuCopy2D const *, void *))                      \
  FUNCTION(copy_3d_async, cuMemcpy3DAsync_v2, (umemCuCopy3D const *, void *))                      \
  FUNCTION(copy_3d_peer_async, cuMemcpy3DPeerAsync, (umemCuCopy3D const *, void *))                \
  FUNCTION(set_async, cuMemsetD8Async, (umemCuAddress, unsigned char, size_t, void *))             \
  FUNCTION(stream_create, cuStreamCreate, (void **, unsigned))                                     \
  FUNCTION(stream_context, cuStreamGetCtx, (void *, void **))                                      \
  FUNCTION(stream_wait, cuStreamWaitEvent, (void *, void *, unsigned))                             \
  FUNCTION(is_capturing, cuStreamIsCapturing, (void *, int *))                                     \
  FUNCTION(capture_info, cuStreamGetCaptureInfo_v2,                                                \
           (void *, int *, uint64_t *, void **, void const **, size_t *))                          \
  FUNCTION(event_create, cuEventCreate, (void **, unsigned))

#endif
