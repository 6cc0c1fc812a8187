/* cudriver.c - NVIDIA's driver as a library that exists in tests only, libcuda.so.1: its functions
 * ask the double of the runtime, of which the library has its own. */
#include "cuda/cuda_driver.h"
#include "cudart.h"
#include "doubles.h"

#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static umemCudaRt const *rt;

/* What doubles_use puts in place here. */
void umemCudaRt_replace(umemCudaRt const *table) { rt = table; }

__attribute__((constructor)) static void begin(void) { doubles_use(); }

/* How often primary contexts are retained. That is no complaint, because a program may keep a place
 * open: for the question they end. */
static unsigned retained[fakeCudartMost]; /* atomic */

EXPORT char const *fake_driver_complaint(void);
char const *fake_driver_complaint(void) {
  void *context;
  for (int d = 0; d < fakeCudartMost; d++)
    for (unsigned i = 0; i < retained[d]; i++) rt->primary_release(d);
  char const *complaint = doubles_complaint();
  for (int d = 0; d < fakeCudartMost; d++)
    for (unsigned i = 0; i < retained[d]; i++) rt->primary_retain(&context, d);
  return complaint;
}

/* Calls so far of a function of the table, by its member's name. */
EXPORT unsigned long fake_driver_calls(char const *function);
unsigned long fake_driver_calls(char const *function) { return fake_cudart_calls_of(function); }

/* FUNCTION(name, parameters) { ... } */
#define FUNCTION(name, ...)                                                                        \
  EXPORT int name(__VA_ARGS__);                                                                    \
  int name(__VA_ARGS__)

static void *pointer_to(umemCuAddress adr) { return (void *)(uintptr_t)adr; }

/* ---- errors and devices ---- */

FUNCTION(cuInit, unsigned flags) { return (int)flags; }
FUNCTION(cuDriverGetVersion, int *version) { return rt->driver_version(version); }
FUNCTION(cuGetErrorName, int error, char const **name) {
  *name = rt->error_name(error);
  return 0;
}
FUNCTION(cuGetErrorString, int error, char const **text) {
  *text = rt->error_string(error);
  return 0;
}
FUNCTION(cuDeviceGetCount, int *count) { return rt->device_count(count); }
FUNCTION(cuDeviceGetName, char *name, int size, int device) {
  return rt->device_name(name, (size_t)size, device);
}
FUNCTION(cuDeviceGetAttribute, int *value, int attribute, int device) {
  switch (attribute) {
  case umemCuManagedMemory:
    return rt->attribute(value, umemCudaHasManaged, device);
  case umemCuConcurrentManaged:
    return rt->attribute(value, umemCudaConcurrentManaged, device);
  case umemCuMemoryPools:
    return rt->attribute(value, umemCudaHasPools, device);
  case umemCuVirtualMemory:
    return rt->attribute(value, umemCudaHasPages, device);
  case umemCuRdmaWithVirtualMemory:
    return rt->attribute(value, umemCudaBusReachesPages, device);
  case umemCuPoolHandles:
    return rt->attribute(value, umemCudaSharesPools, device);
  default:
    return umemCudaInvalidValue;
  }
}
FUNCTION(cuDeviceCanAccessPeer, int *can, int device, int peer) {
  return rt->can_access_peer(can, device, peer);
}
FUNCTION(cuDeviceGetUuid_v2, umemCuUuid *id, int device) {
  uint64_t words[2];
  int error = rt->uuid(words, device);
  if (!error) memcpy(id, words, sizeof words);
  return error;
}
FUNCTION(cuDeviceGetPCIBusId, char *text, int size, int device) {
  return rt->bus_id(text, (size_t)size, device);
}
FUNCTION(cuMemGetAddressRange_v2, void **base, size_t *nbytes, umemCuAddress adr) {
  uintptr_t first = 0;
  int error = rt->range(pointer_to(adr), &first, nbytes);
  if (!error) *base = (void *)first;
  return error;
}
FUNCTION(cuMemGetInfo_v2, size_t *available, size_t *capacity) {
  return rt->memory_info(available, capacity);
}

FUNCTION(cuPointerGetAttributes, unsigned count, int *which, void **values, umemCuAddress adr) {
  umemCudaMemory kind = umemCudaUnregistered;
  int device = -1, error = rt->pointer(pointer_to(adr), &kind, &device);
  for (unsigned i = 0; i < count && !error; i++)
    if (which[i] == umemCuMemoryType)
      *(unsigned *)values[i] = kind == umemCudaManagedMemory ? umemCuDevice : (unsigned)kind;
    else if (which[i] == umemCuIsManaged)
      *(unsigned *)values[i] = kind == umemCudaManagedMemory;
    else if (which[i] == umemCuDeviceOrdinal)
      *(int *)values[i] = device;
    else
      error = umemCudaInvalidValue;
  return error;
}

