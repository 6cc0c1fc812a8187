/* cuda_event.c - see cuda_event.h. */
#include "cuda/cuda_event.h"
#include "cuda/cuda_error.h"
#include "cuda/cuda_scope.h"

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

void umemCudaGpu_destroy_events(umemCudaGpu *gpu) {
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
