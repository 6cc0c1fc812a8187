/* cuda_share.c - see cuda_share.h. */
#include "cuda/cuda_share.h"
#include "base/thread.h"
#include "core/context.h"
#include "core/status.h"
#include "cuda/cuda_error.h"
#include "cuda/cuda_event.h"
#include "cuda/cuda_scope.h"
#include "cuda/cuda_shared.h"
#include "cuda/cuda_stream.h"

#include <sched.h>
#include <string.h>
#include <umem/handle.h>

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
  umemAttempt attempt; /* the program's hook must not be called under the lock */
  umemAttempt_begin(&attempt);
  umemCudaShared_lock();
  bool good =
      make_event(ctx, state) &&
      umemCuda_check(ctx, state->gpu, state->gpu->rt->event_record(state->event, state->stream),
                     "cannot record an event for other processes");
  if (good) memcpy(handle->event, &state->event_handle, sizeof handle->event);
  umemCudaShared_unlock();
  umemAttempt_end(&attempt);
  umemAttempt_record(&attempt);
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