/* ---- contexts ---- */

FUNCTION(cuDevicePrimaryCtxRetain, void **context, int device) {
  int error = rt->primary_retain(context, device);
  if (!error) __atomic_fetch_add(&retained[device], 1, __ATOMIC_RELAXED);
  return error;
}
FUNCTION(cuDevicePrimaryCtxRelease_v2, int device) {
  int error = rt->primary_release(device);
  if (!error) __atomic_fetch_sub(&retained[device], 1, __ATOMIC_RELAXED);
  return error;
}
FUNCTION(cuCtxGetCurrent, void **context) { return rt->context_current(context); }
FUNCTION(cuCtxPushCurrent_v2, void *context) { return rt->context_push(context); }
FUNCTION(cuCtxPopCurrent_v2, void **context) { return rt->context_pop(context); }
FUNCTION(cuCtxGetDevice, int *device) { return rt->get_device(device); }
FUNCTION(cuThreadExchangeStreamCaptureMode, int *mode) { return rt->exchange_capture_mode(mode); }

/* The device of a context. */
static int device_of(void *context, int *device) {
  int error = rt->context_push(context);
  if (error) return error;
  error = rt->get_device(device);
  rt->context_pop(&context);
  return error;
}

FUNCTION(cuCtxEnablePeerAccess, void *context, unsigned flags) {
  int peer = 0, error = flags ? umemCudaInvalidValue : device_of(context, &peer);
  return error ? error : rt->enable_peer_access(peer);
}

/* ---- memory ---- */

static int allocated(int error, void *const *adr, void **address) {
  if (!error) *address = *adr;
  return error;
}

FUNCTION(cuMemAlloc_v2, void **address, size_t nbytes) {
  void *adr = NULL;
  return allocated(rt->malloc(&adr, nbytes), &adr, address);
}
FUNCTION(cuMemFree_v2, umemCuAddress adr) { return rt->free(pointer_to(adr)); }
FUNCTION(cuMemAllocManaged, void **address, size_t nbytes, unsigned flags) {
  void *adr = NULL;
  if (flags != umemCuAttachGlobal) return umemCudaInvalidValue;
  return allocated(rt->malloc_managed(&adr, nbytes), &adr, address);
}
FUNCTION(cuMemPrefetchAsync, umemCuAddress adr, size_t nbytes, int device, void *stream) {
  return rt->prefetch(pointer_to(adr), nbytes, device, stream);
}
FUNCTION(cuMemAdvise, umemCuAddress adr, size_t nbytes, int advice, int device) {
  umemCudaAdvice ours = advice == umemCuReadMostly   ? umemCudaReadMostly
                        : advice == umemCuAccessedBy ? umemCudaAccessedByDevice
                                                     : umemCudaPreferDevice;
  return rt->advise(pointer_to(adr), nbytes, ours, device);
}
FUNCTION(cuMemHostAlloc, void **adr, size_t nbytes, unsigned flags) {
  return rt->host_alloc(adr, nbytes, flags);
}
FUNCTION(cuMemFreeHost, void *adr) { return rt->host_free(adr); }
FUNCTION(cuMemHostRegister_v2, void *adr, size_t nbytes, unsigned flags) {
  return rt->host_register(adr, nbytes, flags);
}
FUNCTION(cuMemHostUnregister, void *adr) { return rt->host_unregister(adr); }

/* ---- pools ---- */

