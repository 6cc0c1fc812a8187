/* cuda_gds.c - whether cuFile moves bytes between files and GPUs without host memory, and copies by
 * it.
 *
 * cuFile has a compatibility mode: where there is no direct path, it copies through host memory, as
 * umem does by itself, and no function reports this for a file. So umem uses cuFile only if its
 * configuration forbids that mode. cuFile then refuses the files that it cannot serve.
 *
 * cuFile's calls block the calling thread, and several of them keep a disk busy: so several threads
 * take pieces of the copy, in turn. They need whole pages of the file; the parts of pages at both
 * ends go through the page cache and host memory. cuFile knows nothing of streams, so the copy
 * waits for the stream first.
 *
 * The memory is not registered with cuFile: that takes address space of the GPU (BAR1), which can
 * be small. cuFile then transfers to device memory of its own and copies within the GPU. */
#include "cuda/cuda_methods.h"
#include "base/number.h"
#include "core/copy.h"
#include "core/threads.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

/* ==== whether there is a direct path ==== */

enum { notAsked, isAbsent, isThere };

/* Protects the session. */
UMEM_FORKING_LOCK(lock)

static struct {
  int answer;        /* one of the three; atomic */
  unsigned lineage;  /* umem_fork_count() when it was given */
  uint64_t retained; /* bit d: the context of device d; atomic */
  bool opened;       /* the driver, by umem */
  umemCudaRt const *rt;
  umemCufileRt const *cufile;
} session;

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
  if (!cufile) return false;
  UMEM_CUDA_SCOPE(NULL, gpu, false);
  session.cufile = cufile;
  return open_driver(cufile, &session.opened);
}

static void answer(umemCudaGpu *gpu) {
  umemAttempt forgotten; /* the program has not asked for cuFile */
  umemAttempt_begin(&forgotten);
  bool there = ask(gpu);
  umemAttempt_end(&forgotten);
  session.rt = gpu->rt;
  session.lineage = umem_fork_count();
  if (!there)
    UMEM_DECIDED(umemDecisionFallbacks, NULL,
                 "cuFile has no direct path to GPU %d: files are copied through host memory%s%s",
                 gpu->device, umemAttempt_failed(&forgotten) ? ": " : "", forgotten.text);
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

/* What a negative result of a transfer means. */
typedef struct Words {
  bool refusal;        /* cuFile cannot do this here: another route may */
  umemStatusType type; /* the status that stands for it otherwise */
  bool of_gpu;         /* it is about the GPU, not about the file */
  char const *words;   /* static */
} Words;

/* code: positive, greater than umemCufileBase. */
static Words words_of(int code) {
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
    return (Words){.refusal = true};
  case umemCufileCudaError:
    return (Words){false, umemRuntimeError, true, "a call of CUDA's driver has failed"};
  case umemCufileBadPointer:
    return (Words){false, umemValueError, true, "the address is not in memory of a GPU"};
  case umemCufilePointerRange:
    return (Words){false, umemValueError, true, "the bytes exceed a block of the GPU"};
  case umemCufileContextMismatch:
  case umemCufileBadContext:
    return (Words){false, umemRuntimeError, true, "the memory is of another context"};
  case umemCufileNvfsError:
  case umemCufileNvfsInternal:
    return (Words){false, umemIOError, false, "the module nvidia-fs has failed"};
  case umemCufileNoPermission:
    return (Words){false, umemIOError, false, "permission denied"};
  case umemCufileIOError:
    return (Words){false, umemIOError, false, "input/output error"};
  default:
    return (Words){false, umemIOError, false, "an error of cuFile"};
  }
}

/* ==== copies ==== */

enum {
  page = 4096,
  piece_bytes = 4 << 20 /* kvikIO's default, too */
};

typedef struct Transfer {
  umemVirtual *ctx, *other;
  umemCudaGpu *gpu;
  umemCufileRt const *cufile;
  umemDirectFile const *file;
  void *handle; /* of the file, registered */
  bool to_device;
  void *device;    /* of the first byte; never dereferenced */
  uint64_t offset; /* of it in the file; begins a page */
  size_t nbytes;   /* whole pages */
  unsigned threads;
  size_t next;  /* bytes of pieces that somebody has taken; atomic, as are the three below */
  size_t moved; /* bytes of pieces that cuFile has moved */
  bool over;    /* take no other */
  bool failed;  /* a failure was recorded; otherwise, if over, cuFile has stopped */
  bool refused; /* cuFile cannot transfer this file; atomic, too */
} Transfer;

