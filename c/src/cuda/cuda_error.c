/* cuda_error.c - see cuda_error.h. */
#include "cuda/cuda_error.h"
#include "core/context.h"

#include <stdarg.h>
#include <stdio.h>

/* Those after which CUDA asks to end the process ("leaves the process in an inconsistent state"). */
bool umemCuda_is_fatal(int error) {
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

umemStatusType umemCuda_status_of(int error) {
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

/* Asks how much memory gpu has. Returns false where that fails, and where the context of gpu is not current: the
 * question would make it so. */
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
  else if (umemCuda_is_fatal(error))
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
  umemVirtual_fail(ctx, umemCuda_status_of(error), "%s: %s (%s)%s", action,
                   gpu->rt->error_string(error), gpu->rt->error_name(error),
                   advice_for(ctx, gpu, error, advice, sizeof advice));
  gpu->rt->last_error();
  return false;
}