FUNCTION(cuMemPoolCreate, void **pool, umemCuPoolProps const *properties) {
  bool shared = properties->handles == umemCuByDescriptor;
  if (properties->allocation != umemCuPinnedAllocation ||
      properties->location.type != umemCuOnDevice || (properties->handles && !shared))
    return umemCudaInvalidValue;
  return rt->pool_create(pool, properties->location.id, properties->most, shared);
}
FUNCTION(cuMemPoolDestroy, void *pool) { return rt->pool_destroy(pool); }
FUNCTION(cuMemPoolSetAttribute, void *pool, int attribute, void *value) {
  if (attribute != umemCuReleaseThreshold) return umemCudaInvalidValue;
  return rt->pool_set_threshold(pool, *(uint64_t *)value);
}
FUNCTION(cuMemPoolGetAttribute, void *pool, int attribute, void *value) {
  uint64_t reserved = 0, used = 0;
  int error = rt->pool_sizes(pool, &reserved, &used);
  if (attribute != umemCuReserved && attribute != umemCuUsed) return umemCudaInvalidValue;
  if (!error) *(uint64_t *)value = attribute == umemCuReserved ? reserved : used;
  return error;
}
FUNCTION(cuMemPoolTrimTo, void *pool, size_t keep) { return rt->pool_trim(pool, keep); }
FUNCTION(cuMemPoolSetAccess, void *pool, umemCuAccess const *access, size_t count) {
  int error = umemCudaSuccess;
  for (size_t i = 0; i < count && !error; i++)
    error = access[i].flags == umemCuReadWrite ? rt->pool_allow(pool, access[i].location.id)
                                               : umemCudaInvalidValue;
  return error;
}
FUNCTION(cuMemAllocFromPoolAsync, void **address, size_t nbytes, void *pool, void *stream) {
  void *adr = NULL;
  return allocated(rt->pool_malloc(&adr, nbytes, pool, stream), &adr, address);
}
FUNCTION(cuMemFreeAsync, umemCuAddress adr, void *stream) {
  return rt->pool_free(pointer_to(adr), stream);
}

/* ---- pages ---- */

static bool is_plain_page(umemCuPageProps const *page) {
  return page->allocation == umemCuPinnedAllocation && page->location.type == umemCuOnDevice &&
         !page->handles && !page->security;
}

FUNCTION(cuMemGetAllocationGranularity, size_t *nbytes, umemCuPageProps const *page, int which) {
  if (which != umemCuLeastGranularity || !is_plain_page(page)) return umemCudaInvalidValue;
  return rt->page_size(nbytes, page->location.id);
}
FUNCTION(cuMemAddressReserve, void **address, size_t nbytes, size_t alignment, umemCuAddress wanted,
         unsigned long long flags) {
  void *adr = NULL;
  if (wanted || flags) return umemCudaInvalidValue;
  return allocated(rt->range_reserve(&adr, nbytes, alignment), &adr, address);
}
FUNCTION(cuMemAddressFree, umemCuAddress adr, size_t nbytes) {
  return rt->range_free(pointer_to(adr), nbytes);
}
FUNCTION(cuMemCreate, umemCuPage *page, size_t nbytes, umemCuPageProps const *properties,
         unsigned long long flags) {
  uint64_t created = 0;
  if (flags || !is_plain_page(properties)) return umemCudaInvalidValue;
  int error =
      rt->page_create(&created, nbytes, properties->location.id, properties->flags.rdma != 0);
  if (!error) *page = created;
  return error;
}
FUNCTION(cuMemRetainAllocationHandle, umemCuPage *page, void *adr) {
  uint64_t mapped = 0;
  int error = rt->page_retain(&mapped, adr);
  if (!error) *page = mapped;
  return error;
}
FUNCTION(cuMemRelease, umemCuPage page) { return rt->page_release(page); }
FUNCTION(cuMemMap, umemCuAddress adr, size_t nbytes, size_t offset, umemCuPage page,
         unsigned long long flags) {
  return offset || flags ? umemCudaInvalidValue : rt->page_map(pointer_to(adr), nbytes, page);
}
FUNCTION(cuMemUnmap, umemCuAddress adr, size_t nbytes) {
  return rt->page_unmap(pointer_to(adr), nbytes);
}
FUNCTION(cuMemSetAccess, umemCuAddress adr, size_t nbytes, umemCuAccess const *access,
         size_t count) {
  uint64_t devices = 0;
  for (size_t i = 0; i < count; i++)
    if (access[i].flags == umemCuReadWrite && access[i].location.type == umemCuOnDevice)
      devices |= (uint64_t)1 << access[i].location.id;
    else
      return umemCudaInvalidValue;
  return rt->page_allow(pointer_to(adr), nbytes, devices);
}

/* ---- copies and sets ---- */

