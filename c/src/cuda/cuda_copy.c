/* cuda_copy.c - what the CUDA contexts do with bytes: set them, move runs to and from host memory,
 * and the routes that only CUDA knows. */
#include "cuda/cuda_methods.h"
#include "core/layout.h"
#include "core/copy.h"

#include <stdlib.h>
#include <umem/copy.h>

/* Up to here the runtime copies pageable memory in the command itself, faster than umem can ask
 * whether the memory is pinned. */
enum { straight_most = 64 << 10 };

enum { least_chunk = 1 << 20 }; /* a stream of its own costs more than it saves for shorter ones */

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

/* ---- beside the legacy stream, which does copies of several threads one by one ---- */

/* A channel whose stream goes on after the work of the legacy one. NULL: there is none. */
static umemCudaChannel *begin_beside(umemCudaGpu *gpu, int *error) {
  umemCudaChannel *channel = umemCudaChannel_take_stream(gpu);
  if (!channel) return NULL;
  *error = gpu->rt->event_record(channel->events[0], NULL);
  if (!*error) *error = gpu->rt->stream_wait(channel->stream, channel->events[0]);
  channel->in_flight[0] = true;
  channel->broken = *error;
  return channel;
}

/* All is done on return. */
static int end_beside(umemCudaChannel *channel, int error) {
  int last = umemCudaChannel_finish(channel);
  umemCudaChannel_give(channel);
  return error ? error : last;
}

/* A chunk that a thread has filled, while others fill theirs: 1 GiB of a web server by 16 threads
 * takes 38 ms instead of 44 (H200). */
static int copy_chunk(umemCudaGpu *gpu, void *dst, void const *chunk, size_t nbytes) {
  int error;
  umemCudaChannel *channel = begin_beside(gpu, &error);
  if (!channel) return gpu->rt->memcpy(dst, chunk, nbytes, umemCudaToDevice);
  if (!error) error = gpu->rt->memcpy_async(dst, chunk, nbytes, umemCudaToDevice, channel->stream);
  return end_beside(channel, error);
}

/* ---- runs ---- */

/* In one call of the runtime. By the manual a queued copy to pageable memory may still be
 * unfinished on return: whole requests more. */
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

/* Moves between ctx and host memory. The direction is given although CUDA could see it from the
 * addresses: one that is not the device's any more would be taken for the host's, and the process
 * crash.
 *
 * An ordered context may return before it is done when the host memory is pinned; all else is
 * complete on return. */
static void move(umemVirtual *ctx, uintptr_t adr, void *host, size_t nbytes,
                 umemCudaDirection direction, bool is_chunk) {
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
  if (is_long && pageable && !captured) {
    umemCudaScope_leave(&scope);
    if (umemCuda_stage(ctx, state, adr, NULL, (uintptr_t)host, nbytes, direction) ||
        !umemCudaScope_enter(&scope, ctx, state->gpu))
      return;
  }
  if (pageable && ordered && !captured) captured = umemCudaState_is_captured(state); /* by now */
  uint64_t begin = umem_is_watched() ? umem_route_clock() : 0;
  int error = is_chunk && !pageable ? copy_chunk(state->gpu, dst, src, nbytes)
                                    : copy_straight(ctx, dst, src, nbytes, direction,
                                                    pageable && !to_device && !captured);
  if (begin) umemCuda_note(ctx, NULL, to_device, umemWayDma, error ? 0 : nbytes, 0, begin);
  umemCuda_check(ctx, state->gpu, error, "cannot copy %zu bytes %s 0x%jx", nbytes,
                 to_device ? "to" : "from", (uintmax_t)adr);
  umemCudaScope_leave(&scope);
}

void umemCuda_copy_to(umemVirtual *ctx, uintptr_t src_adr, umemVirtual *that, uintptr_t dst_adr,
                      size_t nbytes) {
  (void)that;
  move(ctx, src_adr, (void *)dst_adr, nbytes, umemCudaToHost, false);
}

