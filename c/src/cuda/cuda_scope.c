/* cuda_scope.c - enters the context of a GPU and leaves it, records CUDA's errors, and lends
 * events.
 *
 * A GPU's primary context is made current with the driver's stack: cudaSetDevice would create the
 * context of a device that the caller never uses, and would leave another one current than the
 * caller had. In a thread that had none, the context of GPU 0 remains current after a call for a
 * umem context, as after the first call of CUDA's runtime: libraries of the driver's interface
 * (CCCL's streams) expect one. That of another GPU does not remain: the runtime would take this GPU
 * for the chosen one. */
#include "cuda/cuda_scope.h"
#include "core/context.h"

#include <stdarg.h>
#include <stdio.h>

/* ==== errors ==== */

/* Whether nothing works any more in this process after error: CUDA requires to end it ("leaves the
 * process in an inconsistent state"). */
static bool is_fatal(int error) {
  switch (error) {
  case umemCudaUncorrectable:
  case umemCudaLinkUncorrectable:
  case umemCudaIllegalAddress:
  case umemCudaLaunchTimeout:
  case umemCudaAssert:
  case umemCudaHardwareStackError:
  case umemCudaIllegalInstruction:
  case umemCudaMisalignedAddress:
  case umemCudaInvalidAddressSpace:
  case umemCudaInvalidPc:
  case umemCudaLaunchFailure:
    return true;
  default:
    return false;
  }
}

/* The status that stands for error. */
static umemStatusType status_of(int error) {
  switch (error) {
  case umemCudaSuccess:
    return umemOK;
  case umemCudaOutOfMemory:
    return umemMemoryError;
  case umemCudaInvalidValue:
  case umemCudaInvalidOrdinal:
  case umemCudaInvalidHandle:
  case umemCudaAlreadyRegistered:
  case umemCudaNotRegistered:
    return umemValueError;
  case umemCudaInitializationError:
  case umemCudaStubLibrary:
  case umemCudaInsufficientDriver:
  case umemCudaNoGpu:
  case umemCudaNotPermitted:
  case umemCudaNotSupported:
  case umemCudaCaptureUnsupported:
  case umemCudaCaptureInvalidated:
  case umemCudaCaptureIsolation:
  case umemCudaCapturedEvent:
  case umemCudaCaptureImplicit:
    return umemNotSupportedError;
  default:
    return umemRuntimeError;
  }
}

/* Queries how much memory gpu has. Returns false where that fails, and where the context of gpu is
 * not current: the question would make it so. */
static bool ask_memory(umemCudaGpu *gpu, size_t *available, size_t *capacity) {
  void *current = NULL;
  return gpu->context && !gpu->rt->context_current(&current) && current == gpu->context &&
         !gpu->rt->memory_info(available, capacity);
}

/* What helps against an error, or "". */
static char const *advice_for(umemVirtual *ctx, umemCudaGpu *gpu, int error, char *text,
                              size_t size) {
  size_t available, capacity;
  bool of_gpu = !ctx || !umem_can(ctx, umemCpuReadable) || umem_can(ctx, umemDeviceShared);
  if (error == umemCudaOutOfMemory && of_gpu && ask_memory(gpu, &available, &capacity))
    snprintf(text, size, "; %zu of %zu bytes are free on GPU %d, %s", available, capacity,
             gpu->device, gpu->name);
  else if (error == umemCudaInitializationError)
    snprintf(text, size, "; CUDA does not work in a child of fork of a process that has used it");
  else if (is_fatal(error))
    snprintf(text, size, "; a kernel has crashed: CUDA works again only in a new process");
  else
    *text = 0;
  return text;
}

bool umemCuda_check(umemVirtual *ctx, umemCudaGpu *gpu, int error, char const *what, ...) {
  if (!error) return true;
  char action[128], advice[256];
  va_list arguments;
  va_start(arguments, what);
  vsnprintf(action, sizeof action, what, arguments);
  va_end(arguments);
  gpu->rt
      ->last_error(); /* recorded here: the program must not get it again from a call of its own */
  umemVirtual_fail(ctx, status_of(error), "%s: %s (%s)%s", action, gpu->rt->error_string(error),
                   gpu->rt->error_name(error), advice_for(ctx, gpu, error, advice, sizeof advice));
  gpu->rt->last_error();
  return false;
}

/* ==== scopes ==== */

bool umemCudaScope_enter(umemCudaScope *scope, umemVirtual *ctx, umemCudaGpu *gpu) {
  umemCudaRt const *rt = gpu->rt;
  *scope = (umemCudaScope){ctx, NULL, false, false, 2 /* cudaStreamCaptureModeRelaxed */};
  if (umemCudaGpu_is_inherited(gpu))
    return UMEM_FAIL(ctx, umemNotSupportedError,
                     "CUDA does not work in a child of fork, and this %s was constructed before it",
                     umem_get_device_name(ctx));
  void *current = NULL;
  int error = rt->context_current(&current);
  if (!error && current != gpu->context) {
    error = rt->context_push(gpu->context);
    scope->pushed = !error;
    scope->remains = ctx && !current && gpu->device == 0;
  }
  if (!error) error = rt->exchange_capture_mode(&scope->capture_mode);
  if (error && scope->pushed) rt->context_pop(&current);
  if (!error) scope->gpu = gpu;
  return UMEM_CUDA_CHECK(ctx, gpu, error, "cannot use GPU %d", gpu->device);
}

