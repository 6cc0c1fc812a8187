/* cuda_copy.c - what the CUDA contexts do with runs of bytes: set them, and move them to and from
 * host memory. */
#include "cuda/cuda_methods.h"
#include "base/thread.h"
#include "core/context.h"
#include "core/watch.h"
#include "cuda/cuda_error.h"
#include "cuda/cuda_event.h"
#include "cuda/cuda_scope.h"
#include "cuda/cuda_stage.h"
#include "cuda/cuda_stream.h"

/* Up to here the runtime copies pageable memory in the command itself, faster than umem can ask
 * whether the memory is pinned. */
enum { straight_most = 64 << 10 };

static bool is_unknown(umemCudaRt const *rt, void const *adr) {
  umemCudaMemory kind = umemCudaUnregistered;
  int device;
  if (rt->pointer(adr, &kind, &device)) rt->last_error(); /* the copy itself will report it */
  return kind == umemCudaUnregistered;
}

/* Whether CUDA knows nothing of the memory: it is not pinned, at one end at least. */
static bool is_pageable(umemCudaRt const *rt, void const *adr, size_t nbytes) {
  return is_unknown(rt, adr) || is_unknown(rt, (char const *)adr + nbytes - 1);
}

/* In one call of the runtime. By the manual a queued copy to pageable memory may still be unfinished on
 * return: whole asks for more. */
static int copy_straight(umemVirtual *ctx, void *dst, void const *src, size_t nbytes,
                         umemCudaDirection direction, bool whole) {
  umemCudaState *state = umemCuda_state_of(ctx);
  umemCudaRt const *rt = state->gpu->rt;
  if (!umem_can(ctx, umemOrdered)) {
    int error = rt->memcpy(dst, src, nbytes, direction);
    bool visible = umem_can(ctx, umemCpuWritable); /* to the CPU, which waits for no stream */
    return error || !visible ? error : umemCudaState_finish(state);
  }
  int error = rt->memcpy_async(dst, src, nbytes, direction, state->stream);
  return error || !whole ? error : umemCudaState_finish(state);
}

static void note_straight(umemVirtual *ctx, size_t nbytes, bool to_device, uint64_t begin) {
  umemRoutePlace device = umem_device_place(ctx, umemCuda_state_of(ctx)->gpu->device);
  umem_note_between(to_device ? NULL : &device, to_device ? &device : NULL, umemWayDma, nbytes, 1,
                    begin);
}

/* Moves between ctx and host memory. The direction is given although CUDA could see it from the addresses:
 * one that is not the device's any more would be taken for the host's, and the process crash.
 *
 * An ordered context may return before it is done when the host memory is pinned; all else is complete
 * on return. */
static void move(umemVirtual *ctx, uintptr_t adr, void *host, size_t nbytes,
                 umemCudaDirection direction) {
  umemCudaState *state = umemCuda_state_of(ctx);
  umemCudaRt const *rt = state->gpu->rt;
  umemCudaScope scope;
  if (!umemCudaScope_enter(&scope, ctx, state->gpu)) return;
  bool to_device = direction == umemCudaToDevice;
  void *dst = to_device ? (void *)adr : host;
  void const *src = to_device ? host : (void *)adr;
  bool ordered = umem_can(ctx, umemOrdered), is_long = nbytes > straight_most;
  bool pageable = (is_long || (ordered && !to_device)) && is_pageable(rt, host, nbytes);
  bool captured = pageable && ordered && umemCudaState_is_captured(state);
  bool staged =
      is_long && pageable && !captured && umemCuda_stage(ctx, state, adr, host, nbytes, direction);
  if (!staged) {
    if (pageable && ordered && !captured) captured = umemCudaState_is_captured(state); /* by now */
    uint64_t begin = umem_route_clock();
    int error =
        copy_straight(ctx, dst, src, nbytes, direction, pageable && !to_device && !captured);
    if (begin) note_straight(ctx, error ? 0 : nbytes, to_device, begin);
    umemCuda_check(ctx, state->gpu, error, "cannot copy %zu bytes %s 0x%jx", nbytes,
                   to_device ? "to" : "from", (uintmax_t)adr);
  }
  umemCudaScope_leave(&scope);
}

void umemCuda_copy_to(umemVirtual *ctx, uintptr_t src_adr, umemVirtual *that, uintptr_t dst_adr,
                      size_t nbytes) {
  (void)that;
  move(ctx, src_adr, (void *)dst_adr, nbytes, umemCudaToHost);
}

void umemCuda_copy_from(umemVirtual *ctx, uintptr_t dst_adr, umemVirtual *that, uintptr_t src_adr,
                        size_t nbytes) {
  (void)that;
  move(ctx, dst_adr, (void *)src_adr, nbytes, umemCudaToDevice);
}

/* What is queued on a stream; for memory that belongs to none, what may use it: all that precedes the end of
 * the legacy stream. */
static void finish_all(umemVirtual *ctx, umemCudaState *state) {
  if (umem_can(ctx, umemDeviceShared)) {
    umemCudaGpu_settle(state->gpu, ctx);
    return;
  }
  int error =
      umem_thread.apart ? umemCudaState_finish_apart(state, ctx) : umemCudaState_finish(state);
  umemCuda_check(ctx, state->gpu, error, "work on the stream has failed");
}

void umemCuda_synchronize(umemVirtual *ctx) {
  umemCudaState *state = umemCuda_state_of(ctx);
  umemCudaScope scope;
  if (!umemCudaScope_enter(&scope, ctx, state->gpu)) return;
  if (!umemCuda_refuse_capture(ctx, "nothing runs that could be waited for"))
    finish_all(ctx, state);
  umemCudaScope_leave(&scope);
}

void umemCuda_set(umemVirtual *ctx, uintptr_t adr, int c, size_t nbytes) {
  umemCudaState *state = umemCuda_state_of(ctx);
  umemCudaRt const *rt = state->gpu->rt;
  umemCudaScope scope;
  if (!umemCudaScope_enter(&scope, ctx, state->gpu)) return;
  int error = rt->memset_async((void *)adr, c, nbytes, state->stream);
  if (!error && !umem_can(ctx, umemOrdered)) error = umemCudaState_finish(state);
  umemCuda_check(ctx, state->gpu, error, "cannot set %zu bytes at 0x%jx", nbytes, (uintmax_t)adr);
  umemCudaScope_leave(&scope);
}

void umemCuda_info(umemVirtual *ctx, umemInfo *info) {
  umemCudaGpu *gpu = umemCuda_state_of(ctx)->gpu;
  umemCudaScope scope;
  if (!umemCudaScope_enter(&scope, ctx, gpu)) return;
  size_t available, capacity;
  int error = gpu->rt->memory_info(&available, &capacity);
  if (umemCuda_check(ctx, gpu, error, "cannot ask how much memory GPU %d has", gpu->device)) {
    info->capacity = capacity;
    info->available = available;
  }
  info->ordinal = gpu->device;
  _Static_assert(sizeof info->name >= sizeof gpu->name, "a GPU's name fits");
  for (size_t i = 0; i < sizeof gpu->name; i++) info->name[i] = gpu->name[i];
  umemCudaScope_leave(&scope);
}

int umemCuda_dlpack_device(umemVirtual *ctx, int *id) {
  *id = umemCuda_state_of(ctx)->gpu->device;
  return umemDLCUDA;
}