void umemCuda_copy_from(umemVirtual *ctx, uintptr_t dst_adr, umemVirtual *that, uintptr_t src_adr,
                        size_t nbytes) {
  bool is_chunk = that == ctx->host && nbytes >= least_chunk && !umem_can(ctx, umemOrdered) &&
                  !umem_can(ctx, umemCpuWritable);
  move(ctx, dst_adr, (void *)src_adr, nbytes, umemCudaToDevice, is_chunk);
}

/* What is queued on a stream; for memory that belongs to none, what may use it: all that precedes
 * the end of the legacy stream. */
static void finish_all(umemVirtual *ctx, umemCudaState *state) {
  if (umem_can(ctx, umemDeviceShared)) {
    umemCudaGpu_settle(state->gpu, ctx);
    return;
  }
  int error = umem_thread.uncaptured ? umemCudaState_finish_uncaptured(state, ctx)
                                     : umemCudaState_finish(state);
  umemCuda_check(ctx, state->gpu, error, "work on the stream has failed");
}

void umemCuda_synchronize(umemVirtual *ctx) {
  umemCudaState *state = umemCuda_state_of(ctx);
  UMEM_CUDA_SCOPE(ctx, state->gpu);
  if (!umemCuda_refuse_capture(ctx, "nothing runs that could be waited for"))
    finish_all(ctx, state);
}

void umemCuda_set(umemVirtual *ctx, uintptr_t adr, int c, size_t nbytes) {
  umemCudaState *state = umemCuda_state_of(ctx);
  umemCudaRt const *rt = state->gpu->rt;
  UMEM_CUDA_SCOPE(ctx, state->gpu);
  int error = rt->memset_async((void *)adr, c, nbytes, state->stream);
  if (!error && !umem_can(ctx, umemOrdered)) error = umemCudaState_finish(state);
  umemCuda_check(ctx, state->gpu, error, "cannot set %zu bytes at 0x%jx", nbytes, (uintmax_t)adr);
}

void umemCuda_info(umemVirtual *ctx, umemInfo *info) {
  umemCudaGpu *gpu = umemCuda_state_of(ctx)->gpu;
  UMEM_CUDA_SCOPE(ctx, gpu);
  size_t available, capacity;
  int error = gpu->rt->memory_info(&available, &capacity);
  if (umemCuda_check(ctx, gpu, error, "cannot ask how much memory GPU %d has", gpu->device)) {
    info->capacity = capacity;
    info->available = available;
  }
  info->ordinal = gpu->device;
  _Static_assert(sizeof info->name >= sizeof gpu->name, "a GPU's name fits");
  for (size_t i = 0; i < sizeof gpu->name; i++) info->name[i] = gpu->name[i];
}

int umemCuda_dlpack_device(umemVirtual *ctx, int *id) {
  *id = umemCuda_state_of(ctx)->gpu->device;
  return umemDLCUDA;
}

/* ==== direct routes: between memories that GPUs address, and strided copies ==== */

/* A copy whose route is known. */
typedef struct Copy {
  umemVirtual *leader; /* a CUDA context, on whose stream the copy runs */
  umemCudaState *state;
  umemCudaWay way;
  bool packed;             /* its rows were packed on the GPU */
  umemCopyRun const *runs; /* of a list, or NULL */
  size_t count;
} Copy;

static int copy_run(Copy const *copy, uintptr_t src_adr, uintptr_t dst_adr, size_t nbytes) {
  umemCudaWay const *way = &copy->way;
  void *dst = (void *)dst_adr;
  void const *src = (void const *)src_adr;
  return way->src_device == way->dst_device
             ? way->rt->memcpy_async(dst, src, nbytes, way->direction, way->stream)
             : way->rt->memcpy_peer_async(dst, way->dst_device, src, way->src_device, nbytes,
                                          way->stream);
}

