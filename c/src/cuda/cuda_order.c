/* cuda_order.c - how streams wait for one another: by events, so that the host goes on. */
#include "base/thread.h"
#include "core/context.h"
#include "cuda/cuda_error.h"
#include "cuda/cuda_event.h"
#include "cuda/cuda_methods.h"
#include "cuda/cuda_scope.h"
#include "cuda/cuda_stream.h"

/* A stream that waits for a captured stream becomes a part of the capture. A captured stream cannot wait for work
 * outside of the capture. umem checks this when it records the event, because another thread may begin a capture at
 * any time. */
static bool can_wait(umemVirtual *ctx, umemCudaState *state, umemCudaState *other) {
  umemCudaRt const *rt = state->gpu->rt;
  umemCudaCapture mine = umemCudaNoCapture, theirs = umemCudaNoCapture;
  uint64_t my_id = 0, their_id = 0;
  if (rt->stream_capture(state->stream, &mine, &my_id) ||
      rt->stream_capture(other->stream, &theirs, &their_id))
    rt->last_error();
  bool inside = mine != umemCudaNoCapture && theirs != umemCudaNoCapture && my_id == their_id;
  if (inside || (mine == umemCudaNoCapture && !(umem_thread.apart && theirs != umemCudaNoCapture)))
    return true;
  umemVirtual_fail(ctx, umemNotSupportedError,
                   "%s stream is being captured into a graph: it cannot wait for work outside",
                   mine == umemCudaNoCapture ? "the other" : "the");
  return false;
}

/* Records the point up to which the work of state is queued, in an event of its GPU. */
static bool mark(umemVirtual *ctx, umemCudaState *state, void *event) {
  umemCudaScope scope;
  if (!umemCudaScope_enter(&scope, ctx, state->gpu)) return false;
  bool marked = umemCuda_check(ctx, state->gpu, state->gpu->rt->event_record(event, state->stream),
                               "cannot record an event");
  umemCudaScope_leave(&scope);
  return marked;
}

/* Again, where the event was recorded in a capture that is over by now. */
static void wait_for_event(umemVirtual *ctx, umemCudaState *state, umemCudaState *other,
                           void *event) {
  umemCudaRt const *rt = state->gpu->rt;
  int error = umemCudaCapturedEvent;
  for (int tries = 0; tries < umemCudaCaptureTries && umemCuda_is_of_captured_event(error);
       tries++) {
    if (tries) rt->last_error();
    if (!mark(ctx, other, event) || !can_wait(ctx, state, other)) return;
    error = rt->stream_wait(state->stream, event);
  }
  umemCuda_check(ctx, state->gpu, error, "cannot wait for another stream");
}

static void *take_event_of(umemVirtual *ctx, umemCudaGpu *gpu) {
  umemCudaScope scope;
  if (!umemCudaScope_enter(&scope, ctx, gpu)) return NULL;
  void *event = umemCudaGpu_take_event(gpu, ctx);
  umemCudaScope_leave(&scope);
  return event;
}

/* For memory that belongs to no stream: kernels and unfinished copies on it are on the legacy stream. A capture cannot
 * wait for them. */
static void wait_for_legacy(umemVirtual *ctx, umemCudaState *state, umemCudaState *other) {
  if (state->gpu == other->gpu && !state->stream) return;
  if (!umemCudaState_is_captured(state))
    umemCudaGpu_precedes(other->gpu, ctx, state->stream);
  else if (umem_thread.apart)
    umemCuda_refuse_capture(ctx, "it cannot wait for work outside");
}

/* Lets the stream of state wait for what is queued on other, whose state is that. Failures go to ctx. */
static void follow(umemVirtual *ctx, umemCudaState *state, umemVirtual *other,
                   umemCudaState *that) {
  umemCudaScope scope;
  if (!umemCudaScope_enter(&scope, ctx, state->gpu)) return;
  void *event = umem_can(other, umemOrdered) ? take_event_of(ctx, that->gpu) : NULL;
  if (event) {
    wait_for_event(ctx, state, that, event);
    umemCudaGpu_give_event(that->gpu, event);
  } else if (!umem_can(other, umemOrdered)) {
    wait_for_legacy(ctx, state, that);
  }
  umemCudaScope_leave(&scope);
}

void umemCuda_wait(umemVirtual *ctx, umemVirtual *other) {
  other = umem_innermost(other);
  umemCudaState *that = umemCuda_state_of(other);
  if (that)
    follow(ctx, umemCuda_state_of(ctx), other, that);
  else
    umem_synchronize(other);
}

/* ---- streams of the program ---- */

/* What can_wait does not see. Without a stream of ctx its kernels are on the legacy stream, for which a capture cannot
 * wait; and the legacy stream cannot wait for a capture. */
static bool refuse_capture(umemVirtual *ctx, umemCudaState const *state,
                           umemCudaState const *behind) {
  bool ordered = umem_can(ctx, umemOrdered);
  umemCudaScope scope;
  if (ordered && behind->stream) return false;
  if (!umemCudaScope_enter(&scope, ctx, state->gpu)) return true;
  bool captured = umemCudaState_is_captured(ordered ? state : behind);
  umemCudaScope_leave(&scope);
  if (captured)
    umemVirtual_fail(ctx, umemNotSupportedError, "the stream is being captured into a graph: %s",
                     ordered ? "the legacy default stream cannot wait for it"
                             : "it cannot wait for work outside");
  return captured;
}

/* The stream may be one of another GPU. Legacy and per-thread are those of the GPU of ctx. */
void umemCuda_stream_wait(umemVirtual *ctx, uintptr_t stream) {
  umemCudaState *state = umemCuda_state_of(ctx);
  umemCudaState behind = {.gpu = state->gpu,
                          .stream = stream == umemCudaLegacyHandle ? NULL : (void *)stream};
  if (behind.stream != state->stream && !refuse_capture(ctx, state, &behind))
    follow(ctx, &behind, ctx, state);
}