static int restore_mode(umemCudaScope *scope) {
  umemCudaRt const *rt = scope->gpu->rt;
  int error = rt->exchange_capture_mode(&scope->capture_mode);
  if (!error) return error;
  rt->last_error();
  return rt->exchange_capture_mode(&scope->capture_mode);
}

/* Tries twice: the caller must not stay here for an error that was about the call. What was done in
 * the scope has not failed by that, so only the second error is recorded. */
void umemCudaScope_leave(umemCudaScope *scope) {
  umemCudaGpu *gpu = scope->gpu;
  if (!gpu) return;
  umemCudaRt const *rt = gpu->rt;
  void *left;
  int mode = restore_mode(scope); /* before the context goes: CUDA would make one current */
  bool pops = scope->pushed && !scope->remains;
  int popped = pops ? rt->context_pop(&left) : umemCudaSuccess;
  if (popped) {
    rt->last_error();
    popped = rt->context_pop(&left);
  }
  if (!mode) mode = popped;
  if (mode) umemCuda_check(scope->ctx, gpu, mode, "cannot leave GPU %d", gpu->device);
}

/* ==== events ==== */

void *umemCudaGpu_take_event(umemCudaGpu *gpu, umemVirtual *ctx) {
  void *event = NULL;
  for (int i = 0; i < umemCudaIdleEvents && !event; i++)
    if (__atomic_load_n(&gpu->events[i], __ATOMIC_RELAXED))
      event = __atomic_exchange_n(&gpu->events[i], NULL, __ATOMIC_ACQ_REL);
  if (event) return event;
  int error = gpu->rt->event_create(&event);
  return umemCuda_check(ctx, gpu, error, "cannot create an event") ? event : NULL;
}

bool umemCudaGpu_keep_event(umemCudaGpu *gpu, void *event) {
  for (int i = 0; i < umemCudaIdleEvents; i++) {
    void *none = NULL;
    if (!__atomic_load_n(&gpu->events[i], __ATOMIC_RELAXED) &&
        __atomic_compare_exchange_n(&gpu->events[i], &none, event, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_RELAXED))
      return true;
  }
  return false;
}

void umemCudaGpu_give_event(umemCudaGpu *gpu, void *event) {
  bool destroys = event && !umemCudaGpu_keep_event(gpu, event);
  if (destroys && gpu->rt->event_destroy(event)) gpu->rt->last_error();
}

/* An event that stands for all that precedes the end of the legacy stream; NULL with a status. */
static void *mark_legacy(umemCudaGpu *gpu, umemVirtual *ctx) {
  void *event = umemCudaGpu_take_event(gpu, ctx);
  if (!event || umemCuda_check(ctx, gpu, gpu->rt->event_record(event, NULL),
                               "cannot record an event on the legacy stream"))
    return event;
  umemCudaGpu_give_event(gpu, event);
  return NULL;
}

/* An event, since to wait for the stream itself is to wait for its own work: CUDA promises nothing
 * there of the streams that it waits for. */
bool umemCudaGpu_settle(umemCudaGpu *gpu, umemVirtual *ctx) {
  void *event = mark_legacy(gpu, ctx);
  if (!event) return false;
  int error = gpu->rt->event_synchronize(event);
  umemCudaGpu_give_event(gpu, event);
  return umemCuda_check(ctx, gpu, error, "work on the legacy stream has failed");
}

bool umemCudaGpu_precedes(umemCudaGpu *gpu, umemVirtual *ctx, void *stream) {
  umemCudaScope scope;
  if (!umemCudaScope_enter(&scope, ctx, gpu)) return false;
  void *event = mark_legacy(gpu, ctx);
  umemCudaScope_leave(&scope);
  if (!event) return false;
  int error = gpu->rt->stream_wait(stream, event);
  umemCudaGpu_give_event(gpu, event);
  return umemCuda_check(ctx, gpu, error, "cannot wait for the legacy stream");
}

void umemCudaGpu_destroy_events(umemCudaGpu *gpu) {
  bool has_some = false;
  for (int i = 0; i < umemCudaIdleEvents; i++) has_some = has_some || gpu->events[i];
  if (!has_some || umemCudaGpu_is_inherited(gpu)) return;
  UMEM_FORGETTING();
  UMEM_CUDA_SCOPE(NULL, gpu);
  for (int i = 0; i < umemCudaIdleEvents; i++)
    if (gpu->events[i] && gpu->rt->event_destroy(gpu->events[i])) gpu->rt->last_error();
}
