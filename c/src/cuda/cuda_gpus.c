/* cuda_gpus.c - opens and closes the GPUs of this process, enters them for kernels of the program,
 * and makes pools of streams for it.
 *
 * A GPU's primary context is retained by its first user, and released by its last. */
#include "core/context.h"
#include "cuda/cuda_pinned.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <umem/cuda.h>
#include <umem/virtual.h>

/* ---- the GPUs there are ---- */

/* Protects the table, which means nothing in a child. */
UMEM_FORKING_LOCK(lock)

static umemCudaGpu table[umemCudaMostDevices]; /* zero users: not in use */
static unsigned users_of[umemCudaMostDevices]; /* atomic; from and to 0 under the lock */

/* ---- opening and closing ---- */

static bool version_is_enough(umemVirtual *ctx, umemCudaRt const *rt) {
  int driver = 0, runtime = 0;
  if (rt->driver_version(&driver) || rt->runtime_version(&runtime) || !driver) {
    char const *why = rt->absence();
    return UMEM_FAIL(ctx, umemNotSupportedError,
                     "there is no CUDA driver%s%s: is a GPU there, and NVIDIA's driver installed?",
                     why ? ", " : "", why ? why : "");
  }
  if (driver / 1000 >= runtime / 1000) return true; /* minor versions are compatible */
  return UMEM_FAIL(ctx, umemNotSupportedError,
                   "the driver serves CUDA %d.%d, too old for the runtime %d.%d of umem: update "
                   "NVIDIA's driver",
                   driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
}

/* Whether device exists; false with a status otherwise. */
static bool device_exists(umemVirtual *ctx, umemCudaGpu *gpu) {
  int count = 0;
  if (!umemCuda_check(ctx, gpu, gpu->rt->device_count(&count), "cannot count GPUs")) return false;
  if (count > umemCudaMostDevices) count = umemCudaMostDevices;
  gpu->devices = count;
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

/* 0 where there are no pages. */
static size_t page_size_of(umemCudaGpu *gpu) {
  size_t size = 0;
  if (!has(gpu, umemCudaHasPages)) return 0;
  if (gpu->rt->page_size(&size, gpu->device)) gpu->rt->last_error();
  return size & (size - 1) ? 0 : size;
}

static bool find_near(umemCudaGpu *gpu) {
  char address[32];
  if (!gpu->rt->bus_id(address, sizeof address, gpu->device))
    return umemNear_find(address, &gpu->near);
  gpu->rt->last_error();
  return false;
}

/* The runtime takes all memory along when the process ends. */
static void end_transfers_before(void) {
  if (umem_exit_hook) umem_exit_hook();
}

/* Fills in *gpu, whose rt and device stand. */
static bool open_first(umemVirtual *ctx, umemCudaGpu *gpu) {
  if (!version_is_enough(ctx, gpu->rt) || !device_exists(ctx, gpu)) return false;
  if (gpu->rt->device_name(gpu->name, sizeof gpu->name, gpu->device)) gpu->rt->last_error();
  gpu->has_pools = has(gpu, umemCudaHasPools);
  gpu->has_managed = has(gpu, umemCudaHasManaged);
  gpu->concurrent_managed = has(gpu, umemCudaConcurrentManaged);
  gpu->page_size = page_size_of(gpu);
  gpu->has_near = find_near(gpu);
  bool retained = umemCuda_check(ctx, gpu, gpu->rt->primary_retain(&gpu->context, gpu->device),
                                 "cannot use GPU %d", gpu->device);
  static pthread_once_t at_first = PTHREAD_ONCE_INIT;
  if (retained) pthread_once(&at_first, end_transfers_before);
  return retained;
}

/* Whether gpu was opened by this process; false with a status otherwise. */
static bool is_of_this_process(umemVirtual *ctx, umemCudaGpu const *gpu) {
  if (!umemCudaGpu_is_inherited(gpu)) return true;
  return UMEM_FAIL(ctx, umemNotSupportedError,
                   "CUDA does not work in a child of fork of a process that has used it");
}

/* One user more of a GPU that has some, or one less where others remain: what loops do each time.
 * False where that takes the lock. */
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
  if (!rt)
    return UMEM_FAIL_NULL(ctx, umemNotSupportedError,
                          "umem %s was built without CUDA; one built where the CUDA toolkit, 12.2 "
                          "or later, is installed, or with UMEM_CUDA=DRIVER, is needed",
                          umem_version());
  bool in_table = device >= 0 && device < umemCudaMostDevices;
  if (in_table && change_users(device, 1)) {
    if (!umemCudaGpu_is_inherited(&table[device])) return &table[device];
    umemCudaGpu_close(&table[device]);
  }
  UMEM_HOLDING(); /* the program's hook must not be called under the lock */
  pthread_mutex_lock(&lock);
  umemCudaGpu fresh = {.rt = rt, .device = device, .lineage = umem_fork_count()};
  umemCudaGpu *gpu = in_table ? &table[device] : &fresh; /* that no GPU has, for the report */
  unsigned users = in_table ? __atomic_load_n(&users_of[device], __ATOMIC_ACQUIRE) : 0;
  if (!users) *gpu = fresh;
  bool opened = users ? is_of_this_process(ctx, gpu) : open_first(ctx, gpu);
  if (opened && in_table) __atomic_add_fetch(&users_of[device], 1, __ATOMIC_ACQ_REL);
  pthread_mutex_unlock(&lock);
  return opened && in_table ? &table[device] : NULL;
}

/* A GPU that is in use, for one more user; NULL if there is none, and in a child of fork. Records
 * nothing. */
static umemCudaGpu *any_gpu(void) {
  for (int device = 0; device < umemCudaMostDevices; device++) {
    if (!change_users(device, 1)) continue;
    if (!umemCudaGpu_is_inherited(&table[device])) return &table[device];
    umemCudaGpu_close(&table[device]);
  }
  return NULL;
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
    umemCudaGpu_destroy_events(gpu);
    forget_peer(gpu);
    if (!umemCudaGpu_is_inherited(gpu) && gpu->rt->primary_release(gpu->device))
      gpu->rt->last_error();
  }
  pthread_mutex_unlock(&lock);
}

