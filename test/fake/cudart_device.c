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
  LOCKED(cudart_mutex());
  Thread *thread = cudart_thread();
  Device const *device = thread->depth ? thread->stack[thread->depth - 1] : NULL;
  int error = device && device->broken ? device->broken : thread->last_error;
  thread->last_error = umemCudaSuccess;
  return error;
}

void fake_cudart_break(int device, int error) {
  LOCKED(cudart_mutex());
  cudart_state.device[device].broken = error;
}

/* ---- devices ---- */

Device *cudart_device_of(int ordinal) {
  bool is_one = ordinal >= 0 && ordinal < cudart_state.machine.devices;
  return is_one ? &cudart_state.device[ordinal] : NULL;
}

int cudart_driver_version(int *version) {
  *version = cudart_state.machine.driver_version;
  return umemCudaSuccess;
}

int cudart_runtime_version(int *version) {
  *version = cudart_state.machine.runtime_version;
  return umemCudaSuccess;
}

int cudart_device_count(int *count) {
  *count = cudart_state.machine.devices;
  return umemCudaSuccess;
}

int cudart_get_device(int *device) {
  Thread const *thread = cudart_thread();
  *device = thread->depth ? thread->stack[thread->depth - 1]->ordinal : thread->device;
  return umemCudaSuccess;
}

int cudart_attribute(int *value, umemCudaAttribute what, int device) {
  if (!cudart_device_of(device)) return umemCudaInvalidOrdinal;
  FakeCudartDevice const *settings = &cudart_state.machine.device[device];
  bool const has[] = {
      [umemCudaHasPools] = !settings->no_pools,
      [umemCudaHasManaged] = !settings->no_managed,
      [umemCudaConcurrentManaged] = !settings->no_managed && !settings->no_concurrent_managed,
      [umemCudaHasPages] = !settings->no_pages,
      [umemCudaBusReachesPages] = !settings->no_bus,
      [umemCudaSharesPools] = !settings->no_pools && !settings->no_shared_pools,
  };
  if ((size_t)what >= sizeof has / sizeof *has) return umemCudaInvalidValue;
  *value = has[what];
  return umemCudaSuccess;
}

int cudart_device_name(char *name, size_t size, int device) {
  if (!cudart_device_of(device)) return umemCudaInvalidOrdinal;
  snprintf(name, size, "Fake GPU %d", device);
  return umemCudaSuccess;
}

/* Equal in all processes. */
int cudart_uuid(uint64_t words[2], int device) {
  if (!cudart_device_of(device)) return umemCudaInvalidOrdinal;
  words[0] = 0xFA4E;
  words[1] = (uint64_t)device + 1;
  return umemCudaSuccess;
}

int cudart_bus_id(char *text, size_t size, int device) {
  if (!cudart_device_of(device)) return umemCudaInvalidOrdinal;
  snprintf(text, size, "0000:%02X:00.0", 0xa0 + device);
  return umemCudaSuccess;
}

int cudart_memory_info(size_t *available, size_t *capacity) {
  Device const *device = cudart_here();
  *available = (size_t)cudart_available(device);
  *capacity = (size_t)cudart_state.machine.device[device->ordinal].capacity;
  return umemCudaSuccess;
}

bool cudart_are_peers(int device, int peer) { return device + peer == 1; }

int cudart_can_access_peer(int *can, int device, int peer) {
  if (!cudart_device_of(device) || !cudart_device_of(peer)) return umemCudaInvalidOrdinal;
  *can = cudart_are_peers(device, peer);
  return umemCudaSuccess;
}

int cudart_enable_peer_access(int peer) {
  Device *device = cudart_here(), *other = cudart_device_of(peer);
  if (!other || other == device) return umemCudaInvalidOrdinal;
  if (!cudart_are_peers(device->ordinal, peer)) return cudartPeerUnsupported;
  if (device->peers & 1U << peer) return umemCudaPeerAlreadyEnabled;
  if (!other->retained && !other->implicit) {
    cudart_misuse("made a context on device %d", peer);
    other->implicit = other->had_context = true;
  }
  device->peers |= 1U << peer;
  return umemCudaSuccess;
}

/* A real one makes the context current that this needs. */
int cudart_exchange_capture_mode(int *mode) {
  if (*mode < 0 || *mode > 2) return umemCudaInvalidValue;
  Thread *thread = cudart_thread();
  int before = thread->capture_mode;
  thread->capture_mode = *mode;
  *mode = before;
  return umemCudaSuccess;
}

int fake_cudart_capture_mode(void) { return cudart_thread()->capture_mode; }

/* ---- the table ---- */

#define FUNCTION(name, parameters, arguments, needs, made, change)                                 \
  static int front_##name parameters {                                                             \
    int error = cudart_enter(#name, needs);                                                        \
    return cudart_leave(error ? error : cudart_##name arguments);                                  \
  }
#include "cudart_functions.h"

static char const *no_reason(void) { return NULL; }

umemCudaRt const *fake_cudart(void) {
  static umemCudaRt const table = {
#define FUNCTION(name, parameters, arguments, needs, made, change) .name = front_##name,
#include "cudart_functions.h"
      .error_name = error_name,
      .error_string = error_string,
      .last_error = last_error,
      .cufile = fake_cufile,
      .absence = no_reason,
  };
  return &table;
}