/* On a stream that takes copies together, or one by one. */
static int start_runs(Copy const *copy, void *stream, bool together) {
  umemCudaWay const *way = &copy->way;
  umemCudaBatch batch = {.count = 0};
  int error = 0;
  for (size_t i = 0; i < copy->count && !error; i++) {
    umemCopyRun const *run = &copy->runs[i];
    if (way->src_device != way->dst_device) {
      error = copy_run(copy, run->src_adr, run->dst_adr, run->nbytes);
      continue;
    }
    batch.dst[batch.count] = (void *)run->dst_adr;
    batch.src[batch.count] = (void const *)run->src_adr;
    batch.nbytes[batch.count++] = run->nbytes;
    if (batch.count == umemCudaBatchMost || i + 1 == copy->count)
      error = umemCudaBatch_start(way->rt, &batch, way->direction, stream, together);
  }
  return error;
}

/* The legacy stream takes no copies together: those of a channel do, after its work. They are done
 * on return. */
static int start_list(Copy const *copy) {
  int error;
  void *stream = copy->way.stream;
  if (stream) return start_runs(copy, stream, !umemCudaState_is_captured(copy->state));
  umemCudaChannel *channel = begin_beside(copy->state->gpu, &error);
  if (!channel) return start_runs(copy, NULL, false);
  if (!error) error = start_runs(copy, channel->stream, true);
  return end_beside(channel, error);
}

/* ---- which copies are ours ---- */

static bool is_managed(umemVirtual const *ctx) {
  return umemCuda_state_of(ctx) && umem_can(ctx, umemCpuReadable | umemDeviceShared);
}

static bool is_host(umemVirtual const *ctx) {
  return umem_can(ctx, umemCpuReadable) && !is_managed(ctx);
}

/* Who leads: an ordered context rather than another, then one of device memory. -1: none of
 * ours. */
static int rank_of(umemVirtual const *ctx) {
  if (!umemCuda_state_of(ctx)) return -1;
  return 2 * umem_can(ctx, umemOrdered) + !umem_can(ctx, umemCpuReadable);
}

/* The device whose memory ctx is; that of the leader for memory that belongs to none. */
static int device_of(umemVirtual const *ctx, umemCudaState const *leader) {
  umemCudaState const *state = umemCuda_state_of(ctx);
  bool on_device = state && !umem_can(ctx, umemCpuReadable);
  return (on_device ? state : leader)->gpu->device;
}

/* The direction is given although CUDA could see it from the addresses: one that is not the
 * device's any more would be taken for the host's, and the process crash. Managed memory counts as
 * the device's. */
static umemCudaDirection direction_of(umemVirtual const *src, umemVirtual const *dst) {
  bool from_host = is_host(src), to_host = is_host(dst);
  if (from_host && to_host) return umemCudaAnyDirection;
  return from_host ? umemCudaToDevice : to_host ? umemCudaToHost : umemCudaWithinDevice;
}

/* Whether a GPU can use the addresses of one side, and either a GPU or the CPU those of the
 * other. */
static bool gpu_can_copy(umemVirtual *src, umemVirtual *dst, umemLayout const *layout) {
  bool gpu_reads = umem_can(src, umemDeviceAccessible);
  bool gpu_writes = umem_can(dst, umemDeviceAccessible);
  if (gpu_reads && gpu_writes) return true;
  if (!layout->rank) return false; /* runs to and from the host have methods of their own */
  return gpu_reads ? umem_cpu_writes(dst) : gpu_writes && umem_cpu_reads(src);
}

/* Whether the copy may be unfinished on return: not where host memory may be pageable, and not
 * after a failure, when its blocks may go at once. */
static bool may_be_unfinished(Copy const *copy, umemVirtual *src, umemVirtual *dst, int error) {
  bool pinned = umem_can(src, umemDeviceAccessible) && umem_can(dst, umemDeviceAccessible);
  return umem_can(copy->leader, umemOrdered) &&
         ((pinned && !error) || umemCudaState_is_captured(copy->state));
}

/* What uses memory that belongs to no stream, kernels and copies that are still under way, is on
 * the legacy one: the copy comes after it. A capture cannot wait for what is outside of it. */