FUNCTION(cuMemcpy, umemCuAddress dst, umemCuAddress src, size_t nbytes) {
  return rt->memcpy(pointer_to(dst), pointer_to(src), nbytes, umemCudaAnyDirection);
}
FUNCTION(cuMemcpyHtoD_v2, umemCuAddress dst, void const *src, size_t nbytes) {
  return rt->memcpy(pointer_to(dst), src, nbytes, umemCudaToDevice);
}
FUNCTION(cuMemcpyDtoH_v2, void *dst, umemCuAddress src, size_t nbytes) {
  return rt->memcpy(dst, pointer_to(src), nbytes, umemCudaToHost);
}
FUNCTION(cuMemcpyDtoD_v2, umemCuAddress dst, umemCuAddress src, size_t nbytes) {
  return rt->memcpy(pointer_to(dst), pointer_to(src), nbytes, umemCudaWithinDevice);
}
FUNCTION(cuMemcpyAsync, umemCuAddress dst, umemCuAddress src, size_t nbytes, void *stream) {
  return rt->memcpy_async(pointer_to(dst), pointer_to(src), nbytes, umemCudaAnyDirection, stream);
}
FUNCTION(cuMemcpyHtoDAsync_v2, umemCuAddress dst, void const *src, size_t nbytes, void *stream) {
  return rt->memcpy_async(pointer_to(dst), src, nbytes, umemCudaToDevice, stream);
}
FUNCTION(cuMemcpyDtoHAsync_v2, void *dst, umemCuAddress src, size_t nbytes, void *stream) {
  return rt->memcpy_async(dst, pointer_to(src), nbytes, umemCudaToHost, stream);
}
FUNCTION(cuMemcpyDtoDAsync_v2, umemCuAddress dst, umemCuAddress src, size_t nbytes, void *stream) {
  return rt->memcpy_async(pointer_to(dst), pointer_to(src), nbytes, umemCudaWithinDevice, stream);
}
FUNCTION(cuMemcpyPeerAsync, umemCuAddress dst, void *dst_context, umemCuAddress src,
         void *src_context, size_t nbytes, void *stream) {
  int from = 0, to = 0, error = device_of(src_context, &from);
  if (!error) error = device_of(dst_context, &to);
  if (error) return error;
  return rt->memcpy_peer_async(pointer_to(dst), to, pointer_to(src), from, nbytes, stream);
}

static umemCudaDirection direction_of(int src_type, int dst_type) {
  return src_type == umemCuUnified ? umemCudaAnyDirection
         : src_type == umemCuHost  ? umemCudaToDevice
         : dst_type == umemCuHost  ? umemCudaToHost
                                   : umemCudaWithinDevice;
}

static void const *address_of(int type, void const *host, umemCuAddress device) {
  return type == umemCuHost ? host : pointer_to(device);
}

/* The box that a umemCuCopy2D or umemCuCopy3D describes. */
#define BOX_OF(copy, rows_of_src, rows_of_dst, planes)                                             \
  {                                                                                                \
    .src = address_of((copy)->src.type, (copy)->src.host, (copy)->src.device),                     \
    .src_pitch = (copy)->src.pitch, .src_rows = rows_of_src,                                       \
    .dst = (void *)(uintptr_t)address_of((copy)->dst.type, (copy)->dst.host, (copy)->dst.device),  \
    .dst_pitch = (copy)->dst.pitch, .dst_rows = rows_of_dst, .width = (copy)->width,               \
    .height = (copy)->height, .depth = planes                                                      \
  }

FUNCTION(cuMemcpy2DAsync_v2, umemCuCopy2D const *copy, void *stream) {
  umemCudaBox box = BOX_OF(copy, copy->height, copy->height, 1);
  return rt->memcpy_box_async(&box, direction_of(copy->src.type, copy->dst.type), stream);
}

FUNCTION(cuMemcpy3DAsync_v2, umemCuCopy3D const *copy, void *stream) {
  umemCudaBox box = BOX_OF(copy, copy->src.height, copy->dst.height, copy->depth);
  return rt->memcpy_box_async(&box, direction_of(copy->src.type, copy->dst.type), stream);
}
FUNCTION(cuMemcpy3DPeerAsync, umemCuCopy3D const *copy, void *stream) {
  umemCudaBox box = BOX_OF(copy, copy->src.height, copy->dst.height, copy->depth);
  int from = 0, to = 0, error = device_of(copy->src.context, &from);
  if (!error) error = device_of(copy->dst.context, &to);
  return error ? error : rt->memcpy_box_peer_async(&box, to, from, stream);
}

FUNCTION(cuMemsetD8Async, umemCuAddress adr, unsigned char c, size_t nbytes, void *stream) {
  return rt->memset_async(pointer_to(adr), c, nbytes, stream);
}

/* ---- streams and events ---- */

