/* cuda_share.c - memory of GPUs in several processes: handles for blocks of this one, and blocks of
 * others in its addresses. Threads: any.
 *
 * Work is ordered by events. Each context that shares has one event, which is recorded on its
 * stream whenever it shares a block. Its handle goes with that of the block, and the stream of the
 * context that attaches the block waits for it.
 *
 * A block is opened once for each GPU that uses it, and counted. The lock is held while CUDA opens
 * and closes it, so that two threads do not open one block twice. A block that is open holds its
 * GPU, so it may outlive the context that has attached it. */
#include "cuda/cuda_methods.h"
#include "core/context.h"

#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <umem/handle.h>
#include <unistd.h>

_Static_assert(sizeof((umemHandle *)0)->memory == sizeof(umemCudaIpc), "room for CUDA's handles");
_Static_assert(sizeof((umemHandle *)0)->event == sizeof(umemCudaIpc), "room for CUDA's handles");

/* ---- sharing ---- */

/* Records why bytes that are in no block cannot be shared. In the scope. */
static bool refuse(umemVirtual *ctx, umemCudaState *state, uintptr_t adr) {
  umemCudaMemory kind = umemCudaUnregistered;
  int device;
  if (state->gpu->rt->pointer((void const *)adr, &kind, &device)) state->gpu->rt->last_error();
  if (kind != umemCudaDeviceMemory)
    return UMEM_FAIL(ctx, umemIndexError, "0x%jx is in no live block of this %s", (uintmax_t)adr,
                     umem_get_device_name(ctx));
  return UMEM_FAIL(
      ctx, umemNotSupportedError,
      "0x%jx is in no block of this %s: what a pool maps page by page cannot be shared "
      "(make the pool with memory=chunks), nor what others have allocated",
      (uintmax_t)adr, umem_get_device_name(ctx));
}

/* Finds the block that has all of the bytes. In the scope. */
static bool find(umemVirtual *ctx, umemCudaState *state, uintptr_t adr, size_t nbytes,
                 umemFound *found) {
  umemSearch search;
  while ((search = umemCuda_find(ctx, adr, found)) == umemSearchBusy) sched_yield();
  if (search == umemSearchNone) return refuse(ctx, state, adr);
  size_t offset = adr - found->adr;
  if (nbytes <= found->nbytes - offset) return true;
  return UMEM_FAIL(ctx, umemIndexError,
                   "%zu bytes at 0x%jx are more than the block of %zu bytes has", nbytes,
                   (uintmax_t)adr, found->nbytes);
}

/* Makes the event of the context, once. */
static bool make_event(umemVirtual *ctx, umemCudaState *state) {
  umemCudaRt const *rt = state->gpu->rt;
  umemCudaIpc handle;
  void *event = NULL;
  if (state->event) return true;
  if (!umemCuda_check(ctx, state->gpu, rt->ipc_event_create(&event),
                      "cannot create an event for other processes"))
    return false;
  if (umemCuda_check(ctx, state->gpu, rt->ipc_event(&handle, event),
                     "cannot share an event with other processes")) {
    state->event_handle = handle;
    state->event = event;
    return true;
  }
  UMEM_CUDA_TRY_TWICE(rt, event_destroy(event));
  return false;
}

/* Records what is queued so far. */
static bool mark(umemVirtual *ctx, umemCudaState *state, umemHandle *handle) {
  UMEM_HOLDING(); /* the program's hook must not be called under the lock */
  umemCudaShared_lock();
  bool good =
      make_event(ctx, state) &&
      umemCuda_check(ctx, state->gpu, state->gpu->rt->event_record(state->event, state->stream),
                     "cannot record an event for other processes");
  if (good) memcpy(handle->event, &state->event_handle, sizeof handle->event);
  umemCudaShared_unlock();
  return good;
}