static bool follow_legacy(Copy const *copy, umemVirtual *other) {
  umemCudaState const *mine = copy->state, *state = umemCuda_state_of(other);
  if (!state || !umem_can(other, umemDeviceShared)) return true;
  if (state->gpu == mine->gpu && !mine->stream) return true;
  return umemCudaState_is_captured(mine) ||
         umemCudaGpu_precedes(state->gpu, copy->leader, mine->stream);
}

/* Lets the legacy stream of gpu wait for what is queued on the stream of state. Returns the
 * runtime's error. In the scope of state's GPU. */
static int lead_legacy(umemCudaState const *state, umemVirtual *ctx, umemCudaGpu *gpu) {
  umemCudaRt const *rt = state->gpu->rt;
  void *event = NULL;
  umemCudaScope scope;
  int error = rt->event_create(&event);
  if (error) return error;
  error = rt->event_record(event, state->stream);
  bool captured = umemCudaState_is_captured(state); /* by now: the event is of no use outside */
  if (!error && !captured) {
    error = umemCudaInvalidHandle; /* which enter has recorded */
    if (umemCudaScope_enter(&scope, ctx, gpu)) {
      error = rt->stream_wait(NULL, event);
      umemCudaScope_leave(&scope);
    }
  }
  UMEM_CUDA_TRY_TWICE(rt, event_destroy(event)); /* who waits for it goes on waiting */
  return error;
}

/* A copy may still be queued on the leader's stream. What uses the memory of the other side later,
 * on the legacy stream if it belongs to no other, comes after the copy. A capture leads nothing
 * outside of it. */
static void lead(Copy const *copy, umemVirtual *other) {
  umemCudaState const *mine = copy->state, *state = umemCuda_state_of(other);
  if (!state || !umem_can(other, umemDeviceShared)) return;
  if ((state->gpu == mine->gpu && !mine->stream) || umemCudaState_is_captured(mine)) return;
  if (!lead_legacy(mine, copy->leader, state->gpu)) return;
  mine->gpu->rt->last_error();
  if (!umemCudaState_is_captured(mine))
    umemCudaState_finish(mine); /* then nothing is left to wait for */
}

/* After a failure the blocks of a copy may go at once: it is done then. One that is recorded is not
 * under way. */
static void cut_short(Copy const *copy) {
  UMEM_CUDA_SCOPE(copy->leader, copy->state->gpu);
  if (!umemCudaState_is_captured(copy->state) && umemCudaState_finish(copy->state))
    copy->state->gpu->rt->last_error();
}

/* Whether a copy that is not ours goes by way of buffers that live no longer than the call. */
static bool is_buffered(umemVirtual const *src, umemVirtual const *dst, umemLayout const *layout) {
  return layout->rank || !(umem_cpu_reads(src) || umem_cpu_writes(dst));
}

/* Whether the items fill a good part of what they span, in memory that only a GPU reaches: then
 * host memory takes all of it in a few transfers. */
static bool is_dense(umemVirtual const *ctx, umemLayout const *layout, ptrdiff_t const *strides) {
  size_t const sparse = 4;
  umemLayoutSpan span;
  size_t nbytes = umem_count_items(layout) * layout->item_size;
  if (!umemCuda_state_of(ctx) || umem_can(ctx, umemCpuReadable)) return true;
  return umem_span_of(layout->item_size, layout->rank, layout->extents, strides, &span) &&
         (size_t)(span.high - span.low) / sparse <= nbytes;
}

/* Whether the items of dst stay apart even if they come from host memory in their order. */
static bool is_scattered(umemVirtual const *dst, umemLayout const *layout) {
  uintptr_t from = 0, to = 0;
  umemNormalLayout n;
  umemLayout scatter = *layout;
  umemCudaBoxes boxes;
  if (!umemCuda_state_of(dst) || umem_can(dst, umemCpuReadable)) return false;
  scatter.src_strides = NULL;
  umem_normalise(&n, &scatter, &from, &to);
  return n.layout.rank &&
         !(umemCuda_cut_boxes(&boxes, &n.layout) && umemCuda_boxes_pay(&boxes, &n.layout));
}

