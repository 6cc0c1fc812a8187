/* cuda_gpu.c - the GPUs of this process, and the way into their contexts and back.
 *
 * A GPU's primary context is retained by its first user and made current with the driver's stack:
 * cudaSetDevice would create the context of a device that the caller never uses, and would leave
 * another one current than the caller had. */
#include "cuda/cuda_gpu.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- errors ---- */

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

/* Whether gpu tells; false, too, where its context is not current, which the question would make. */
static bool ask_memory(umemCudaGpu *gpu, size_t *available, size_t *capacity) {
  void *current = NULL;
  return gpu->context && !gpu->rt->context_current(&current) && current == gpu->context &&
         !gpu->rt->memory_info(available, capacity);
}

/* What helps against an error, or "". */
static char const *advice_for(umemVirtual *ctx, umemCudaGpu *gpu, int error, char *text,
                              size_t size) {
  size_t available, capacity;
  bool of_gpu = !ctx || ctx->vptr != &umemCudaHost_vtbl;
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
  gpu->rt->last_error(); /* told here: the program must not find it again in a call of its own */
  umemVirtual_fail(ctx, umemCuda_status_of(error), "%s: %s (%s)%s", action,
                   gpu->rt->error_string(error), gpu->rt->error_name(error),
                   advice_for(ctx, gpu, error, advice, sizeof advice));
  gpu->rt->last_error();
  return false;
}

/* ---- scopes ---- */

bool umemCudaGpu_is_inherited(umemCudaGpu const *gpu) { return gpu->lineage != umem_fork_count(); }

bool umemCudaScope_enter(umemCudaScope *scope, umemVirtual *ctx, umemCudaGpu *gpu) {
  umemCudaRt const *rt = gpu->rt;
  *scope = (umemCudaScope){ctx, gpu, false, 2 /* cudaStreamCaptureModeRelaxed */};
  if (umemCudaGpu_is_inherited(gpu)) {
    umemVirtual_fail(ctx, umemNotSupportedError,
                     "CUDA does not work in a child of fork, and this %s was constructed before it",
                     umem_get_device_name(ctx));
    return false;
  }
  void *current = NULL;
  int error = rt->context_current(&current);
  if (!error && current != gpu->context) {
    error = rt->context_push(gpu->context);
    scope->pushed = !error;
  }
  if (!error) error = rt->exchange_capture_mode(&scope->capture_mode);
  if (error && scope->pushed) rt->context_pop(&current);
  return umemCuda_check(ctx, gpu, error, "cannot use GPU %d", gpu->device);
}

/* Tried twice: the caller must not stay here for an error that was about the call. What was done in the
 * scope has not failed by that, so only the second one is told. */
void umemCudaScope_leave(umemCudaScope *scope) {
  umemCudaGpu *gpu = scope->gpu;
  umemCudaRt const *rt = gpu->rt;
  void *left;
  int mode = rt->exchange_capture_mode(&scope->capture_mode);
  if (mode) { /* before the context goes: CUDA would make one current */
    rt->last_error();
    mode = rt->exchange_capture_mode(&scope->capture_mode);
  }
  int popped = scope->pushed ? rt->context_pop(&left) : umemCudaSuccess;
  if (popped) {
    rt->last_error();
    popped = rt->context_pop(&left);
  }
  umemCuda_check(scope->ctx, gpu, mode ? mode : popped, "cannot leave GPU %d", gpu->device);
}

bool umemCudaGpu_reaches(umemCudaGpu *gpu, int peer) {
  uint64_t bit = (uint64_t)1 << peer;
  if (peer == gpu->device || (__atomic_load_n(&gpu->peers, __ATOMIC_RELAXED) & bit)) return true;
  if (__atomic_load_n(&gpu->no_peers, __ATOMIC_RELAXED) & bit) return false;
  int can = 0;
  int error = gpu->rt->can_access_peer(&can, gpu->device, peer);
  if (!error && can) error = gpu->rt->enable_peer_access(peer);
  if (error == umemCudaPeerAlreadyEnabled) error = 0; /* by the program itself */
  gpu->rt->last_error();
  if (error) return false; /* it may be another time */
  __atomic_fetch_or(can ? &gpu->peers : &gpu->no_peers, bit, __ATOMIC_RELAXED);
  return can;
}