/* In the scope. */
static bool describe(umemVirtual *ctx, umemCudaState *state, umemFound const *block,
                     umemHandle *handle, int *fd) {
  if (umemCuda_refuse_capture(ctx, "share memory before or after it") ||
      !state->source->describe(ctx, block->adr, handle, fd) || !mark(ctx, state, handle))
    return false;
  if (!umemCuda_check(ctx, state->gpu, state->gpu->rt->uuid(handle->gpu, state->gpu->device),
                      "cannot tell which GPU it is"))
    return false;
  __atomic_store_n(&state->shares, true, __ATOMIC_RELAXED);
  handle->identity[2] = umemCudaShared_enter(state, state->gpu, block->adr, block->nbytes);
  return handle->identity[2] || UMEM_FAIL(ctx, umemMemoryError, "no memory to remember a block");
}

bool umemCuda_share(umemVirtual *ctx, uintptr_t adr, size_t nbytes, umemHandle *handle, int *fd) {
  umemCudaState *state = umemCuda_state_of(ctx);
  umemFound block;
  umemCudaScope scope;
  uint64_t before = umem_thread.failures;
  if (!umemCudaScope_enter(&scope, ctx, state->gpu)) return false;
  if (find(ctx, state, adr, nbytes, &block)) {
    handle->offset = adr - block.adr;
    handle->size = block.nbytes;
    umemCudaShared_process(handle->identity);
    describe(ctx, state, &block, handle, fd);
  }
  umemCudaScope_leave(&scope);
  return umem_thread.failures == before;
}

/* ==== blocks of other processes ==== */

/* A pool of another process. */
typedef struct Pool {
  struct Pool *next;
  uint64_t process[2], number; /* that the process gave */
  umemCudaGpu *gpu;
  void *pool;
  size_t users; /* blocks */
} Pool;

/* A block of another process. */
typedef struct Opened {
  struct Opened *next;
  uint64_t identity[4], memory[8]; /* of the handle */
  umemCudaGpu *gpu;                /* that uses it; one use of it is held */
  Pool *pool;                      /* NULL: of cudaMalloc */
  uintptr_t base;
  size_t nbytes;
  size_t attached;
} Opened;

/* Under the lock. */
static Opened *blocks;
static Pool *pools;

#define CANNOT_ATTACH "the handle cannot be attached: "

/* ---- the GPU ---- */

/* The number of the GPU in this process; -1 if there is none, or CUDA fails. */
static int device_of(umemCudaGpu *gpu, umemHandle const *handle) {
  for (int device = 0; device < gpu->devices; device++) {
    uint64_t uuid[2];
    if (gpu->rt->uuid(uuid, device))
      gpu->rt->last_error();
    else if (!memcmp(uuid, handle->gpu, sizeof uuid))
      return device;
  }
  return -1;
}

/* The number of the GPU that has the memory, if the GPU of ctx can use it; -1 after a failure. */
static int find_gpu(umemVirtual *ctx, umemCudaGpu *gpu, umemHandle const *handle) {
  int device = device_of(gpu, handle);
  if (device < 0)
    return UMEM_FAIL_AS(-1, ctx, umemNotSupportedError,
                        CANNOT_ATTACH "its memory is on a GPU that this process cannot use");
  int can = device == gpu->device;
  if (!can && gpu->rt->can_access_peer(&can, gpu->device, device)) gpu->rt->last_error();
  if (can) return device; /* CUDA enables the access when it opens the memory */
  return UMEM_FAIL_AS(-1, ctx, umemNotSupportedError,
                      CANNOT_ATTACH "GPU %d cannot reach the memory of GPU %d", gpu->device,
                      device);
}

/* ---- pools of others ---- */

static Pool *find_pool(umemCudaGpu const *gpu, umemHandle const *handle) {
  Pool *one = pools;
  while (one && (one->gpu != gpu || one->number != handle->identity[3] ||
                 memcmp(one->process, handle->identity, sizeof one->process)))
    one = one->next;
  return one;
}

static void leave_pool(Pool *pool) {
  Pool **link = &pools;
  if (!pool || --pool->users) return;
  while (*link != pool) link = &(*link)->next;
  *link = pool->next;
  void *handle = pool->pool;
  UMEM_CUDA_TRY_TWICE(pool->gpu->rt, pool_destroy(handle));
  free(pool);
}

