/* cudart_event.c - the CUDA double: events, what waits for them, and capture into graphs. */
#include "cudart_state.h"

/* ---- captures ---- */

int cudart_break_capture(Stream *stream, int error) {
  if (stream->capture->broken) return umemCudaCaptureInvalidated;
  stream->capture->broken = true;
  return error;
}

enum { global_mode, thread_local_mode, relaxed_mode };

/* "Thread-local" and "global" captures of the thread itself forbid it; of other threads, global
 * ones forbid a thread of global mode (cudaThreadExchangeStreamCaptureMode). */
static bool forbids(Graph const *graph, int mode) {
  if (graph->ended || graph->mode == relaxed_mode || mode == relaxed_mode) return false;
  bool mine = pthread_equal(graph->thread, pthread_self());
  return mine || (graph->mode == global_mode && mode == global_mode);
}

int cudart_forbid_unsafe(void) {
  int error = umemCudaSuccess, mode = cudart_thread()->capture_mode;
  for (Graph *g = cudart_state.graphs; g; g = g->next)
    if (forbids(g, mode)) {
      if (!g->broken) error = umemCudaCaptureUnsupported;
      g->broken = true;
    }
  return error;
}

int cudart_stream_capture(void *stream, umemCudaCapture *capture, uint64_t *id) {
  int error = umemCudaSuccess;
  Stream const *one = cudart_stream(stream, &error);
  if (!one) return error;
  if (one->legacy && cudart_is_legacy_barred(one)) { /* what is asked breaks nothing */
    *capture = umemCudaCapturing;
    return umemCudaCaptureImplicit;
  }
  Graph const *graph = one->capture;
  *capture = !graph ? umemCudaNoCapture : graph->broken ? umemCudaCaptureBroken : umemCudaCapturing;
  if (id) *id = graph ? graph->id : 0;
  return umemCudaSuccess;
}

static int begin_capture(Stream *stream, int mode) {
  if (stream->legacy || stream->capture) return umemCudaCaptureUnsupported;
  Graph *graph = calloc(1, sizeof *graph);
  if (!graph) return umemCudaOutOfMemory;
  graph->last = &graph->first;
  graph->mode = mode;
  graph->thread = pthread_self();
  graph->origin = stream;
  graph->id = cudart_state.graphs ? cudart_state.graphs->id + 1 : 1;
  graph->next = cudart_state.graphs;
  cudart_state.graphs = stream->capture = graph;
  stream->captured = 0;
  return umemCudaSuccess;
}

int fake_cudart_begin_capture_in(void *stream, int mode) {
  LOCKED(cudart_mutex());
  int error = umemCudaSuccess;
  Stream *one = cudart_stream(stream, &error);
  if (one) error = begin_capture(one, mode);
  return error;
}

int fake_cudart_begin_capture(void *stream) {
  return fake_cudart_begin_capture_in(stream, global_mode);
}

/* Whether the origin of the capture comes, in the end, after all that stream has recorded, if
 * anything. */
static bool is_joined(Stream const *stream) {
  Stream const *origin = stream->capture->origin;
  if (!stream->captured) return true;
  for (int hops = 0; stream != origin && hops < 64; hops++) {
    if (!stream->joined || stream->joined_at != stream->captured) return false;
    stream = stream->joined;
  }
  return stream == origin;
}

/* The error that ends a whole capture. */
static int error_of_end(Graph const *graph) {
  if (graph->mode != relaxed_mode && !pthread_equal(graph->thread, pthread_self()))
    return cudartCaptureWrongThread;
  for (Stream const *s = cudart_state.streams; s; s = s->next)
    if (s->capture == graph && !is_joined(s)) return cudartCaptureUnjoined;
  return umemCudaSuccess;
}

int fake_cudart_end_capture(void *stream, void **graph) {
  LOCKED(cudart_mutex());
  int error = umemCudaSuccess;
  Stream *one = cudart_stream(stream, &error);
  Graph *ended = one ? one->capture : NULL;
  if (!error && !ended) error = cudartCaptureUnmatched;
  if (!error) error = ended->broken ? umemCudaCaptureInvalidated : error_of_end(ended);
  *graph = error ? NULL : ended;
  if (ended) ended->ended = true;
  for (Stream *s = cudart_state.streams; ended && s; s = s->next)
    if (s->capture == ended) s->capture = NULL;
  return error;
}

int fake_cudart_launch_graph(void *graph, void *stream) {
  LOCKED(cudart_mutex());
  int error = umemCudaSuccess;
  Stream *one = cudart_stream(stream, &error);
  for (Work *work = ((Graph *)graph)->first; one && !error && work; work = work->next)
    error = cudart_push(one, work);
  return error;
}

/* ---- events ---- */