/* ---- failures ---- */

static bool stop(Transfer *transfer, bool failed) {
  if (failed) __atomic_store_n(&transfer->failed, true, __ATOMIC_RELAXED);
  __atomic_store_n(&transfer->over, true, __ATOMIC_RELAXED);
  return false;
}

/* What is refused because of the file system will be refused again. */
static bool refuse(Transfer *transfer) {
  __atomic_store_n(&transfer->refused, true, __ATOMIC_RELAXED);
  return stop(transfer, false);
}

/* What a file system answers that has no such transfers. */
static bool is_refusal(int error) {
  return error == EINVAL || error == EOPNOTSUPP || error == ENOSYS || error == ENODEV;
}

static void fail(Transfer const *transfer, umemVirtual *ctx, umemStatusType type, uint64_t offset,
                 size_t size, char const *cause, int code) {
  char number[32] = "";
  if (code) snprintf(number, sizeof number, " (cuFile error %d)", code);
  umemVirtual_fail(ctx, type, "%s: cannot transfer %zu bytes at %" PRIu64 " of %s %s GPU %d: %s%s",
                   transfer->to_device ? "cuFileRead" : "cuFileWrite", size, offset,
                   transfer->file->label, transfer->to_device ? "to" : "from",
                   transfer->gpu->device, cause, number);
}

/* A transfer has returned result, which is no progress. */
static bool give_up(Transfer *transfer, ssize_t result, int error, uint64_t offset, size_t size) {
  if (result == 0) return stop(transfer, false); /* at the end of the file, which others have cut */
  if (result >= -umemCufileBase) {
    if (result == -1 && is_refusal(error)) return refuse(transfer);
    fail(transfer, transfer->other, umemIOError, offset, size,
         UMEM_WORDS(result == -1 ? error : EIO), 0);
    return stop(transfer, true);
  }
  int code = result < -INT32_MAX ? INT32_MAX : (int)-result;
  Words cause = words_of(code);
  if (cause.refusal) return stop(transfer, false); /* it may be short of memory, say */
  fail(transfer, cause.of_gpu ? transfer->ctx : transfer->other, cause.type, offset, size,
       cause.words, code);
  return stop(transfer, true);
}

/* ---- one thread ---- */

static ssize_t call(Transfer const *transfer, size_t at, size_t size, int *error) {
  umemCufileRt const *cufile = transfer->cufile;
  off_t offset = (off_t)(transfer->offset + at);
  ssize_t result;
  do {
    errno = 0;
    result = transfer->to_device
                 ? cufile->read(transfer->handle, transfer->device, size, offset, (off_t)at)
                 : cufile->write(transfer->handle, transfer->device, size, offset, (off_t)at);
    *error = errno;
  } while (result == -1 && *error == EINTR);
  return result;
}

/* A short transfer goes on at a page. */
static bool move_piece(Transfer *transfer, size_t at, size_t size) {
  while (size) {
    int error;
    ssize_t moved = call(transfer, at, size, &error);
    if (moved < 0 || (size_t)moved > size)
      return give_up(transfer, moved < 0 ? moved : -1, moved < 0 ? error : EIO,
                     transfer->offset + at, size);
    size_t whole = (size_t)moved == size ? size : (size_t)moved / page * page;
    if (!whole) return give_up(transfer, 0, 0, transfer->offset + at, size);
    at += whole;
    size -= whole;
  }
  return true;
}

/* Moves size bytes as move, noted for the route of the copy. What cuFile refuses is left to other
 * routes, which note it. */
static bool move_noted(Transfer *transfer, size_t at, size_t size) {
  uint64_t begin = umem_route_clock();
  bool good = move_piece(transfer, at, size);
  if (!begin || !(good || __atomic_load_n(&transfer->failed, __ATOMIC_RELAXED))) return good;
  umemCuda_note(transfer->ctx, NULL, transfer->to_device, umemWayGds, good ? size : 0,
                transfer->threads, begin);
  return good;
}

