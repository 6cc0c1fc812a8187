/* cudart_queue.c - the CUDA double: queues of work, which is done when it is demanded. */
#include "cudart_state.h"

#include <string.h>

/* ---- doing work ---- */

void cudart_work_destroy(Work *work) {
  free(work->staged);
  free(work);
}

static void perform_copy(Work const *work) {
  umemCudaBox const *box = &work->box;
  unsigned char *to = cudart_side_bytes(&work->to);
  unsigned char const *from = work->staged ? work->staged : cudart_side_bytes(&work->from);
  if (!to || !from) return;
  for (size_t z = 0; z < box->depth; z++)
    for (size_t y = 0; y < box->height; y++)
      memmove(to + (z * box->dst_rows + y) * box->dst_pitch,
              from + (z * box->src_rows + y) * box->src_pitch, box->width);
}

static void perform(Work const *work) {
  switch (work->kind) {
  case workNothing:
    break;
  case workCopy:
    perform_copy(work);
    break;
  case workSet: {
    unsigned char *to = cudart_side_bytes(&work->to);
    if (to) memset(to, work->value, work->to.nbytes);
    break;
  }
  case workReady: {
    Block *block = cudart_block_at(work->to.adr);
    if (block) block->ready = true;
    break;
  }
  case workFree: {
    Block *block = cudart_block_at(work->to.adr);
    if (block) cudart_block_remove(block);
    break;
  }
  case workWait:
    cudart_demand(work->other, work->until);
    break;
  case workPrefetch: {
    Block *block = cudart_block_at(work->to.adr);
    if (block && block->kind == umemCudaManagedMemory)
      cudart_populate(block, work->to.adr, work->to.nbytes, work->value == block->device);
    break;
  }
  case workKernel:
    work->run(work->argument);
    break;
  case workReach:
    cudart_shared_reach(work->event, work->until);
    break;
  case workAwait:
    cudart_shared_await(work->event, work->until);
    break;
  }
}

/* What work waits for was queued before it, so that this comes to an end. */
void cudart_demand(Stream *stream, uint64_t until) {
  while (stream->done < until) {
    Work *work = stream->first;
    stream->first = work->next;
    if (!stream->first) stream->last = &stream->first;
    stream->done++;
    perform(work);
    cudart_work_destroy(work);
  }
}

void cudart_demand_device(int device) {
  for (Stream *s = cudart_state.streams; s; s = s->next)
    if (s->device == device) cudart_demand(s, s->queued);
}

/* ---- queueing ---- */

static Work *work_clone(Work const *work) {
  Work *copy = malloc(sizeof *copy);
  if (!copy) return NULL;
  *copy = *work;
  copy->next = NULL;
  return copy;
}

static int push_late(Stream *stream, Work const *work) {
  Work *copy = work_clone(work);
  if (!copy) {
    free(work->staged);
    return umemCudaOutOfMemory;
  }
  *stream->last = copy;
  stream->last = &copy->next;
  stream->queued++;
  return umemCudaSuccess;
}

/* ---- implicit synchronisation ---- */

static int push_wait(Stream *stream, Stream *other) {
  if (other->done >= other->queued) return umemCudaSuccess;
  return push_late(stream, &(Work){.kind = workWait, .other = other, .until = other->queued});
}

static bool is_blocking_of(Stream const *stream, Stream const *legacy) {
  return stream->blocking && stream->device == legacy->device;
}

bool cudart_is_legacy_barred(Stream const *legacy) {
  if (!cudart_state.has_blocking) return false;
  for (Stream const *s = cudart_state.streams; s; s = s->next)
    if (is_blocking_of(s, legacy) && s->capture) return true;
  return false;
}

static int break_blocking_captures(Stream const *legacy) {
  for (Stream *s = cudart_state.streams; s; s = s->next)
    if (is_blocking_of(s, legacy) && s->capture) s->capture->broken = true;
  return umemCudaCaptureImplicit;
}

int cudart_join(Stream *stream) {
  Stream *legacy = cudart_state.device[stream->device].legacy;
  if (stream->blocking) return legacy ? push_wait(stream, legacy) : umemCudaSuccess;
  if (!stream->legacy || !cudart_state.has_blocking) return umemCudaSuccess;
  if (cudart_is_legacy_barred(stream)) return break_blocking_captures(stream);
  int error = umemCudaSuccess;
  for (Stream *s = cudart_state.streams; s && !error; s = s->next)
    if (is_blocking_of(s, stream)) error = push_wait(stream, s);
  return error;
}

int cudart_push(Stream *stream, Work const *work) {
  Graph *graph = stream->capture;
  if (!graph) {
    int error = cudart_join(stream);
    if (!error) return push_late(stream, work);
    free(work->staged);
    return error;
  }
  stream->captured++;
  Work *copy = graph->broken ? NULL : work_clone(work);
  if (!copy) {
    free(work->staged);
    return graph->broken ? umemCudaCaptureInvalidated : umemCudaOutOfMemory;
  }
  *graph->last = copy;
  graph->last = &copy->next;
  return umemCudaSuccess;
}