/* ---- peers ---- */

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
  if (!can)
    UMEM_DECIDED(umemDecisionFallbacks, NULL,
                 "GPU %d does not reach the memory of GPU %d: copies between them go through host "
                 "memory",
                 gpu->device, peer);
  return can;
}

/* ==== memory of other libraries ==== */

static char const *const names[] = {
    [umemForeignPinned] = "pinned memory",
    [umemForeignGpu] = "device memory",
    [umemForeignManaged] = "managed memory",
};

_Static_assert((int)umemForeignPinned == umemCudaPinned, "numbers of CUDA");
_Static_assert((int)umemForeignGpu == umemCudaDeviceMemory, "numbers of CUDA");
_Static_assert((int)umemForeignManaged == umemCudaManagedMemory, "numbers of CUDA");

static bool ask(umemCudaGpu *gpu, uintptr_t adr, umemFound *found) {
  UMEM_FORGETTING();
  UMEM_CUDA_SCOPE(NULL, gpu, false);
  umemCudaRt const *rt = gpu->rt;
  umemCudaMemory kind = umemCudaUnregistered;
  uintptr_t base = 0;
  size_t nbytes = 0;
  int device = -1, error = rt->pointer((void const *)adr, &kind, &device);
  if (error) rt->last_error();
  if (error || kind == umemCudaUnregistered) return false;
  found->foreign = (umemForeign)kind;
  found->name = names[kind];
  found->device = device;
  if (rt->range((void const *)adr, &base, &nbytes)) {
    rt->last_error();
    return true;
  }
  found->adr = base;
  found->nbytes = nbytes;
  return true;
}

bool umemCuda_find_foreign(uintptr_t adr, umemFound *found) {
  umemCudaGpu *gpu = any_gpu();
  if (!gpu) return false;
  bool known = ask(gpu, adr, found);
  umemCudaGpu_close(gpu);
  return known;
}

/* ==== the way into the context of a GPU and back, for kernels of the program ==== */

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

/* The caller's context remains current. It need not be a primary one: no umemCudaGpu stands for
 * it. */
static bool enter_own_context(Entry *entry) {
  entry->scope.capture_mode = relaxed;
  return check(entry->rt, entry->rt->exchange_capture_mode(&entry->scope.capture_mode),
               "cannot use the current GPU");
}

/* Tried twice, as by umemCudaScope_leave. */
static void leave_own_context(Entry *entry) {
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
  return current ? enter_own_context(entry) : enter_gpu(entry, device);
}

umemStatusType umemCuda_enter(umemCudaEntry *entry, int device) {
  UMEM_ENTER();
  umem_defer_cancel();
  if (!entry) return umemVirtual_fail(NULL, umemValueError, "the entry is NULL");
  memset(entry, 0, sizeof *entry);
  Entry own = {.rt = NULL};
  if (device == of_caller ? enter_current(&own) : enter_gpu(&own, device))
    memcpy(entry, &own, sizeof own);
  return UMEM_RESULT();
}