/* Whether the copy engines do it: not where many small boxes, as of a transposed array, cost more
 * than a copy through host memory, which a capture cannot have. */
static bool goes_in_boxes(umemCudaBoxes *boxes, umemVirtual *src, umemVirtual *dst,
                          umemLayout const *layout) {
  if (!umemCuda_cut_boxes(boxes, layout)) return false;
  return umemCuda_boxes_pay(boxes, layout) || is_scattered(dst, layout) ||
         !is_dense(src, layout, layout->src_strides) ||
         !is_dense(dst, layout, layout->dst_strides) || umem_is_captured(src) ||
         umem_is_captured(dst);
}

/* Whether the copy is a long run between device memory and other, a context that neither a GPU nor
 * the CPU can reach. */
static bool is_staged(umemVirtual const *other, umemLayout const *layout) {
  return !layout->rank && layout->item_size >= umemStagingFrom && umem_can(other, umemConcurrent) &&
         !(other->capabilities & (umemOrdered | umemDeviceShared | umemDeviceAccessible));
}

/* Who moves the bytes of a copy. */
typedef enum Mover {
  coreMoves,    /* core/plan.c, by the methods copy_to and copy_from */
  gpuMoves,     /* a copy engine */
  stagingMoves, /* cuFile, or the methods of the other side, which fill or empty pinned memory */
  nothingMoves  /* it needs buffers, with which a capture into a graph would record it */
} Mover;

/* Fills in *boxes for a copy of items by a GPU. */
static Mover mover_of(umemVirtual *ctx, umemVirtual *src, umemVirtual *dst,
                      umemLayout const *layout, umemCudaBoxes *boxes) {
  umemVirtual *other = ctx == src ? dst : src;
  if (UMEM_SLOT(other, upstream)) return coreMoves; /* it wants to see the copy */
  if (gpu_can_copy(src, dst, layout) && (!layout->rank || goes_in_boxes(boxes, src, dst, layout)))
    return gpuMoves;
  if (!is_buffered(src, dst, layout)) return coreMoves;
  if (umem_is_captured(ctx)) return nothingMoves;
  return is_staged(other, layout) ? stagingMoves : coreMoves;
}

bool umemCuda_plan_copy(umemVirtual *ctx, umemVirtual *src, uintptr_t src_adr, umemVirtual *dst,
                        uintptr_t dst_adr, umemLayout const *layout) {
  (void)src_adr, (void)dst_adr;
  umemCudaBoxes boxes;
  return mover_of(ctx, src, dst, layout, &boxes) != coreMoves;
}

static void refuse_captured(umemVirtual *ctx, umemVirtual *src, umemVirtual *dst) {
  umemVirtual_fail(ctx, umemNotSupportedError,
                   "the stream is being captured into a graph: a copy between %s and %s in this "
                   "layout needs buffers",
                   umem_get_device_name(src), umem_get_device_name(dst));
}

/* By cuFile if it can, else through pinned chunks in several threads, else through one buffer. */
static void copy_staged(umemVirtual *ctx, umemVirtual *src, uintptr_t src_adr, umemVirtual *dst,
                        uintptr_t dst_adr, size_t nbytes) {
  bool to_device = ctx == dst;
  umemVirtual *other = to_device ? src : dst;
  umemCudaState *state = umemCuda_state_of(ctx);
  uintptr_t device_adr = to_device ? dst_adr : src_adr, other_adr = to_device ? src_adr : dst_adr;
  umemCudaDirection direction = to_device ? umemCudaToDevice : umemCudaToHost;
  if (umemCudaGds_copy(ctx, device_adr, other, other_adr, nbytes, direction) ||
      umemCuda_stage(ctx, state, device_adr, other, other_adr, nbytes, direction))
    return;
  if (umem_is_captured(ctx)) /* by another thread, since the plan was made */
    refuse_captured(ctx, src, dst);
  else
    umem_copy_buffered(src, src_adr, dst, dst_adr, nbytes);
}

