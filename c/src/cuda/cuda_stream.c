/* cuda_stream.c - see cuda_stream.h. */
#include "cuda/cuda_stream.h"
#include "cuda/cuda_error.h"
#include "cuda/cuda_event.h"

bool umemCudaState_is_captured(umemCudaState const *state) {
  umemCudaRt const *rt = state->gpu->rt;
  umemCudaCapture capture = umemCudaNoCapture;
  if (rt->stream_capture(state->stream, &capture, NULL)) rt->last_error();
  return capture != umemCudaNoCapture;
}

bool umemCuda_refuse_capture(umemVirtual *ctx, char const *advice) {
  if (!umemCudaState_is_captured(umemCuda_state_of(ctx))) return false;
  umemVirtual_fail(ctx, umemNotSupportedError, "the stream is being captured into a graph: %s",
                   advice);
  return true;
}

/* Tries twice: an error may be about the call and not about the work, whose memory may be freed once this has
 * failed. */
int umemCudaState_finish(umemCudaState const *state) {
  umemCudaRt const *rt = state->gpu->rt;
  int error = rt->stream_synchronize(state->stream);
  if (error && rt->stream_synchronize(state->stream)) rt->last_error();
  return error;
}

/* Asks whether the stream is captured after it has recorded the event: an event from before a capture waits for
 * nothing in it. Records an event anew that was recorded in a capture which is over by now. */
int umemCudaState_finish_apart(umemCudaState const *state, umemVirtual *ctx) {
  umemCudaRt const *rt = state->gpu->rt;
  if (!state->stream) return umemCudaState_finish(state);
  void *event = umemCudaGpu_take_event(state->gpu, ctx);
  if (!event) return umemCudaSuccess; /* it was recorded */
  int error = umemCudaCapturedEvent;
  for (int tries = 0; tries < umemCudaCaptureTries && umemCuda_is_of_captured_event(error);
       tries++) {
    if (tries) rt->last_error();
    error = rt->event_record(event, state->stream);
    if (!error && umemCudaState_is_captured(state)) error = umemCudaCaptureUnsupported;
    if (!error) error = rt->event_synchronize(event);
  }
  umemCudaGpu_give_event(state->gpu, event);
  return error;
}