/* What is to be opened. */
typedef struct Wanted {
  umemHandle const *handle;
  int fd;     /* of its pool, or -1 */
  int device; /* that has the memory */
} Wanted;

static int allow(umemCudaGpu *gpu, Wanted const *wanted, void *pool) {
  return wanted->device == gpu->device ? 0 : gpu->rt->pool_allow(pool, gpu->device);
}

/* CUDA takes the number of the descriptor as a pointer, and refuses 0. */
static int import_pool(umemCudaGpu *gpu, void **pool, int fd) {
  if (fd) return gpu->rt->pool_import(pool, fd);
  int other = fcntl(fd, F_DUPFD_CLOEXEC, 1);
  if (other < 0) return umemCudaOutOfMemory;
  int error = gpu->rt->pool_import(pool, other);
  close(other);
  return error;
}

/* One use of the pool; NULL after a failure. */
static Pool *enter_pool(umemVirtual *ctx, umemCudaGpu *gpu, Wanted const *wanted) {
  umemHandle const *handle = wanted->handle;
  Pool *pool = find_pool(gpu, handle);
  if (pool) {
    pool->users++;
    return pool;
  }
  if (wanted->fd < 0)
    return UMEM_FAIL_NULL(ctx, umemValueError,
                          CANNOT_ATTACH
                          "it needs its descriptor, with which umem_send and umem_receive pass it");
  pool = calloc(1, sizeof *pool);
  if (!pool) return UMEM_FAIL_NULL(ctx, umemMemoryError, CANNOT_ATTACH "no memory for a pool");
  *pool = (Pool){.next = pools, .number = handle->identity[3], .gpu = gpu, .users = 1};
  memcpy(pool->process, handle->identity, sizeof pool->process);
  int error = import_pool(gpu, &pool->pool, wanted->fd);
  if (!umemCuda_check(ctx, gpu, error, "cannot open a memory pool of another process")) {
    free(pool);
    return NULL;
  }
  pools = pool;
  if (umemCuda_check(ctx, gpu, allow(gpu, wanted, pool->pool),
                     "cannot use a memory pool of another GPU"))
    return pool;
  leave_pool(pool);
  return NULL;
}

/* ---- opening and closing ---- */

static Opened *find_opened(umemCudaGpu const *gpu, umemHandle const *handle) {
  Opened *one = blocks;
  while (one && (one->gpu != gpu || memcmp(one->identity, handle->identity, sizeof one->identity) ||
                 memcmp(one->memory, handle->memory, sizeof one->memory)))
    one = one->next;
  return one;
}

/* Closes the memory. In the order of stream, if it is of a pool. */
static int close_memory(Opened *block, void *stream) {
  umemCudaRt const *rt = block->gpu->rt;
  void *adr = (void *)block->base;
  return block->pool ? rt->pool_free(adr, stream) : rt->ipc_close(adr);
}

/* The error of the first time may be about work before. */
static void close_again(Opened *block, void *stream) {
  if (close_memory(block, stream)) block->gpu->rt->last_error();
}

/* Everybody can write any size into a handle: CUDA knows how large the allocation is. */
static bool check_size(umemVirtual *ctx, Opened const *block, umemHandle const *handle) {
  uintptr_t base = 0;
  size_t nbytes = 0;
  int error = block->gpu->rt->range((void *)block->base, &base, &nbytes);
  if (!umemCuda_check(ctx, block->gpu, error, "cannot tell how much memory the handle has"))
    return false;
  if (block->base - base <= nbytes && handle->size <= nbytes - (block->base - base)) return true;
  return UMEM_FAIL(ctx, umemValueError, CANNOT_ATTACH "its bytes are not in its memory");
}