FUNCTION(cuStreamCreate, void **stream, unsigned flags) {
  return flags == umemCuNonBlocking ? rt->stream_create(stream) : umemCudaInvalidValue;
}
FUNCTION(cuStreamDestroy_v2, void *stream) { return rt->stream_destroy(stream); }
FUNCTION(cuStreamSynchronize, void *stream) { return rt->stream_synchronize(stream); }
FUNCTION(cuStreamWaitEvent, void *stream, void *event, unsigned flags) {
  return flags ? umemCudaInvalidValue : rt->stream_wait(stream, event);
}
FUNCTION(cuStreamGetCtx, void *stream, void **context) {
  int device = 0, error = rt->stream_device(stream, &device);
  if (!error) error = rt->primary_retain(context, device);
  return error ? error : rt->primary_release(device);
}
FUNCTION(cuStreamIsCapturing, void *stream, int *status) {
  umemCudaCapture capture = umemCudaNoCapture;
  int error = rt->stream_capture(stream, &capture, NULL);
  *status = (int)capture;
  return error;
}
FUNCTION(cuStreamGetCaptureInfo_v2, void *stream, int *status, uint64_t *id, void **graph,
         void const **dependencies, size_t *count) {
  umemCudaCapture capture = umemCudaNoCapture;
  int error = graph || dependencies || count ? umemCudaInvalidValue
                                             : rt->stream_capture(stream, &capture, id);
  *status = (int)capture;
  return error;
}
FUNCTION(cuEventCreate, void **event, unsigned flags) {
  if (flags == (umemCuDisableTiming | umemCuInterprocess)) return rt->ipc_event_create(event);
  return flags == umemCuDisableTiming ? rt->event_create(event) : umemCudaInvalidValue;
}
FUNCTION(cuEventDestroy_v2, void *event) { return rt->event_destroy(event); }
FUNCTION(cuEventRecord, void *event, void *stream) { return rt->event_record(event, stream); }
FUNCTION(cuEventSynchronize, void *event) { return rt->event_synchronize(event); }
FUNCTION(cuEventQuery, void *event) { return rt->event_query(event); }

/* ---- other processes ---- */

_Static_assert(sizeof(umemCuIpc) == sizeof(umemCudaIpc), "handles have 64 bytes");

static umemCudaIpc ipc_of(umemCuIpc const *handle) {
  umemCudaIpc ours;
  memcpy(&ours, handle, sizeof ours);
  return ours;
}

FUNCTION(cuIpcGetMemHandle, umemCuIpc *handle, umemCuAddress adr) {
  return rt->ipc_memory((umemCudaIpc *)(void *)handle, pointer_to(adr));
}
FUNCTION(cuIpcOpenMemHandle_v2, void **address, umemCuIpc handle, unsigned flags) {
  void *adr = NULL;
  umemCudaIpc ours = ipc_of(&handle);
  if (flags != umemCuLazyPeerAccess) return umemCudaInvalidValue;
  return allocated(rt->ipc_open(&adr, &ours), &adr, address);
}
FUNCTION(cuIpcCloseMemHandle, umemCuAddress adr) { return rt->ipc_close(pointer_to(adr)); }
FUNCTION(cuIpcGetEventHandle, umemCuIpc *handle, void *event) {
  return rt->ipc_event((umemCudaIpc *)(void *)handle, event);
}
FUNCTION(cuIpcOpenEventHandle, void **event, umemCuIpc handle) {
  umemCudaIpc ours = ipc_of(&handle);
  return rt->ipc_event_open(event, &ours);
}
FUNCTION(cuMemPoolExportToShareableHandle, void *fd, void *pool, int type,
         unsigned long long flags) {
  return type != umemCuByDescriptor || flags ? umemCudaInvalidValue : rt->pool_export(fd, pool);
}
FUNCTION(cuMemPoolImportFromShareableHandle, void **pool, void *fd, int type,
         unsigned long long flags) {
  bool good = type == umemCuByDescriptor && !flags;
  return good ? rt->pool_import(pool, (int)(intptr_t)fd) : umemCudaInvalidValue;
}
FUNCTION(cuMemPoolExportPointer, umemCuIpc *data, umemCuAddress adr) {
  return rt->pool_export_pointer((umemCudaIpc *)(void *)data, pointer_to(adr));
}
FUNCTION(cuMemPoolImportPointer, void **address, void *pool, umemCuIpc const *data) {
  void *adr = NULL;
  umemCudaIpc ours = ipc_of(data);
  return allocated(rt->pool_import_pointer(&adr, pool, &ours), &adr, address);
}
