/* cuda_enter.c - the way into a GPU's context and back, for kernels of the program. */
#include "core/status.h"
#include "base/thread.h"
#include "cuda/cuda_error.h"
#include "cuda/cuda_gpus.h"
#include "cuda/cuda_scope.h"

#include <string.h>
#include <umem/cuda.h>

/* What the bytes of a umemCudaEntry are. */
typedef struct {
  umemCudaRt const *rt; /* NULL: there is nothing to leave */
  umemCudaScope scope;  /* of scope.gpu; where that is NULL, the context is the caller's own */
} Entry;

_Static_assert(sizeof(Entry) <= sizeof(umemCudaEntry), "an entry fits");

enum { of_caller = -1, relaxed = 2 /* cudaStreamCaptureModeRelaxed */ };

/* As umemCuda_check, for the caller's own context. */
static bool check(umemCudaRt const *rt, int error, char const *what) {
  umemCudaGpu here = {.rt = rt, .device = of_caller};
  return umemCuda_check(NULL, &here, error, "%s", what);
}

/* The caller's context stays current. It need not be a primary one: no umemCudaGpu stands for it. */
static bool stay(Entry *entry) {
  entry->scope.capture_mode = relaxed;
  return check(entry->rt, entry->rt->exchange_capture_mode(&entry->scope.capture_mode),
               "cannot use the current GPU");
}

/* Tried twice, as by umemCudaScope_leave. */
static void go_on(Entry *entry) {
  int error = entry->rt->exchange_capture_mode(&entry->scope.capture_mode);
  if (error) {
    entry->rt->last_error();
    error = entry->rt->exchange_capture_mode(&entry->scope.capture_mode);
  }
  check(entry->rt, error, "cannot leave the current GPU");
}

static bool enter_gpu(Entry *entry, int device) {
  umemCudaGpu *gpu = umemCudaGpu_open(NULL, device);
  if (!gpu) return false;
  entry->rt = gpu->rt;
  if (umemCudaScope_enter(&entry->scope, NULL, gpu)) return true;
  umemCudaGpu_close(gpu);
  return false;
}

/* The caller's context or, where it has none, that of its current GPU. */
static bool enter_current(Entry *entry) {
  int device = of_caller;
  void *current = NULL;
  entry->rt = umemCudaRt_get();
  if (!entry->rt) return enter_gpu(entry, device); /* which says that CUDA is missing */
  int error = entry->rt->context_current(&current);
  if (!error && !current) error = entry->rt->get_device(&device);
  if (!check(entry->rt, error, "cannot ask which GPU is current")) return false;
  return current ? stay(entry) : enter_gpu(entry, device);
}

umemStatusType umemCuda_enter(umemCudaEntry *entry, int device) {
  UMEM_ENTER();
  umem_defer_cancel();
  uint64_t before = umem_thread.failures;
  if (!entry) return umemVirtual_fail(NULL, umemValueError, "the entry is NULL");
  memset(entry, 0, sizeof *entry);
  Entry own = {.rt = NULL};
  if (device == of_caller ? enter_current(&own) : enter_gpu(&own, device))
    memcpy(entry, &own, sizeof own);
  return umem_result(before);
}

umemStatusType umemCuda_leave(umemCudaEntry *entry) {
  UMEM_ENTER();
  umem_defer_cancel();
  uint64_t before = umem_thread.failures;
  if (!entry) return umemVirtual_fail(NULL, umemValueError, "the entry is NULL");
  Entry own;
  memcpy(&own, entry, sizeof own);
  memset(entry, 0, sizeof *entry);
  if (!own.rt) return umemOK;
  if (own.scope.gpu) {
    umemCudaScope_leave(&own.scope);
    umemCudaGpu_close(own.scope.gpu);
  } else {
    go_on(&own);
  }
  return umem_result(before);
}