umemStatusType umemCuda_leave(umemCudaEntry *entry) {
  UMEM_ENTER();
  umem_defer_cancel();
  if (!entry) return umemVirtual_fail(NULL, umemValueError, "the entry is NULL");
  Entry own;
  memcpy(&own, entry, sizeof own);
  memset(entry, 0, sizeof *entry);
  if (!own.rt) return umemOK;
  if (own.scope.gpu) {
    umemCudaScope_leave(&own.scope);
    umemCudaGpu_close(own.scope.gpu);
  } else {
    leave_own_context(&own);
  }
  return UMEM_RESULT();
}

/* ==== pools of streams of one GPU, handed out in turn ==== */

typedef struct Streams {
  umemCudaGpu *gpu; /* a user of it */
  unsigned count;
  unsigned next; /* atomic; wraps */
  void *streams[];
} Streams;

static Streams *streams_of(umemCudaStreams const *self) {
  if (self && self->impl) return self->impl;
  return UMEM_FAIL_NULL(NULL, umemValueError, "the streams are %s",
                        self ? "not constructed" : "NULL");
}

/* Destroys the first count of them. In a scope. */
static void destroy(Streams *streams, unsigned count) {
  umemCudaRt const *rt = streams->gpu->rt;
  for (unsigned i = 0; i < count; i++) UMEM_CUDA_TRY_TWICE(rt, stream_destroy(streams->streams[i]));
}

/* Creates all of them or none. */
static bool create(Streams *streams) {
  umemCudaGpu *gpu = streams->gpu;
  unsigned made = 0;
  UMEM_CUDA_SCOPE(NULL, gpu, false);
  for (; made < streams->count; made++) {
    int error = gpu->rt->stream_create(&streams->streams[made]);
    if (!umemCuda_check(NULL, gpu, error, "cannot create stream %u of %u", made, streams->count))
      break;
  }
  bool all = made == streams->count;
  if (!all) destroy(streams, made);
  return all;
}

umemStatusType umemCudaStreams_open(umemCudaStreams *self, int device, unsigned count) {
  UMEM_ENTER();
  umem_defer_cancel();
  if (!self) return umemVirtual_fail(NULL, umemValueError, "the streams are NULL");
  *self = (umemCudaStreams){.impl = NULL};
  if (!count) return umemVirtual_fail(NULL, umemValueError, "0 streams are none");
  Streams *streams = calloc(1, sizeof *streams + count * sizeof *streams->streams);
  if (!streams) return umemVirtual_fail(NULL, umemMemoryError, "no memory for %u streams", count);
  streams->count = count;
  streams->gpu = umemCudaGpu_open(NULL, device);
  if (streams->gpu && create(streams)) {
    self->impl = streams;
    return UMEM_RESULT();
  }
  if (streams->gpu) umemCudaGpu_close(streams->gpu);
  free(streams);
  return UMEM_RESULT();
}

uintptr_t umemCudaStreams_next(umemCudaStreams *self) {
  UMEM_ENTER();
  Streams *streams = streams_of(self);
  if (!streams) return 0;
  unsigned turn = __atomic_fetch_add(&streams->next, 1, __ATOMIC_RELAXED);
  return (uintptr_t)streams->streams[turn % streams->count];
}

uintptr_t umemCudaStreams_at(umemCudaStreams *self, unsigned index) {
  UMEM_ENTER();
  Streams *streams = streams_of(self);
  if (!streams) return 0;
  if (index < streams->count) return (uintptr_t)streams->streams[index];
  return UMEM_FAIL_AS(0, NULL, umemIndexError, "there is no stream %u among %u", index,
                      streams->count);
}

unsigned umemCudaStreams_count(umemCudaStreams const *self) {
  return self && self->impl ? ((Streams const *)self->impl)->count : 0;
}

void umemCudaStreams_close(umemCudaStreams *self) {
  UMEM_ENTER();
  umem_defer_cancel();
  if (!self || !self->impl) return;
  Streams *streams = self->impl;
  umemCudaScope scope;
  if (!umemCudaGpu_is_inherited(streams->gpu) && umemCudaScope_enter(&scope, NULL, streams->gpu)) {
    destroy(streams, streams->count);
    umemCudaScope_leave(&scope);
  }
  umemCudaGpu_close(streams->gpu);
  free(streams);
  self->impl = NULL;
}
