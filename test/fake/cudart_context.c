/* cudart_context.c - the CUDA double: primary contexts, and each thread's stack of them.
 *
 * A context's handle is the address of its device. */
#include "cudart_state.h"

static bool has_context(Device const *device) { return device->retained || device->implicit; }

static Device *device_of_handle(void const *context) {
  for (int d = 0; d < fakeCudartMost; d++)
    if (context == &cudart_state.device[d]) return &cudart_state.device[d];
  return NULL;
}

static int stack_push(Thread *thread, Device *device) {
  if (thread->depth == sizeof thread->stack / sizeof *thread->stack) {
    cudart_misuse("contexts are pushed and never popped");
    return umemCudaInvalidValue;
  }
  thread->stack[thread->depth++] = device;
  return umemCudaSuccess;
}

Device *cudart_current(int *error) {
  Thread *thread = cudart_thread();
  if (!thread->depth) {
    Device *device = &cudart_state.device[thread->device];
    cudart_misuse("made a context on device %d", device->ordinal);
    device->implicit = device->had_context = true;
    stack_push(thread, device);
  }
  Device *device = thread->stack[thread->depth - 1];
  *error = has_context(device) ? device->broken : umemCudaContextDestroyed;
  return *error ? NULL : device;
}

Device *cudart_here(void) { return cudart_current(&(int){umemCudaSuccess}); }

void cudart_note_device(int device) {
  Thread const *thread = cudart_thread();
  if (device >= 0 && thread->depth && thread->stack[thread->depth - 1]->ordinal != device)
    cudart_state.done.foreign++;
}

int cudart_context_current(void **context) {
  Thread const *thread = cudart_thread();
  *context = thread->depth ? thread->stack[thread->depth - 1] : NULL;
  return umemCudaSuccess;
}

int cudart_context_push(void *context) {
  Device *device = device_of_handle(context);
  if (device && has_context(device)) return stack_push(cudart_thread(), device);
  cudart_misuse("a context that is none");
  return umemCudaInvalidContext;
}

int cudart_context_pop(void **context) {
  Thread *thread = cudart_thread();
  if (!thread->depth) return umemCudaInvalidContext;
  Device *device = thread->stack[--thread->depth];
  if (context) *context = device;
  return umemCudaSuccess;
}

/* ---- primary contexts ---- */

int cudart_primary_retain(void **context, int device) {
  Device *one = cudart_device_of(device);
  if (!one) return umemCudaInvalidOrdinal;
  one->retained++;
  one->had_context = true;
  *context = one;
  return umemCudaSuccess;
}

/* What lives in the context of device. */
static size_t left_behind(int device) {
  size_t count = 0;
  for (size_t i = 0; i < cudart_state.block_count; i++)
    count += cudart_state.blocks[i].device == device;
  for (Stream *s = cudart_state.streams; s; s = s->next)
    count += s->device == device && !s->destroyed && !s->legacy && !s->per_thread;
  for (Event *e = cudart_state.events; e; e = e->next)
    count += e->device == device && !e->destroyed;
  for (Pool *p = cudart_state.pools; p; p = p->next) count += p->device == device && !p->destroyed;
  return count + cudart_pages_live(device);
}

/* A context takes with it what was made in it. */
static void context_end(Device *device) {
  cudart_demand_device(device->ordinal);
  size_t left = left_behind(device->ordinal);
  if (left && !device->broken)
    cudart_misuse("the context of device %d ends with %zu things in it", device->ordinal, left);
  for (size_t i = cudart_state.block_count; i-- > 0;)
    if (cudart_state.blocks[i].device == device->ordinal)
      cudart_block_remove(&cudart_state.blocks[i]);
  for (Stream *s = cudart_state.streams; s; s = s->next)
    if (s->device == device->ordinal) s->destroyed = true;
  for (Event *e = cudart_state.events; e; e = e->next)
    if (e->device == device->ordinal) e->destroyed = true;
  for (Pool *p = cudart_state.pools; p; p = p->next)
    if (p->device == device->ordinal) {
      p->destroyed = true;
      p->reserved = p->used = 0;
    }
  device->legacy = NULL;
  device->managed = 0;
  device->peers = 0;
  for (int d = 0; d < fakeCudartMost; d++) cudart_state.device[d].peers &= ~(1U << device->ordinal);
}

int cudart_primary_release(int device) {
  Device *one = cudart_device_of(device);
  if (!one) return umemCudaInvalidOrdinal;
  if (!one->retained) {
    cudart_misuse("device %d is not retained", device);
    return umemCudaInvalidContext;
  }
  if (--one->retained == 0 && !one->implicit) context_end(one);
  return umemCudaSuccess;
}

/* ---- for tests ---- */

void fake_cudart_set_device(int device) {
  LOCKED(cudart_mutex());
  Thread *thread = cudart_thread();
  Device *one = &cudart_state.device[device];
  thread->device = device;
  one->implicit = one->had_context = true;
  if (thread->depth) thread->depth--;
  stack_push(thread, one);
}

bool fake_cudart_had_context(int device) {
  LOCKED(cudart_mutex());
  return cudart_state.device[device].had_context;
}