static int start(Copy *copy, umemCudaBoxes const *boxes, uintptr_t src_adr, uintptr_t dst_adr,
                 umemLayout const *layout) {
  int error;
  if (copy->runs) return start_list(copy);
  if (!layout->rank) return copy_run(copy, src_adr, dst_adr, layout->item_size);
  copy->packed = umemCuda_copy_narrow(copy->leader, &copy->way, layout, src_adr, dst_adr, &error);
  if (copy->packed) return error;
  return umemCuda_copy_boxes(&copy->way, boxes, layout, 0, src_adr, dst_adr);
}

/* Blocks of a driver's pool are open to other devices only where that was asked for. */
static void open_blocks(umemVirtual *ctx, int device) {
  umemCudaState *state = umemCuda_state_of(ctx);
  if (state && state->source->open_to) state->source->open_to(state, device);
}

/* Lets the leader's GPU reach the memory of the other one directly, where it can. Where it cannot,
 * the runtime copies by way of the host. */
static void open_peer(Copy const *copy, umemVirtual *src, umemVirtual *dst) {
  umemCudaGpu *gpu = copy->state->gpu;
  umemVirtual *other = copy->leader == dst ? src : dst;
  int device = copy->leader == dst ? copy->way.src_device : copy->way.dst_device;
  if (device != gpu->device && umemCudaGpu_reaches(gpu, device)) open_blocks(other, gpu->device);
}

/* Host memory has the name that it has in the leg: it may be a buffer. */
static void note_copy(Copy const *copy, umemVirtual *src, umemVirtual *dst,
                      umemLayout const *layout, int error, uint64_t begin) {
  umemRoutePlace from, to;
  if (!is_host(src)) from = umem_device_place(src, copy->way.src_device);
  if (!is_host(dst)) to = umem_device_place(dst, copy->way.dst_device);
  umemWay way = copy->way.src_device != copy->way.dst_device ? umemWayPeer
                : copy->packed                               ? umemWayPacked
                : layout->rank                               ? umemWayBoxes
                                                             : umemWayDma;
  umem_note_between(is_host(src) ? NULL : &from, is_host(dst) ? NULL : &to, way,
                    error ? 0 : umem_count_items(layout) * layout->item_size, 1, begin);
}

/* boxes: of a copy of items. runs: of a list of count runs, or NULL; layout is one of all their
 * bytes. */
static void copy_by_gpu(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                        umemLayout const *layout, umemCudaBoxes const *boxes,
                        umemCopyRun const *runs, size_t count) {
  bool to_leader = rank_of(dst) >= rank_of(src);
  umemVirtual *leader = to_leader ? dst : src, *other = to_leader ? src : dst;
  umemCudaState *state = umemCuda_state_of(leader);
  Copy copy = {leader,
               state,
               {state->gpu->rt, state->stream, direction_of(src, dst), device_of(src, state),
                device_of(dst, state)},
               false,
               runs,
               count};

  if (umem_can(other, umemOrdered) && umem_wait(leader, other) != umemOK) return;
  umemCudaScope scope;
  if (!umemCudaScope_enter(&scope, leader, state->gpu)) return;
  if (!follow_legacy(&copy, other)) {
    umemCudaScope_leave(&scope);
    return;
  }
  open_peer(&copy, src, dst);
  uint64_t begin = umem_route_clock();
  int error = start(&copy, boxes, src_adr, dst_adr, layout);
  if (!may_be_unfinished(&copy, src, dst, error)) {
    int last = umemCudaState_finish(state);
    if (!error) error = last;
  } else if (!error) {
    lead(&copy, other);
  }
  if (begin) note_copy(&copy, src, dst, layout, error, begin);
  bool done = umemCuda_check(leader, state->gpu, error, "cannot copy from 0x%jx to 0x%jx",
                             (uintmax_t)src_adr, (uintmax_t)dst_adr);
  umemCudaScope_leave(&scope);
  if (done && umem_can(other, umemOrdered) && umem_wait(other, leader) != umemOK) cut_short(&copy);
}