static void move_pieces(void *job, unsigned thread) {
  (void)thread;
  Transfer *transfer = job;
  umemCudaScope scope; /* contexts are current for one thread */
  if (!umemCudaScope_enter(&scope, transfer->ctx, transfer->gpu)) {
    stop(transfer, true);
    return;
  }
  while (!__atomic_load_n(&transfer->over, __ATOMIC_RELAXED)) {
    size_t at = __atomic_fetch_add(&transfer->next, piece_bytes, __ATOMIC_RELAXED);
    if (at >= transfer->nbytes) break;
    size_t rest = transfer->nbytes - at;
    size_t size = umem_lesser(rest, piece_bytes);
    if (!move_noted(transfer, at, size)) break;
    __atomic_fetch_add(&transfer->moved, size, __ATOMIC_RELAXED);
  }
  umemCudaScope_leave(&scope);
}

/* ---- the whole ---- */

/* Waits for what is queued on the stream of state: an event, because to wait for the legacy stream
 * itself is to wait for its own work alone. False, with nothing recorded, if that fails, or if a
 * capture has begun. In the scope. */
static bool settle(umemVirtual *ctx, umemCudaState const *state) {
  umemCudaRt const *rt = state->gpu->rt;
  UMEM_FORGETTING(); /* the caller's other routes meet what is really wrong */
  void *event = umemCudaGpu_take_event(state->gpu, ctx);
  int error = event ? rt->event_record(event, state->stream) : umemCudaInvalidHandle;
  if (!error && umem_can(ctx, umemOrdered) && umemCudaState_is_captured(state))
    error = umemCudaCaptureUnsupported;
  if (!error) error = rt->event_synchronize(event);
  umemCudaGpu_give_event(state->gpu, event);
  if (error) rt->last_error();
  return !error;
}

/* Registers the file and moves the pages. Whether they were moved or a failure recorded. The stream
 * was not captured when the copy was planned. */
static bool move(Transfer *transfer, umemCudaState const *state) {
  umemCufileRt const *cufile = transfer->cufile;
  umemCufileFile file = {.type = umemCufileDescriptor, .handle.fd = transfer->file->fd};
  UMEM_CUDA_SCOPE(transfer->ctx, transfer->gpu, !stop(transfer, true));
  if (cufile->handle_register(&transfer->handle, &file).code) return refuse(transfer);
  bool ready = settle(transfer->ctx, state);
  transfer->threads = umem_parallel_pieces(transfer->nbytes, piece_bytes, umemParallelMost);
  if (ready) umem_parallel(transfer->threads, move_pieces, transfer);
  cufile->handle_deregister(transfer->handle);
  return ready && (!transfer->over || transfer->failed);
}

/* Bytes beside the pages, through host memory. */
static void copy_end(Transfer const *transfer, uintptr_t device_adr, uintptr_t other_adr,
                     size_t nbytes) {
  if (!nbytes) return;
  if (transfer->to_device)
    umem_copy_buffered(transfer->other, other_adr, transfer->ctx, device_adr, nbytes);
  else
    umem_copy_buffered(transfer->ctx, device_adr, transfer->other, other_adr, nbytes);
}

bool umemCudaGds_copy(umemVirtual *ctx, uintptr_t device_adr, umemVirtual *other,
                      uintptr_t other_adr, size_t nbytes, umemCudaDirection direction) {
  umemCudaState *state = umemCuda_state_of(ctx);
  umemDirectFile file;
  bool to_device = direction == umemCudaToDevice;
  if (nbytes < umemCudaGdsFrom || !UMEM_SLOT(other, direct_file)) return false;
  umemCufileRt const *cufile = umemCudaGds_open(state->gpu);
  if (!cufile || !other->vptr->direct_file(other, other_adr, nbytes,
                                           to_device ? umemReadable : umemWritable, &file))
    return false;
  size_t head = (size_t)(-file.offset % page), whole = (nbytes - head) / page * page;
  Transfer transfer = {.ctx = ctx,
                       .other = other,
                       .gpu = state->gpu,
                       .cufile = cufile,
                       .file = &file,
                       .to_device = to_device,
                       .device = (void *)(device_adr + head),
                       .offset = file.offset + head,
                       .nbytes = whole};
  bool moved = move(&transfer, state);
  file.moved = transfer.moved;
  file.refused = transfer.refused;
  file.release(other, &file);
  if (!moved || transfer.failed) return moved;
  copy_end(&transfer, device_adr, other_adr, head);
  copy_end(&transfer, device_adr + head + whole, other_adr + head + whole, nbytes - head - whole);
  return true;
}
