/* cudart_device.c - the CUDA double: errors, devices, contexts, and the table. */
#include "cudart_state.h"
#include "cufile.h"

#include <stdio.h>

/* ---- errors ---- */

static struct {
  int error;
  char const *name, *string;
} const errors[] = {
    {umemCudaSuccess, "cudaSuccess", "no error"},
    {umemCudaInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {umemCudaOutOfMemory, "cudaErrorMemoryAllocation", "out of memory"},
    {umemCudaInitializationError, "cudaErrorInitializationError", "initialization error"},
    {umemCudaUnloading, "cudaErrorCudartUnloading", "driver shutting down"},
    {cudartInvalidPitch, "cudaErrorInvalidPitchValue", "invalid pitch argument"},
    {umemCudaStubLibrary, "cudaErrorStubLibrary", "CUDA driver is a stub library"},
    {umemCudaInsufficientDriver, "cudaErrorInsufficientDriver",
     "CUDA driver version is insufficient for CUDA runtime version"},
    {umemCudaNoGpu, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {umemCudaInvalidOrdinal, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {umemCudaInvalidContext, "cudaErrorDeviceUninitialized", "invalid device context"},
    {cudartPeerUnsupported, "cudaErrorPeerAccessUnsupported",
     "peer access is not supported between these two devices"},
    {umemCudaInvalidHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {umemCudaNotReady, "cudaErrorNotReady", "device not ready"},
    {umemCudaIllegalAddress, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
    {umemCudaPeerAlreadyEnabled, "cudaErrorPeerAccessAlreadyEnabled",
     "peer access is already enabled"},
    {umemCudaContextDestroyed, "cudaErrorContextIsDestroyed", "context is destroyed"},
    {umemCudaAssert, "cudaErrorAssert", "device-side assert triggered"},
    {umemCudaAlreadyRegistered, "cudaErrorHostMemoryAlreadyRegistered",
     "part or all of the requested memory range is already mapped"},
    {umemCudaNotRegistered, "cudaErrorHostMemoryNotRegistered",
     "pointer does not correspond to a registered memory region"},
    {umemCudaHardwareStackError, "cudaErrorHardwareStackError", "hardware stack error"},
    {umemCudaLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {umemCudaNotPermitted, "cudaErrorNotPermitted", "operation not permitted"},
    {umemCudaNotSupported, "cudaErrorNotSupported", "operation not supported"},
    {umemCudaCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {umemCudaCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {umemCudaCaptureIsolation, "cudaErrorStreamCaptureIsolation",
     "dependency created on uncaptured work in another stream"},
    {umemCudaCaptureImplicit, "cudaErrorStreamCaptureImplicit",
     "operation would make the legacy stream depend on a capturing blocking stream"},
    {umemCudaCapturedEvent, "cudaErrorCapturedEvent",
     "operation not permitted on an event last recorded in a capturing stream"},
};

enum { error_count = sizeof errors / sizeof *errors };

static char const *error_name(int error) {
  for (int i = 0; i < error_count; i++)
    if (errors[i].error == error) return errors[i].name;
  return "cudaErrorUnknown";
}

static char const *error_string(int error) {
  for (int i = 0; i < error_count; i++)
    if (errors[i].error == error) return errors[i].string;
  return "unrecognized error code";
}

static int last_error(void) {
  if (cudart_is_inherited()) return umemCudaInitializationError;
  cudart_lock();
  Thread *thread = cudart_thread();
  Device const *device = thread->depth ? thread->stack[thread->depth - 1] : NULL;
  int error = device && device->broken ? device->broken : thread->last_error;
  thread->last_error = umemCudaSuccess;
  cudart_unlock();
  return error;
}

void fake_cudart_break(int device, int error) {
  cudart_lock();
  cudart_state.device[device].broken = error;
  cudart_unlock();
}

/* ---- devices ---- */

/* NULL where there is no such device. */
static Device *device_of(int ordinal) {
  bool is_one = ordinal >= 0 && ordinal < cudart_state.machine.devices;
  return is_one ? &cudart_state.device[ordinal] : NULL;
}

static int driver_version(int *version) {
  int error = cudart_enter("driver_version", needNothing);
  if (!error) *version = cudart_state.machine.driver_version;
  return cudart_leave(error);
}

static int runtime_version(int *version) {
  int error = cudart_enter("runtime_version", needNothing);
  if (!error) *version = cudart_state.machine.runtime_version;
  return cudart_leave(error);
}

static int device_count(int *count) {
  int error = cudart_enter("device_count", needDriver);
  if (!error) *count = cudart_state.machine.devices;
  return cudart_leave(error);
}

static int get_device(int *device) {
  int error = cudart_enter("get_device", needDriver);
  if (!error) {
    Thread const *thread = cudart_thread();
    *device = thread->depth ? thread->stack[thread->depth - 1]->ordinal : thread->device;
  }
  return cudart_leave(error);
}

static int attribute(int *value, umemCudaAttribute what, int device) {
  int error = cudart_enter("attribute", needDriver);
  if (!error && !device_of(device)) error = umemCudaInvalidOrdinal;
  if (error) return cudart_leave(error);
  FakeCudartDevice const *settings = &cudart_state.machine.device[device];
  switch (what) {
  case umemCudaHasPools:
    *value = !settings->no_pools;
    break;
  case umemCudaHasManaged:
    *value = !settings->no_managed;
    break;
  case umemCudaConcurrentManaged:
    *value = !settings->no_managed && !settings->no_concurrent_managed;
    break;
  case umemCudaHasPages:
    *value = !settings->no_pages;
    break;
  case umemCudaBusReachesPages:
    *value = !settings->no_bus;
    break;
  case umemCudaSharesPools:
    *value = !settings->no_pools && !settings->no_shared_pools;
    break;
  default:
    error = umemCudaInvalidValue;
  }
  return cudart_leave(error);
}

static int device_name(char *name, size_t size, int device) {
  int error = cudart_enter("device_name", needDriver);
  if (!error && !device_of(device)) error = umemCudaInvalidOrdinal;
  if (!error) snprintf(name, size, "Fake GPU %d", device);
  return cudart_leave(error);
}

/* Equal in all processes. */
static int uuid(uint64_t words[2], int device) {
  int error = cudart_enter("uuid", needDriver);
  if (!error && !device_of(device)) error = umemCudaInvalidOrdinal;
  if (!error) {
    words[0] = 0xFA4E;
    words[1] = (uint64_t)device + 1;
  }
  return cudart_leave(error);
}

static int bus_id(char *text, size_t size, int device) {
  int error = cudart_enter("bus_id", needDriver);
  if (!error && !device_of(device)) error = umemCudaInvalidOrdinal;
  if (!error) snprintf(text, size, "0000:%02X:00.0", 0xa0 + device);
  return cudart_leave(error);
}

static int memory_info(size_t *available, size_t *capacity) {
  int error = cudart_enter("memory_info", needContext);
  Device const *device = error ? NULL : cudart_current(&error);
  if (device) {
    *available = (size_t)cudart_available(device);
    *capacity = (size_t)cudart_state.machine.device[device->ordinal].capacity;
  }
  return cudart_leave(error);
}

bool cudart_are_peers(int device, int peer) { return device + peer == 1; }

static int can_access_peer(int *can, int device, int peer) {
  int error = cudart_enter("can_access_peer", needDriver);
  if (!error && (!device_of(device) || !device_of(peer))) error = umemCudaInvalidOrdinal;
  if (!error) *can = cudart_are_peers(device, peer);
  return cudart_leave(error);
}

static int enable(Device *device, int peer) {
  if (!device_of(peer) || peer == device->ordinal) return umemCudaInvalidOrdinal;
  if (!cudart_are_peers(device->ordinal, peer)) return cudartPeerUnsupported;
  if (device->peers & 1U << peer) return umemCudaPeerAlreadyEnabled;
  Device *other = device_of(peer);
  if (!other->retained && !other->implicit) {
    cudart_misuse("made a context on device %d", peer);
    other->implicit = other->had_context = true;
  }
  device->peers |= 1U << peer;
  return umemCudaSuccess;
}

static int enable_peer_access(int peer) {
  int error = cudart_enter("enable_peer_access", needContext);
  Device *device = error ? NULL : cudart_current(&error);
  if (device) error = enable(device, peer);
  return cudart_leave(error);
}

static int exchange_capture_mode(int *mode) {
  int error =
      cudart_enter("exchange_capture_mode", needContext); /* which a real one makes current */
  if (!error && (*mode < 0 || *mode > 2)) error = umemCudaInvalidValue;
  if (!error) {
    Thread *thread = cudart_thread();
    int before = thread->capture_mode;
    thread->capture_mode = *mode;
    *mode = before;
  }
  return cudart_leave(error);
}

int fake_cudart_capture_mode(void) { return cudart_thread()->capture_mode; }

/* ---- the table ---- */

static char const *no_reason(void) { return NULL; }

static umemCudaRt const table = {
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
    .pointer = cudart_pointer,
    .uuid = uuid,
    .bus_id = bus_id,
    .range = cudart_range,
    .context_current = cudart_context_current,
    .context_push = cudart_context_push,
    .context_pop = cudart_context_pop,
    .primary_retain = cudart_primary_retain,
    .primary_release = cudart_primary_release,
    .enable_peer_access = enable_peer_access,
    .exchange_capture_mode = exchange_capture_mode,
    .malloc = cudart_malloc,
    .free = cudart_free,
    .malloc_managed = cudart_malloc_managed,
    .prefetch = cudart_prefetch,
    .advise = cudart_advise,
    .host_alloc = cudart_host_alloc,
    .host_free = cudart_host_free,
    .host_register = cudart_host_register,
    .host_unregister = cudart_host_unregister,
    .pool_create = cudart_pool_create,
    .pool_destroy = cudart_pool_destroy,
    .pool_set_threshold = cudart_pool_set_threshold,
    .pool_trim = cudart_pool_trim,
    .pool_sizes = cudart_pool_sizes,
    .pool_allow = cudart_pool_allow,
    .pool_malloc = cudart_pool_malloc,
    .pool_free = cudart_pool_free,
    .page_size = cudart_page_size,
    .range_reserve = cudart_range_reserve,
    .range_free = cudart_range_free,
    .page_create = cudart_page_create,
    .page_retain = cudart_page_retain,
    .page_release = cudart_page_release,
    .page_map = cudart_page_map,
    .page_unmap = cudart_page_unmap,
    .page_allow = cudart_page_allow,
    .memcpy = cudart_memcpy,
    .memcpy_async = cudart_memcpy_async,
    .memcpy_peer_async = cudart_memcpy_peer_async,
    .memcpy_box_async = cudart_memcpy_box_async,
    .memcpy_box_peer_async = cudart_memcpy_box_peer_async,
    .memset_async = cudart_memset_async,
    .stream_create = cudart_stream_create,
    .stream_destroy = cudart_stream_destroy,
    .stream_device = cudart_stream_device,
    .stream_synchronize = cudart_stream_synchronize,
    .stream_wait = cudart_stream_wait,
    .stream_capture = cudart_stream_capture,
    .event_create = cudart_event_create,
    .event_destroy = cudart_event_destroy,
    .event_record = cudart_event_record,
    .event_synchronize = cudart_event_synchronize,
    .ipc_memory = cudart_ipc_memory,
    .ipc_open = cudart_ipc_open,
    .ipc_close = cudart_ipc_close,
    .ipc_event_create = cudart_ipc_event_create,
    .ipc_event = cudart_ipc_event,
    .ipc_event_open = cudart_ipc_event_open,
    .pool_export = cudart_pool_export,
    .pool_import = cudart_pool_import,
    .pool_export_pointer = cudart_pool_export_pointer,
    .pool_import_pointer = cudart_pool_import_pointer,
    .cufile = fake_cufile,
    .absence = no_reason,
};

umemCudaRt const *fake_cudart(void) { return &table; }