bool umemCuda_copy_direct(umemVirtual *ctx, umemVirtual *src, uintptr_t src_adr, umemVirtual *dst,
                          uintptr_t dst_adr, umemLayout const *layout) {
  umemCudaBoxes boxes;
  switch (mover_of(ctx, src, dst, layout, &boxes)) {
  case coreMoves:
    return false; /* a capture that another thread began when the plan was made is over */
  case gpuMoves:
    copy_by_gpu(src, src_adr, dst, dst_adr, layout, &boxes, NULL, 0);
    break;
  case stagingMoves:
    copy_staged(ctx, src, src_adr, dst, dst_adr, layout->item_size);
    break;
  case nothingMoves:
    refuse_captured(ctx, src, dst);
    break;
  }
  return true;
}

/* ==== lists of runs ==== */

/* Where copies of a list wait for one another no longer than this many bytes take, one thread
 * passes them on as fast. */
static size_t const least_staged = 1 << 20;

/* Through pinned chunks. Returns false if there is no room for that, or if it does not pay. */
static bool stage_runs(umemVirtual *ctx, umemVirtual *src, umemVirtual *dst, umemCopyRun *runs,
                       size_t count) {
  umemCudaState *state = umemCuda_state_of(ctx);
  umemVirtual *other = ctx == src ? dst : src;
  umemCudaScope scope;
  uint64_t before = umem_thread.failures;
  size_t *ends = malloc(count * sizeof *ends), sum = 0;
  for (size_t i = 0; ends && i < count; i++) ends[i] = sum += runs[i].nbytes;
  bool staged = false;
  size_t copied = 0;
  if (ends && sum >= least_staged && umemCudaScope_enter(&scope, ctx, state->gpu)) {
    uintptr_t host = ctx == src ? runs[0].dst_adr : runs[0].src_adr;
    bool called = !is_host(other);
    bool stages = called || is_pageable(state->gpu->rt, (void *)host, runs[0].nbytes);
    umemCudaScope_leave(&scope);
    if (stages)
      staged =
          umemCuda_stage_runs(ctx, state, called ? other : NULL, &(umemCudaRuns){runs, ends, count},
                              ctx == dst ? umemCudaToDevice : umemCudaToHost, &copied);
  }
  free(ends);
  if (umem_thread.failures != before) return true;
  if (staged) umem_set_runs_done(runs, copied);
  if (staged && copied < count) umem_thread.stopped = true;
  return staged;
}

/* Whether the bytes of other pass through pinned chunks: of a context whose methods move them, or
 * of RAM. */
static bool is_staged_list(umemVirtual *ctx, umemVirtual *other, bool reads) {
  umemLayout const run = {.size = sizeof run, .item_size = umemStagingFrom};
  if (umem_is_captured(ctx) || umem_can(ctx, umemCpuReadable)) return false;
  if (is_host(other)) return reads ? umem_cpu_reads(other) : umem_cpu_writes(other);
  return is_staged(other, &run);
}

bool umemCuda_copy_runs(umemVirtual *ctx, umemVirtual *src, umemVirtual *dst, umemCopyRun *runs,
                        size_t count) {
  umemVirtual *other = ctx == src ? dst : src;
  umemLayout all = {.size = sizeof all};
  if (count < 2 || UMEM_SLOT(other, upstream)) return false;
  for (size_t i = 0; i < count; i++) {
    if (runs[i].state != umemRunWaits) return false;
    all.item_size += runs[i].nbytes;
  }
  if (gpu_can_copy(src, dst, &all)) {
    uint64_t before = umem_thread.failures;
    copy_by_gpu(src, runs[0].src_adr, dst, runs[0].dst_adr, &all, NULL, runs, count);
    if (umem_thread.failures == before) umem_set_runs_done(runs, count);
    return true;
  }
  return is_staged_list(ctx, other, ctx == dst) && stage_runs(ctx, src, dst, runs, count);
}