/* ---- the streams there are ---- */

static Stream *stream_make(int device) {
  Stream *stream = calloc(1, sizeof *stream);
  if (!stream) return NULL;
  stream->device = device;
  stream->last = &stream->first;
  stream->next = cudart_state.streams;
  cudart_state.streams = stream;
  return stream;
}

static Stream *legacy_stream(int *error) {
  Device *device = cudart_current(error);
  if (!device) return NULL;
  if (!device->legacy) device->legacy = stream_make(device->ordinal);
  if (device->legacy)
    device->legacy->legacy = true;
  else
    *error = umemCudaOutOfMemory;
  return device->legacy;
}

static Stream *per_thread_stream(int *error) {
  Device const *device = cudart_current(error);
  if (!device) return NULL;
  Stream **own = &cudart_thread()->own[device->ordinal];
  if (!*own || (*own)->destroyed) *own = stream_make(device->ordinal);
  if (*own)
    (*own)->per_thread = (*own)->blocking = cudart_state.has_blocking = true;
  else
    *error = umemCudaOutOfMemory;
  return *own;
}

static void check_thread(Stream const *stream) {
  if (stream->is_barred && pthread_equal(stream->barred, pthread_self()))
    cudart_misuse("a stream that is another thread's");
}

Stream *cudart_stream(void *handle, int *error) {
  if (!handle || handle == FAKE_STREAM_LEGACY) return legacy_stream(error);
  if (handle == FAKE_STREAM_PER_THREAD) return per_thread_stream(error);
  Stream *stream = cudart_state.streams;
  while (stream && stream != handle) stream = stream->next;
  if (!stream || stream->destroyed) {
    cudart_misuse(stream ? "a stream that is destroyed" : "a stream that is none");
    *error = umemCudaInvalidHandle;
    return NULL;
  }
  check_thread(stream);
  *error = cudart_state.device[stream->device].broken;
  cudart_note_device(stream->device);
  return *error ? NULL : stream;
}

void fake_cudart_bar(void *stream, bool barred) {
  LOCKED(cudart_mutex());
  Stream *one = cudart_state.streams;
  while (one && one != stream) one = one->next;
  if (one) one->is_barred = barred;
  if (one) one->barred = pthread_self();
}

int cudart_stream_create(void **stream) {
  *stream = stream_make(cudart_here()->ordinal);
  return *stream ? umemCudaSuccess : umemCudaOutOfMemory;
}

/* Its work will be done when that is demanded by other means. */
int cudart_stream_destroy(void *stream) {
  int error = umemCudaSuccess;
  bool is_default = !stream || stream == FAKE_STREAM_LEGACY || stream == FAKE_STREAM_PER_THREAD;
  Stream *one = is_default ? NULL : cudart_stream(stream, &error);
  if (!one) return is_default ? umemCudaInvalidHandle : error;
  if (one->capture) cudart_break_capture(one, umemCudaCaptureUnsupported);
  one->destroyed = true;
  return umemCudaSuccess;
}

int cudart_stream_device(void *stream, int *device) {
  int error = umemCudaSuccess;
  Stream *one = cudart_stream(stream, &error);
  if (one) *device = one->device;
  return error;
}

int cudart_stream_synchronize(void *stream) {
  int error = umemCudaSuccess;
  Stream *one = cudart_stream(stream, &error);
  if (one && one->capture) {
    error = cudart_break_capture(one, umemCudaCaptureUnsupported);
  } else if (one && one->legacy && cudart_is_legacy_barred(one)) {
    error = break_blocking_captures(one);
  } else if (one) {
    cudart_demand(one, one->queued);
    cudart_pools_shrink(one->device);
  }
  return error;
}

/* ---- for tests ---- */

int fake_cudart_create_blocking(void **stream) {
  LOCKED(cudart_mutex());
  int error = umemCudaSuccess;
  Device const *device = cudart_current(&error);
  Stream *one = device ? stream_make(device->ordinal) : NULL;
  if (one)
    one->blocking = cudart_state.has_blocking = true;
  else if (!error)
    error = umemCudaOutOfMemory;
  *stream = one;
  return error;
}

int fake_cudart_launch(void *stream, void (*run)(void *argument), void *argument) {
  LOCKED(cudart_mutex());
  int error = umemCudaSuccess;
  Stream *one = cudart_stream(stream, &error);
  if (one) error = cudart_push(one, &(Work){.kind = workKernel, .run = run, .argument = argument});
  return error;
}

bool fake_cudart_is_late(void *stream) {
  LOCKED(cudart_mutex());
  int error = umemCudaSuccess;
  Stream const *one = cudart_stream(stream, &error);
  return one && one->done < one->queued;
}