static bool open_memory(umemVirtual *ctx, Opened *block, Wanted const *wanted) {
  umemCudaRt const *rt = block->gpu->rt;
  umemCudaIpc memory;
  void *adr = NULL;
  int error;
  memcpy(&memory, wanted->handle->memory, sizeof memory);
  if (wanted->handle->kind == umemHandleCudaPool) {
    block->pool = enter_pool(ctx, block->gpu, wanted);
    if (!block->pool) return false;
    error = rt->pool_import_pointer(&adr, block->pool->pool, &memory);
  } else {
    error = rt->ipc_open(&adr, &memory);
  }
  block->base = (uintptr_t)adr;
  if (umemCuda_check(ctx, block->gpu, error,
                     "the handle cannot be attached; has its process freed the memory, or ended?"))
    return true;
  leave_pool(block->pool);
  return false;
}

/* Opens a block that is not open yet. NULL after a failure. */
static Opened *open_block(umemVirtual *ctx, umemCudaState *state, Wanted const *wanted) {
  umemHandle const *handle = wanted->handle;
  Opened *block = calloc(1, sizeof *block);
  if (!block)
    return UMEM_FAIL_NULL(ctx, umemMemoryError, CANNOT_ATTACH "no memory to remember a block");
  *block = (Opened){.next = blocks, .gpu = state->gpu, .nbytes = (size_t)handle->size};
  memcpy(block->identity, handle->identity, sizeof block->identity);
  memcpy(block->memory, handle->memory, sizeof block->memory);
  if (open_memory(ctx, block, wanted)) {
    if (check_size(ctx, block, handle) && umemCudaGpu_open(ctx, state->gpu->device))
      return blocks = block;
    if (close_memory(block, state->stream)) close_again(block, state->stream);
    leave_pool(block->pool);
  }
  free(block);
  return NULL;
}

/* Ends one attachment, and with the last one the mapping, whose work the caller has waited for. */
static int leave_block(Opened *block, void *stream) {
  Opened **link = &blocks;
  if (block->attached > 1) {
    block->attached--;
    return umemCudaSuccess;
  }
  int error = close_memory(block, stream);
  if (error) return error;
  while (*link != block) link = &(*link)->next;
  *link = block->next;
  leave_pool(block->pool);
  umemCudaGpu_close(block->gpu);
  free(block);
  return umemCudaSuccess;
}

/* ---- order ---- */

/* Later work of the context comes after event. */
static bool wait_for_event(umemVirtual *ctx, umemCudaState *state, void *event) {
  return umemCuda_check(ctx, state->gpu, state->gpu->rt->stream_wait(state->stream, event),
                        "cannot wait for the work of the process that shares the memory");
}

static bool follow_handle(umemVirtual *ctx, umemCudaState *state, umemHandle const *handle) {
  umemCudaIpc words;
  void *event = NULL;
  memcpy(&words, handle->event, sizeof words);
  int error = state->gpu->rt->ipc_event_open(&event, &words);
  if (!umemCuda_check(ctx, state->gpu, error,
                      "cannot open the event of the process that shares the memory"))
    return false;
  bool good = wait_for_event(ctx, state, event);
  UMEM_CUDA_TRY_TWICE(state->gpu->rt, event_destroy(event));
  return good;
}

/* ---- attaching ---- */

static bool is_of_this_process(umemHandle const *handle) {
  uint64_t ours[2];
  umemCudaShared_process(ours);
  return !memcmp(ours, handle->identity, sizeof ours);
}

/* A block of this process, at its own address. */
static uintptr_t attach_own(umemVirtual *ctx, umemCudaState *state, umemHandle const *handle) {
  umemCudaShared *shared = umemCudaShared_find(handle->identity[2]);
  if (!shared || shared->nbytes != handle->size)
    return UMEM_FAIL_AS(0, ctx, umemIOError, CANNOT_ATTACH "its block is freed");
  if (shared->gpu != state->gpu)
    return UMEM_FAIL_AS(0, ctx, umemTypeError,
                        CANNOT_ATTACH "its block is on another GPU of this process");
  if (shared->state != state && !wait_for_event(ctx, state, shared->state->event)) return 0;
  shared->attached++;
  return shared->base;
}

