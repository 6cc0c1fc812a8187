/* cuda_channel.c - see cuda_channel.h. */
#include "cuda/cuda_channel.h"
#include "cuda/cuda_scope.h"

#include <stdlib.h>

/* Guards the lists. Made when the library is loaded: see cuda_staging.c. */
static umemLock lock;
static umemCudaChannel *idle;
static unsigned idle_count;
static umemCudaChannel *lost; /* with transfers that could not be waited for */

__attribute__((constructor(101))) static void make_lock(void) { umemLock_init(&lock); }

/* ---- streams and events ---- */

static void ignore(umemCudaGpu *gpu, int error) {
  if (error) gpu->rt->last_error();
}

/* Members that are NULL were never made. In the channel's scope. */
static void destroy(umemCudaChannel *channel) {
  umemCudaGpu *gpu = channel->gpu;
  for (unsigned b = 0; b < umemChannelChunks; b++)
    if (channel->events[b]) ignore(gpu, gpu->rt->event_destroy(channel->events[b]));
  if (channel->stream) ignore(gpu, gpu->rt->stream_destroy(channel->stream));
  free(channel);
}

static umemCudaChannel *create(umemCudaGpu *gpu) {
  umemCudaChannel *channel = calloc(1, sizeof *channel);
  if (!channel) return NULL;
  channel->gpu = gpu;
  int error = gpu->rt->stream_create(&channel->stream);
  for (unsigned b = 0; b < umemChannelChunks && !error; b++)
    error = gpu->rt->event_create(&channel->events[b]);
  if (!error) return channel;
  gpu->rt->last_error();
  destroy(channel);
  return NULL;
}

/* ---- channels that are not in use ---- */

/* Takes a channel of gpu out of a list; NULL when there is none. */
static umemCudaChannel *take(umemCudaChannel **list, umemCudaGpu *gpu) {
  umemLock_acquire(&lock);
  umemCudaChannel **link = list;
  while (*link && (*link)->gpu != gpu) link = &(*link)->next;
  umemCudaChannel *channel = *link;
  if (channel) *link = channel->next;
  if (channel && list == &idle) idle_count--;
  umemLock_release(&lock);
  return channel;
}

/* Whether there was room for channel among those idle. */
static bool keep_idle(umemCudaChannel *channel) {
  umemLock_acquire(&lock);
  bool room = idle_count < umemStagingIdleChannels;
  if (room) {
    channel->next = idle;
    idle = channel;
    idle_count++;
  }
  umemLock_release(&lock);
  return room;
}

static void keep_lost(umemCudaChannel *channel) {
  umemLock_acquire(&lock);
  channel->next = lost;
  lost = channel;
  umemLock_release(&lock);
}

/* ---- taking and giving ---- */

static bool is_in_flight(umemCudaChannel const *channel) {
  bool any = false;
  for (unsigned b = 0; b < umemChannelChunks; b++) any |= channel->in_flight[b];
  return any;
}

static bool borrow_chunks(umemCudaChannel *channel) {
  for (unsigned b = 0; b < umemChannelChunks; b++) {
    channel->chunks[b] = umemCudaChunk_take(channel->gpu);
    if (!channel->chunks[b]) return false;
  }
  return true;
}

static void return_chunks(umemCudaChannel *channel) {
  for (unsigned b = 0; b < umemChannelChunks; b++) {
    if (channel->chunks[b]) umemCudaChunk_give(channel->chunks[b]);
    channel->chunks[b] = NULL;
  }
}

umemCudaChannel *umemCudaChannel_take(umemCudaGpu *gpu) {
  umemCudaChannel *channel = take(&idle, gpu);
  if (!channel) channel = create(gpu);
  if (!channel || borrow_chunks(channel)) return channel;
  umemCudaChannel_give(channel);
  return NULL;
}

void umemCudaChannel_give(umemCudaChannel *channel) {
  if (is_in_flight(channel)) {
    keep_lost(channel);
    return;
  }
  return_chunks(channel);
  if (channel->broken || !keep_idle(channel)) destroy(channel);
}

/* What fails here is nobody's failure: no copy needs any of it. Chunks that channels still have go
 * with the others. */
void umemCuda_release_staging(umemCudaGpu *gpu) {
  umemAttempt forgotten;
  umemAttempt_begin(&forgotten);
  umemCudaScope scope;
  bool entered = umemCudaScope_enter(&scope, NULL, gpu);
  umemCudaChannel *channel;
  while ((channel = take(&lost, gpu)) || (channel = take(&idle, gpu))) {
    if (entered) ignore(gpu, umemCudaChannel_finish(channel));
    if (entered)
      destroy(channel);
    else
      free(channel);
  }
  if (entered) umemCudaScope_leave(&scope);
  umemAttempt_end(&forgotten);
  umemCudaChunks_release(gpu);
}

/* ---- transfers ---- */

int umemCudaChannel_start(umemCudaChannel *channel, unsigned b, void *adr, size_t nbytes,
                          umemCudaDirection direction) {
  umemCudaRt const *rt = channel->gpu->rt;
  void *chunk = channel->chunks[b]->memory;
  bool out = direction == umemCudaToDevice;
  int error =
      rt->memcpy_async(out ? adr : chunk, out ? chunk : adr, nbytes, direction, channel->stream);
  channel->in_flight[b] = true;
  if (!error) error = rt->event_record(channel->events[b], channel->stream);
  if (error) channel->broken = true;
  return error;
}

int umemCudaChannel_settle(umemCudaChannel *channel, unsigned b) {
  if (!channel->in_flight[b]) return umemCudaSuccess;
  int error = channel->gpu->rt->event_synchronize(channel->events[b]);
  if (error)
    channel->broken = true;
  else
    channel->in_flight[b] = false;
  return error;
}

/* Tried twice: an error may be about the call and not about the transfers. */
int umemCudaChannel_finish(umemCudaChannel *channel) {
  if (!is_in_flight(channel)) return umemCudaSuccess;
  umemCudaRt const *rt = channel->gpu->rt;
  int first = rt->stream_synchronize(channel->stream);
  int error = first;
  if (first) {
    channel->broken = true;
    rt->last_error();
    error = rt->stream_synchronize(channel->stream);
  }
  for (unsigned b = 0; b < umemChannelChunks && !error; b++) channel->in_flight[b] = false;
  return first;
}