Event *cudart_event(void *handle, int *error) {
  Event *event = cudart_state.events;
  while (event && event != handle) event = event->next;
  if (!event || event->destroyed) {
    cudart_misuse(event ? "an event that is destroyed" : "an event that is none");
    *error = umemCudaInvalidHandle;
    return NULL;
  }
  *error = cudart_state.device[event->device].broken;
  cudart_note_device(event->device);
  return *error ? NULL : event;
}

int cudart_event_create(void **event) {
  Event *one = calloc(1, sizeof *one);
  if (!one) return umemCudaOutOfMemory;
  one->device = cudart_here()->ordinal;
  one->next = cudart_state.events;
  *event = cudart_state.events = one;
  return umemCudaSuccess;
}

int cudart_event_destroy(void *event) {
  int error = umemCudaSuccess;
  Event *one = cudart_event(event, &error);
  if (one) one->destroyed = true;
  return error;
}

static int record(Event *event, Stream *stream) {
  if (event->device != stream->device) {
    cudart_misuse("an event of device %d on a stream of device %d", event->device, stream->device);
    return umemCudaInvalidHandle;
  }
  if (stream->capture && stream->capture->broken) return umemCudaCaptureInvalidated;
  int error = stream->capture ? umemCudaSuccess : cudart_join(stream);
  if (error) return error;
  if (cudart_event_is_foreign(event)) return umemCudaInvalidHandle;
  if (event->shared) {
    if (stream->capture) return cudart_break_capture(stream, umemCudaCaptureUnsupported);
    error = cudart_push(
        stream,
        &(Work){.kind = workReach, .event = event->shared, .until = cudart_event_next(event)});
    if (error) return error;
  }
  event->stream = stream;
  event->until = stream->queued;
  event->capture = stream->capture;
  event->captured = stream->captured;
  return umemCudaSuccess;
}

int cudart_event_record(void *event, void *stream) {
  int error = umemCudaSuccess;
  Event *one = cudart_event(event, &error);
  Stream *on = one ? cudart_stream(stream, &error) : NULL;
  return on ? record(one, on) : error;
}

int cudart_event_synchronize(void *event) {
  int error = umemCudaSuccess;
  Event *one = cudart_event(event, &error);
  if (one && one->capture) {
    error = one->capture->ended ? umemCudaInvalidValue : umemCudaCapturedEvent;
    if (!one->capture->ended) one->capture->broken = true;
  } else if (one && one->stream) {
    cudart_demand(one->stream, one->until);
    cudart_pools_shrink(one->stream->device);
  }
  return error;
}

/* Work goes on while the host looks: one query for each piece of it. */
int cudart_event_query(void *event) {
  int error = umemCudaSuccess;
  Event *one = cudart_event(event, &error);
  if (one && one->capture) {
    error = one->capture->ended ? umemCudaInvalidValue : umemCudaCapturedEvent;
    if (!one->capture->ended) one->capture->broken = true;
  } else if (one && one->stream && one->stream->done < one->until) {
    cudart_demand(one->stream, one->stream->done + 1);
    error = umemCudaNotReady;
  }
  return error;
}

/* A stream that waits for captured work is captured with it. */
static int wait_captured(Stream *stream, Event const *event) {
  if (event->capture->ended) return umemCudaInvalidValue; /* as on an H100, CUDA 13.0 */
  if (event->capture == stream->capture) {
    stream->captured++;
    if (event->stream == stream) return umemCudaSuccess;
    event->stream->joined = stream;
    event->stream->joined_at = event->captured;
    return umemCudaSuccess;
  }
  if (stream->capture) return cudart_break_capture(stream, umemCudaCaptureIsolation);
  if (stream->legacy) {
    event->capture->broken = true;
    return umemCudaCaptureImplicit;
  }
  stream->capture = event->capture;
  stream->captured = 0;
  stream->joined = NULL;
  return umemCudaSuccess;
}

static int wait_for(Stream *stream, Event const *event) {
  if (cudart_event_is_foreign(event)) {
    if (stream->capture) return cudart_break_capture(stream, umemCudaCaptureIsolation);
    return cudart_push(
        stream,
        &(Work){.kind = workAwait, .event = event->shared, .until = cudart_event_last(event)});
  }
  if (!event->stream) return umemCudaSuccess;
  if (event->capture) return wait_captured(stream, event);
  if (stream->capture) return cudart_break_capture(stream, umemCudaCaptureIsolation);
  if (event->stream == stream) return umemCudaSuccess;
  return cudart_push(stream,
                     &(Work){.kind = workWait, .other = event->stream, .until = event->until});
}

int cudart_stream_wait(void *stream, void *event) {
  int error = umemCudaSuccess;
  Stream *one = cudart_stream(stream, &error);
  Event const *until = one ? cudart_event(event, &error) : NULL;
  return until ? wait_for(one, until) : error;
}
