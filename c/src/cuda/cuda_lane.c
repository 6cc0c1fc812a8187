/* cuda_lane.c - see umem_cuda_lane.h. */
#include "cuda/cuda_lane.h"

#include <stdlib.h>

/* Guards the lists. Made when the library is loaded: see cuda_staging.c. */
static umemLock lock;
static umemCudaLane *idle;
static unsigned idle_count;
static umemCudaLane *lost; /* with transfers that could not be waited for */

__attribute__((constructor(101))) static void make_lock(void) { umemLock_init(&lock); }

/* ---- streams and events ---- */

static void ignore(umemCudaGpu *gpu, int error) {
  if (error) gpu->rt->last_error();
}

/* Members that are NULL were never made. In the lane's scope. */
static void destroy(umemCudaLane *lane) {
  umemCudaGpu *gpu = lane->gpu;
  for (unsigned b = 0; b < umemLaneChunks; b++)
    if (lane->events[b]) ignore(gpu, gpu->rt->event_destroy(lane->events[b]));
  if (lane->stream) ignore(gpu, gpu->rt->stream_destroy(lane->stream));
  free(lane);
}

static umemCudaLane *create(umemCudaGpu *gpu) {
  umemCudaLane *lane = calloc(1, sizeof *lane);
  if (!lane) return NULL;
  lane->gpu = gpu;
  int error = gpu->rt->stream_create(&lane->stream);
  for (unsigned b = 0; b < umemLaneChunks && !error; b++)
    error = gpu->rt->event_create(&lane->events[b]);
  if (!error) return lane;
  gpu->rt->last_error();
  destroy(lane);
  return NULL;
}

/* ---- lanes that are not in use ---- */

/* Takes a lane of gpu out of a list; NULL when there is none. */
static umemCudaLane *take(umemCudaLane **list, umemCudaGpu *gpu) {
  umemLock_acquire(&lock);
  umemCudaLane **link = list;
  while (*link && (*link)->gpu != gpu) link = &(*link)->next;
  umemCudaLane *lane = *link;
  if (lane) *link = lane->next;
  if (lane && list == &idle) idle_count--;
  umemLock_release(&lock);
  return lane;
}

/* Whether there was room for lane among those idle. */
static bool keep_idle(umemCudaLane *lane) {
  umemLock_acquire(&lock);
  bool room = idle_count < umemStagingIdleLanes;
  if (room) {
    lane->next = idle;
    idle = lane;
    idle_count++;
  }
  umemLock_release(&lock);
  return room;
}

static void keep_lost(umemCudaLane *lane) {
  umemLock_acquire(&lock);
  lane->next = lost;
  lost = lane;
  umemLock_release(&lock);
}

/* ---- taking and giving ---- */

static bool is_in_flight(umemCudaLane const *lane) {
  bool any = false;
  for (unsigned b = 0; b < umemLaneChunks; b++) any |= lane->in_flight[b];
  return any;
}

static bool borrow_chunks(umemCudaLane *lane) {
  for (unsigned b = 0; b < umemLaneChunks; b++) {
    lane->chunks[b] = umemCudaChunk_take(lane->gpu);
    if (!lane->chunks[b]) return false;
  }
  return true;
}

static void return_chunks(umemCudaLane *lane) {
  for (unsigned b = 0; b < umemLaneChunks; b++) {
    if (lane->chunks[b]) umemCudaChunk_give(lane->chunks[b]);
    lane->chunks[b] = NULL;
  }
}

umemCudaLane *umemCudaLane_take(umemCudaGpu *gpu) {
  umemCudaLane *lane = take(&idle, gpu);
  if (!lane) lane = create(gpu);
  if (!lane || borrow_chunks(lane)) return lane;
  umemCudaLane_give(lane);
  return NULL;
}

void umemCudaLane_give(umemCudaLane *lane) {
  if (is_in_flight(lane)) {
    keep_lost(lane);
    return;
  }
  return_chunks(lane);
  if (lane->broken || !keep_idle(lane)) destroy(lane);
}

/* What fails here is nobody's failure: no copy needs any of it. Chunks that lanes still have go
 * with the others. */
void umemCuda_release_staging(umemCudaGpu *gpu) {
  umemAttempt forgotten;
  umemAttempt_begin(&forgotten);
  umemCudaScope scope;
  bool entered = umemCudaScope_enter(&scope, NULL, gpu);
  umemCudaLane *lane;
  while ((lane = take(&lost, gpu)) || (lane = take(&idle, gpu))) {
    if (entered) ignore(gpu, umemCudaLane_finish(lane));
    if (entered)
      destroy(lane);
    else
      free(lane);
  }
  if (entered) umemCudaScope_leave(&scope);
  umemAttempt_end(&forgotten);
  umemCudaChunks_release(gpu);
}

/* ---- transfers ---- */

int umemCudaLane_start(umemCudaLane *lane, unsigned b, void *adr, size_t nbytes,
                       umemCudaKind kind) {
  umemCudaRt const *rt = lane->gpu->rt;
  void *chunk = lane->chunks[b]->memory;
  bool out = kind == umemCudaToDevice;
  int error = rt->memcpy_async(out ? adr : chunk, out ? chunk : adr, nbytes, kind, lane->stream);
  lane->in_flight[b] = true;
  if (!error) error = rt->event_record(lane->events[b], lane->stream);
  if (error) lane->broken = true;
  return error;
}

int umemCudaLane_settle(umemCudaLane *lane, unsigned b) {
  if (!lane->in_flight[b]) return umemCudaSuccess;
  int error = lane->gpu->rt->event_synchronize(lane->events[b]);
  if (error)
    lane->broken = true;
  else
    lane->in_flight[b] = false;
  return error;
}

/* Tried twice: an error may be about the call and not about the transfers. */
int umemCudaLane_finish(umemCudaLane *lane) {
  if (!is_in_flight(lane)) return umemCudaSuccess;
  umemCudaRt const *rt = lane->gpu->rt;
  int first = rt->stream_synchronize(lane->stream);
  int error = first;
  if (first) {
    lane->broken = true;
    rt->last_error();
    error = rt->stream_synchronize(lane->stream);
  }
  for (unsigned b = 0; b < umemLaneChunks && !error; b++) lane->in_flight[b] = false;
  return first;
}