/* ---- the GPUs there are ---- */

/* Guards the table. It is no umemLock, for which fork would wait: the driver itself forks when it is first
 * used and has to load its module. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static umemCudaGpu table[umemCudaMostDevices]; /* zero users: not in use */
static unsigned users_of[umemCudaMostDevices]; /* atomic; from and to 0 under the lock */

/* In a child nobody holds it; what the table says of GPUs means nothing there. */
static void renew_lock(void) { pthread_mutex_init(&lock, NULL); }

__attribute__((constructor(101))) static void watch_fork(void) {
  pthread_atfork(NULL, NULL, renew_lock);
}

/* ---- the legacy stream ---- */

void *umemCudaGpu_take_event(umemCudaGpu *gpu, umemVirtual *ctx) {
  void *event = NULL;
  for (int i = 0; i < umemCudaIdleEvents && !event; i++)
    event = __atomic_exchange_n(&gpu->events[i], NULL, __ATOMIC_ACQ_REL);
  if (event) return event;
  int error = gpu->rt->event_create(&event);
  return umemCuda_check(ctx, gpu, error, "cannot create an event") ? event : NULL;
}

void umemCudaGpu_give_event(umemCudaGpu *gpu, void *event) {
  for (int i = 0; i < umemCudaIdleEvents && event; i++) {
    void *none = NULL;
    if (__atomic_compare_exchange_n(&gpu->events[i], &none, event, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_RELAXED))
      event = NULL;
  }
  if (event && gpu->rt->event_destroy(event)) gpu->rt->last_error();
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

/* An event, since to wait for the stream itself is to wait for its own work: CUDA promises nothing there of
 * the streams that it waits for. */
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

/* ---- opening and closing ---- */

static bool version_is_enough(umemVirtual *ctx, umemCudaRt const *rt) {
  int driver = 0, runtime = 0;
  if (rt->driver_version(&driver) || rt->runtime_version(&runtime) || !driver) {
    umemVirtual_fail(ctx, umemNotSupportedError,
                     "there is no CUDA driver: is a GPU there, and NVIDIA's driver installed?");
    return false;
  }
  if (driver / 1000 >= runtime / 1000) return true; /* minor versions are compatible */
  umemVirtual_fail(ctx, umemNotSupportedError,
                   "the driver serves CUDA %d.%d, too old for the runtime %d.%d of umem: update "
                   "NVIDIA's driver",
                   driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
  return false;
}

/* Whether device exists; false with a status otherwise. */
static bool device_exists(umemVirtual *ctx, umemCudaGpu *gpu) {
  int count = 0;
  if (!umemCuda_check(ctx, gpu, gpu->rt->device_count(&count), "cannot count GPUs")) return false;
  if (count > umemCudaMostDevices) count = umemCudaMostDevices;
  if (gpu->device >= 0 && gpu->device < count) return true;
  if (count)
    umemVirtual_fail(ctx, umemValueError, "there is no GPU %d: this machine has 0 to %d",
                     gpu->device, count - 1);
  else
    umemVirtual_fail(ctx, umemNotSupportedError, "there is no GPU");
  return false;
}

static bool has(umemCudaGpu *gpu, umemCudaAttribute what) {
  int value = 0;
  if (gpu->rt->attribute(&value, what, gpu->device)) gpu->rt->last_error();
  return value != 0;
}

/* Fills in *gpu, whose rt and device stand. */
static bool open_first(umemVirtual *ctx, umemCudaGpu *gpu) {
  if (!version_is_enough(ctx, gpu->rt) || !device_exists(ctx, gpu)) return false;
  if (gpu->rt->device_name(gpu->name, sizeof gpu->name, gpu->device)) gpu->rt->last_error();
  gpu->has_pools = has(gpu, umemCudaHasPools);
  gpu->has_managed = has(gpu, umemCudaHasManaged);
  gpu->concurrent_managed = has(gpu, umemCudaConcurrentManaged);
  gpu->pageable_access = has(gpu, umemCudaPageableAccess);
  return umemCuda_check(ctx, gpu, gpu->rt->primary_retain(&gpu->context, gpu->device),
                        "cannot use GPU %d", gpu->device);
}

/* Whether gpu was opened by this process; false with a status otherwise. */
static bool is_of_this_process(umemVirtual *ctx, umemCudaGpu const *gpu) {
  if (!umemCudaGpu_is_inherited(gpu)) return true;
  umemVirtual_fail(ctx, umemNotSupportedError,
                   "CUDA does not work in a child of fork of a process that has used it");
  return false;
}

/* One user more of a GPU that has some, or one less where others stay: what loops do each time. False where
 * that takes the lock. */
static bool change_users(int device, int by) {
  unsigned *count = &users_of[device], least = by > 0 ? 1 : 2;
  unsigned users = __atomic_load_n(count, __ATOMIC_ACQUIRE);
  while (users >= least)
    if (__atomic_compare_exchange_n(count, &users, users + (unsigned)by, true, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE))
      return true;
  return false;
}

umemCudaGpu *umemCudaGpu_open(umemVirtual *ctx, int device) {
  umemCudaRt const *rt = umemCudaRt_get();
  if (!rt) {
    umemVirtual_fail(ctx, umemNotSupportedError,
                     "umem %s was built without CUDA; one built where the CUDA toolkit, 12.2 or "
                     "later, is installed is needed",
                     umem_version());
    return NULL;
  }
  bool in_table = device >= 0 && device < umemCudaMostDevices;
  if (in_table && change_users(device, 1)) {
    if (!umemCudaGpu_is_inherited(&table[device])) return &table[device];
    umemCudaGpu_close(&table[device]);
  }
  umemAttempt attempt; /* the program's hook must not be called under the lock */
  umemAttempt_begin(&attempt);
  pthread_mutex_lock(&lock);
  umemCudaGpu fresh = {.rt = rt, .device = device, .lineage = umem_fork_count()};
  umemCudaGpu *gpu = in_table ? &table[device] : &fresh; /* that no GPU has, for the report */
  unsigned users = in_table ? __atomic_load_n(&users_of[device], __ATOMIC_ACQUIRE) : 0;
  if (!users) *gpu = fresh;
  bool opened = users ? is_of_this_process(ctx, gpu) : open_first(ctx, gpu);
  if (opened && in_table) __atomic_add_fetch(&users_of[device], 1, __ATOMIC_ACQ_REL);
  pthread_mutex_unlock(&lock);
  umemAttempt_end(&attempt);
  umemAttempt_record(&attempt);
  return opened && in_table ? &table[device] : NULL;
}

/* So that they go before the context does. */
static void destroy_events(umemCudaGpu *gpu) {
  umemCudaScope scope;
  bool has_some = false;
  for (int i = 0; i < umemCudaIdleEvents; i++) has_some = has_some || gpu->events[i];
  if (!has_some || umemCudaGpu_is_inherited(gpu)) return;
  umemAttempt forgotten;
  umemAttempt_begin(&forgotten);
  if (umemCudaScope_enter(&scope, NULL, gpu)) {
    for (int i = 0; i < umemCudaIdleEvents; i++)
      if (gpu->events[i] && gpu->rt->event_destroy(gpu->events[i])) gpu->rt->last_error();
    umemCudaScope_leave(&scope);
  }
  umemAttempt_end(&forgotten);
}

/* The access of others to the memory of gpu ends with its context: they are to ask again. */
static void forget_peer(umemCudaGpu const *gpu) {
  uint64_t bit = (uint64_t)1 << gpu->device;
  for (int d = 0; d < umemCudaMostDevices; d++) {
    __atomic_fetch_and(&table[d].peers, ~bit, __ATOMIC_RELAXED);
    __atomic_fetch_and(&table[d].no_peers, ~bit, __ATOMIC_RELAXED);
  }
}

/* What staging keeps lives in the primary context and goes before it; others wait at the lock. */
void umemCudaGpu_close(umemCudaGpu *gpu) {
  if (change_users(gpu->device, -1)) return;
  pthread_mutex_lock(&lock);
  if (!__atomic_sub_fetch(&users_of[gpu->device], 1, __ATOMIC_ACQ_REL)) {
    umemCuda_release_staging(gpu);
    destroy_events(gpu);
    forget_peer(gpu);
    if (!umemCudaGpu_is_inherited(gpu) && gpu->rt->primary_release(gpu->device))
      gpu->rt->last_error();
  }
  pthread_mutex_unlock(&lock);
}