static uintptr_t attach_other(umemVirtual *ctx, umemCudaState *state, umemHandle const *handle,
                              int fd) {
  Wanted wanted = {handle, fd, find_gpu(ctx, state->gpu, handle)};
  if (wanted.device < 0) return 0;
  Opened *block = find_opened(state->gpu, handle);
  if (block && block->nbytes != handle->size)
    return UMEM_FAIL_AS(0, ctx, umemValueError, CANNOT_ATTACH "its bytes are not in its memory");
  if (!block) block = open_block(ctx, state, &wanted);
  if (!block) return 0;
  block->attached++;
  if (follow_handle(ctx, state, handle)) return block->base;
  int error = leave_block(block, state->stream);
  if (error)
    error = leave_block(block, state->stream); /* the first error may be about work before */
  if (error) state->gpu->rt->last_error();
  return 0;
}

/* The address of the block; 0 after a failure. In the scope. */
static uintptr_t attach(umemVirtual *ctx, umemCudaState *state, umemHandle const *handle, int fd) {
  if (umemCuda_refuse_capture(ctx, "attach memory before or after it")) return 0;
  UMEM_HOLDING(); /* the program's hook must not be called under the lock */
  umemCudaShared_lock();
  uintptr_t base = is_of_this_process(handle) ? attach_own(ctx, state, handle)
                                              : attach_other(ctx, state, handle, fd);
  umemCudaShared_unlock();
  return base;
}

bool umemCuda_attach(umemVirtual *ctx, umemHandle const *handle, int fd, uintptr_t *adr) {
  umemCudaState *state = umemCuda_state_of(ctx);
  umemCudaScope scope;
  uint64_t before = umem_thread.failures;
  if (handle->kind != umemHandleCuda && handle->kind != umemHandleCudaPool) return false;
  if (!umemCudaScope_enter(&scope, ctx, state->gpu)) return false;
  uintptr_t base = attach(ctx, state, handle, fd);
  umemCudaScope_leave(&scope);
  if (umem_thread.failures == before) {
    *adr = base + (uintptr_t)handle->offset;
    return true;
  }
  if (base) umemCuda_detach(ctx, base); /* it is leaving that has failed */
  return false;
}

/* ---- detaching ---- */

static Opened *find_block_at(umemCudaGpu const *gpu, uintptr_t adr) {
  Opened *one = blocks;
  while (one && (one->gpu != gpu || adr - one->base >= one->nbytes)) one = one->next;
  return one;
}

/* Whether something is attached there; records a failure if it cannot be detached. In the scope,
 * under the lock. */
static bool detach(umemVirtual *ctx, umemCudaState *state, uintptr_t adr) {
  umemCudaShared *own = umemCudaShared_at(state->gpu, adr);
  if (own) {
    own->attached--;
    return true;
  }
  Opened *block = find_block_at(state->gpu, adr);
  if (!block) return false;
  if (block->attached == 1) {
    if (umemCuda_refuse_capture(ctx, "detach memory before or after it")) return true;
    bool done = state->stream ? umemCuda_check(ctx, state->gpu, umemCudaState_finish(state),
                                               "work on the stream has failed")
                              : umemCudaGpu_settle(state->gpu, ctx);
    if (!done) return true;
  }
  umemCuda_check(ctx, state->gpu, leave_block(block, state->stream),
                 "cannot detach the memory at 0x%jx", (uintmax_t)adr);
  return true;
}

bool umemCuda_detach(umemVirtual *ctx, uintptr_t adr) {
  umemCudaState *state = umemCuda_state_of(ctx);
  umemCudaScope scope;
  umemAttempt attempt;
  uint64_t before = umem_thread.failures;
  if (!umemCudaScope_enter(&scope, ctx, state->gpu)) return false;
  umemAttempt_begin(&attempt);
  umemCudaShared_lock();
  bool found = detach(ctx, state, adr);
  umemCudaShared_unlock();
  umemAttempt_end(&attempt);
  umemAttempt_record(&attempt);
  umemCudaScope_leave(&scope);
  return found && umem_thread.failures == before;
}
