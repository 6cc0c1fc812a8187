/* cuda_gds.c - see cuda_gds.h.
 *
 * cuFile has a compatibility mode: where there is no direct path, it copies through host memory, as umem does by
 * itself, and no function reports this for a file. So umem uses cuFile only if its configuration forbids that mode.
 * cuFile then refuses the files that it cannot serve. */
#include "cuda/cuda_gds.h"
#include "cuda/cuda_scope.h"

#include <pthread.h>

enum { notAsked, isAbsent, isThere };

/* Guards the session. It is no umemLock, for which fork would wait: drivers fork when they load modules. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct {
  int answer;        /* one of the three; atomic */
  unsigned lineage;  /* umem_fork_count() when it was given */
  uint64_t retained; /* bit d: the context of device d; atomic */
  bool opened;       /* the driver, by umem */
  umemCudaRt const *rt;
  umemCufileRt const *cufile;
} session;

/* In a child nobody holds it. */
static void renew_lock(void) { pthread_mutex_init(&lock, NULL); }

__attribute__((constructor(101))) static void watch_fork(void) {
  pthread_atfork(NULL, NULL, renew_lock);
}

/* ---- the driver ---- */

/* Whether each file that the driver registers has a direct path. */
static bool is_real(umemCufileRt const *cufile) {
  umemCufileProperties properties = {0};
  if (cufile->driver_properties(&properties).code) return false;
  return (properties.major || properties.minor) && properties.file_systems &&
         !(properties.controls & umemCufileDetours);
}

/* Opens the driver if the program has not done so. Closes it again if its paths are not real. */
static bool open_driver(umemCufileRt const *cufile, bool *opened) {
  *opened = cufile->use_count() == 0;
  if (*opened && cufile->driver_open().code) return false;
  if (is_real(cufile)) return true;
  if (*opened && cufile->use_count() == 1) cufile->driver_close();
  return false;
}

/* In the scope of gpu, so that the driver finds a context. */
static bool ask(umemCudaGpu *gpu) {
  umemCufileRt const *cufile = gpu->rt->cufile();
  umemCudaScope scope;
  if (!cufile || !umemCudaScope_enter(&scope, NULL, gpu)) return false;
  bool there = open_driver(cufile, &session.opened);
  umemCudaScope_leave(&scope);
  session.cufile = cufile;
  return there;
}

static void answer(umemCudaGpu *gpu) {
  umemAttempt forgotten; /* the program has not asked for cuFile */
  umemAttempt_begin(&forgotten);
  bool there = ask(gpu);
  umemAttempt_end(&forgotten);
  session.rt = gpu->rt;
  session.lineage = umem_fork_count();
  __atomic_store_n(&session.answer, there ? isThere : isAbsent, __ATOMIC_RELEASE);
}

/* ---- contexts ---- */

static bool is_retained(umemCudaGpu const *gpu) {
  return __atomic_load_n(&session.retained, __ATOMIC_ACQUIRE) >> gpu->device & 1;
}

/* cuFile keeps buffers in the context, and does not notice when it ends. */
static bool retain(umemCudaGpu *gpu) {
  void *context;
  if (is_retained(gpu)) return true;
  if (gpu->rt->primary_retain(&context, gpu->device)) {
    gpu->rt->last_error();
    return false;
  }
  __atomic_fetch_or(&session.retained, (uint64_t)1 << gpu->device, __ATOMIC_RELEASE);
  return true;
}

/* ---- the way in ---- */

static int known_answer(void) { return __atomic_load_n(&session.answer, __ATOMIC_ACQUIRE); }

static umemCufileRt const *open_locked(umemCudaGpu *gpu) {
  if (known_answer() == notAsked) answer(gpu);
  return known_answer() == isThere && session.lineage == umem_fork_count() && retain(gpu)
             ? session.cufile
             : NULL;
}

umemCufileRt const *umemCudaGds_open(umemCudaGpu *gpu) {
  int known = known_answer();
  if (known == isAbsent || umemCudaGpu_is_inherited(gpu)) return NULL;
  if (known == isThere && is_retained(gpu) && session.lineage == umem_fork_count())
    return session.cufile;
  pthread_mutex_lock(&lock);
  umemCufileRt const *cufile = open_locked(gpu);
  pthread_mutex_unlock(&lock);
  return cufile;
}

void umemCudaGds_end(void) {
  pthread_mutex_lock(&lock);
  if (known_answer() == isThere && session.opened) session.cufile->driver_close();
  for (int d = 0; d < umemCudaMostDevices; d++)
    if (session.retained >> d & 1 && session.rt->primary_release(d)) session.rt->last_error();
  __atomic_store_n(&session.retained, 0, __ATOMIC_RELEASE);
  session.opened = false;
  __atomic_store_n(&session.answer, notAsked, __ATOMIC_RELEASE);
  pthread_mutex_unlock(&lock);
}

/* ---- codes ---- */

umemCudaGdsWords umemCudaGds_words(int code) {
  switch (code) {
  case umemCufileNoDriver:
  case umemCufileDriverClosing:
  case umemCufileNoPlatform:
  case umemCufileNoFile:
  case umemCufileNoDevice:
  case umemCufileBadMemory:
  case umemCufileMappingSize:
  case umemCufileMappingRange:
  case umemCufileBadFileType:
  case umemCufileBadFlags:
  case umemCufileNoDirectIO:
  case umemCufileDisabled:
  case umemCufileNoPinning:
  case umemCufileNoMemory:
    return (umemCudaGdsWords){.refusal = true};
  case umemCufileCudaError:
    return (umemCudaGdsWords){false, umemRuntimeError, true, "a call of CUDA's driver has failed"};
  case umemCufileBadPointer:
    return (umemCudaGdsWords){false, umemValueError, true, "the address is not in memory of a GPU"};
  case umemCufilePointerRange:
    return (umemCudaGdsWords){false, umemValueError, true, "the bytes exceed a block of the GPU"};
  case umemCufileContextMismatch:
  case umemCufileBadContext:
    return (umemCudaGdsWords){false, umemRuntimeError, true, "the memory is of another context"};
  case umemCufileNvfsError:
  case umemCufileNvfsInternal:
    return (umemCudaGdsWords){false, umemIOError, false, "the module nvidia-fs has failed"};
  case umemCufileNoPermission:
    return (umemCudaGdsWords){false, umemIOError, false, "permission denied"};
  case umemCufileIOError:
    return (umemCudaGdsWords){false, umemIOError, false, "input/output error"};
  default:
    return (umemCudaGdsWords){false, umemIOError, false, "an error of cuFile"};
  }
}
