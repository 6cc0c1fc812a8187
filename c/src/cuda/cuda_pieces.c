/* cuda_pieces.c - the method copy_pieces of device memory: a thread reads one piece into pinned
 * memory while the GPU transfers the one before. The thread waits for a transfer only when it needs
 * its chunk, or has nothing else to do. */
#include "base/thread.h"
#include "core/plan.h"
#include "core/context.h"
#include "watch/watch.h"
#include "cuda/cuda_pinned.h"
#include "cuda/cuda_scope.h"
#include "cuda/cuda_gds.h"
#include "cuda/cuda_methods.h"
#include "cuda/cuda_state.h"

#include <string.h>

/* One thread. */
typedef struct Carrier {
  umemVirtual *ctx, *src;
  umemVirtual *host; /* what chunks are to the methods of src */
  umemCudaGpu *gpu;
  umemFeed *feed;
  umemCudaChannel *channel;
  umemCopyPiece moving[umemChannelChunks]; /* on its way from each chunk; nbytes 0: none */
  uint64_t begin[umemChannelChunks];       /* as of umem_route_clock */
  umemVirtual *followed; /* the channel waits for what was queued on it when this copy began */
  uintptr_t followed_for;
} Carrier;

static umemRoutePlace const pinned = {.kind = "pinned", .ordinal = -1};

static bool is_good(Carrier *self, umemCopyPiece const *piece, int error) {
  return umemCuda_check(self->ctx, self->gpu, error, "cannot copy %zu bytes to GPU %d",
                        piece->nbytes, self->gpu->device);
}

/* ---- the two ways of a piece ---- */

static void read_pageable(Carrier const *self, char *memory, umemCopyPiece const *piece) {
  uint64_t begin = umem_route_clock();
  memcpy(memory, (void const *)piece->src_adr, piece->nbytes);
  umem_note_between(NULL, &pinned, umemWayMemcpy, piece->nbytes, self->feed->threads, begin);
}

/* In no scope, because the methods of the source may use CUDA, too. */
static bool fill(Carrier *self, unsigned b, umemCopyPiece const *piece) {
  char *memory = self->channel->chunks[b]->memory;
  uint64_t before = umem_thread.failures;
  if (umem_cpu_reads(self->src))
    read_pageable(self, memory, piece);
  else
    umem_fill_buffer(self->src, piece->src_adr, self->host, memory, piece->nbytes);
  return umem_thread.failures == before;
}

/* Lets the channel wait for what is queued on the piece's context. Waits see an event as it was
 * recorded last before them, so that the chunk's own will do. False, with nothing recorded, if the
 * stream is being captured: the channel must stay outside of that. */
static bool wait_for_context(Carrier *self, unsigned b, umemCopyPiece const *piece, int *error) {
  umemCudaRt const *rt = self->gpu->rt;
  umemCudaState const *state = umemCuda_state_of(piece->dst);
  *error = umemCudaSuccess;
  if (self->followed == piece->dst && self->followed_for == piece->copy) return true;
  *error = rt->event_record(self->channel->events[b], state->stream);
  if (umem_can(piece->dst, umemOrdered) && umemCudaState_is_captured(state)) {
    if (*error) rt->last_error();
    return false;
  }
  if (!*error) *error = rt->stream_wait(self->channel->stream, self->channel->events[b]);
  self->channel->broken |= *error != umemCudaSuccess;
  if (*error) return true;
  self->followed = piece->dst;
  self->followed_for = piece->copy;
  return true;
}

/* As any other copy, which knows what to say in a capture. In no scope. */
static void copy_alone(Carrier *self, umemCopyPiece const *piece) {
  uint64_t before = umem_thread.failures;
  self->feed->about(self->feed, piece);
  umem_copy_run(self->src, piece->src_adr, piece->dst, piece->dst_adr, piece->nbytes);
  if (umem_thread.failures == before) umem_synchronize(piece->dst);
  self->feed->end(self->feed, piece, umem_thread.failures == before);
}

/* Starts the transfer of a piece that chunk b holds. In the scope. False: the piece has no
 * transfer. */
static bool start(Carrier *self, unsigned b, umemCopyPiece const *piece, bool *refused) {
  int error;
  *refused = !wait_for_context(self, b, piece, &error);
  if (*refused) return false;
  self->begin[b] = umem_route_clock();
  if (!error) {
    self->moving[b] = *piece;
    error = umemCudaChannel_start(self->channel, b, (void *)piece->dst_adr, piece->nbytes,
                                  umemCudaToDevice);
  }
  if (is_good(self, piece, error)) return true;
  self->moving[b].nbytes = 0;
  return false;
}

/* ---- chunks ---- */

static void note_arrived(Carrier const *self, unsigned b, bool good) {
  umemRoutePlace device = umem_device_place(self->ctx, self->gpu->device);
  umem_note_between(&pinned, &device, umemWayDma, good ? self->moving[b].nbytes : 0, 1,
                    self->begin[b]);
}

/* Waits for the transfer of chunk b, and ends its piece. In the scope. */
static bool settle(Carrier *self, unsigned b) {
  umemCopyPiece piece = self->moving[b];
  if (!piece.nbytes) return true;
  self->feed->about(self->feed, &piece);
  bool good = is_good(self, &piece, umemCudaChannel_settle(self->channel, b));
  if (self->begin[b]) note_arrived(self, b, good);
  self->moving[b].nbytes = 0;
  self->feed->end(self->feed, &piece, good);
  return good;
}

/* Waits for both, the older one first. */
static bool settle_all(Carrier *self, unsigned oldest) {
  bool good = settle(self, oldest);
  return settle(self, 1 - oldest) && good;
}

/* Waits for both from outside of the scope. Where that cannot be entered any more, the pieces have
 * failed. */
static bool enter_and_settle(Carrier *self, unsigned oldest) {
  umemCudaScope scope;
  if (!self->moving[0].nbytes && !self->moving[1].nbytes) return true;
  for (unsigned b = 0; b < umemChannelChunks; b++) {
    unsigned chunk = (oldest + b) % umemChannelChunks;
    if (!self->moving[chunk].nbytes) continue;
    self->feed->about(self->feed, &self->moving[chunk]);
    if (umemCudaScope_enter(&scope, self->ctx, self->gpu)) {
      bool good = settle_all(self, oldest);
      umemCudaScope_leave(&scope);
      return good;
    }
    umemCopyPiece piece = self->moving[chunk];
    self->moving[chunk].nbytes = 0;
    self->feed->end(self->feed, &piece, false);
  }
  return false;
}

/* ---- the loop ---- */

/* The next piece; first, if there is none, waits for the transfers, because then there may be
 * one. */
static bool next(Carrier *self, unsigned b, size_t most, umemCopyPiece *piece) {
  if (self->feed->next(self->feed, most, piece)) return true;
  bool waited = self->moving[0].nbytes || self->moving[1].nbytes;
  return waited && enter_and_settle(self, b) && self->feed->next(self->feed, most, piece);
}

/* Fills chunk b, which is free, and sends it; then waits for the other chunk, which is next. All
 * that in one scope, as each costs as much as a transfer of 10 KiB. False: stop. In no scope. */
static bool send(Carrier *self, unsigned b, umemCopyPiece const *piece) {
  umemCudaScope scope;
  self->feed->about(self->feed, piece);
  bool started = false, refused = false, other = true;
  if (fill(self, b, piece) && umemCudaScope_enter(&scope, self->ctx, self->gpu)) {
    started = start(self, b, piece, &refused);
    if (started || refused) other = settle(self, 1 - b);
    umemCudaScope_leave(&scope);
  }
  if (refused)
    copy_alone(self, piece);
  else if (!started)
    self->feed->end(self->feed, piece, false);
  return (started || refused) && other;
}

static void carry(Carrier *self, size_t most) {
  umemCopyPiece piece;
  unsigned b = 0;
  for (; next(self, b, most, &piece) && send(self, b, &piece); b = 1 - b) {
  }
  enter_and_settle(self, b);
}

/* ---- the method ---- */

/* As for single copies: what the CPU or a GPU has to wait for, or a disk gives to the GPU itself,
 * has routes of its own. */
static bool takes(umemVirtual *src, umemCudaGpu *gpu) {
  unsigned never = umemOrdered | umemDeviceShared | umemDeviceAccessible;
  return umem_can(src, umemConcurrent) && !(src->capabilities & never) &&
         !UMEM_SLOT(src, upstream) && !(UMEM_SLOT(src, direct_file) && umemCudaGds_open(gpu));
}

/* A channel, and what its shortest chunk holds. NULL, with nothing recorded, if there is none. */
static umemCudaChannel *take_channel(umemVirtual *ctx, umemCudaGpu *gpu, size_t *most) {
  umemCudaScope scope;
  umemAttempt forgotten; /* single copies meet what is really wrong */
  umemAttempt_begin(&forgotten);
  umemCudaChannel *channel = NULL;
  if (umemCudaScope_enter(&scope, ctx, gpu)) {
    channel = umemCudaChannel_take(gpu);
    umemCudaScope_leave(&scope);
  }
  umemAttempt_end(&forgotten);
  *most = SIZE_MAX;
  for (unsigned b = 0; channel && b < umemChannelChunks; b++)
    if (channel->chunks[b]->nbytes < *most) *most = channel->chunks[b]->nbytes;
  return channel;
}

/* Where the GPU cannot be entered any more, its transfers may still be in flight. */
static void give_channel(umemVirtual *ctx, umemCudaChannel *channel) {
  umemCudaScope scope;
  umemAttempt forgotten;
  umemAttempt_begin(&forgotten);
  bool entered = umemCudaScope_enter(&scope, ctx, channel->gpu);
  if (!entered)
    channel->in_flight[0] = true;
  else if (umemCudaChannel_finish(channel))
    channel->gpu->rt->last_error();
  umemCudaChannel_give(channel);
  if (entered) umemCudaScope_leave(&scope);
  umemAttempt_end(&forgotten);
}

bool umemCuda_copy_pieces(umemVirtual *ctx, umemVirtual *src, umemFeed *feed) {
  umemCudaState *state = umemCuda_state_of(ctx);
  size_t most;
  if (!takes(src, state->gpu)) return false;
  umemCudaChannel *channel = take_channel(ctx, state->gpu, &most);
  if (!channel) return false;
  Carrier self = {.ctx = ctx,
                  .src = src,
                  .host = &state->buffers.host.super,
                  .gpu = state->gpu,
                  .feed = feed,
                  .channel = channel};
  carry(&self, most);
  give_channel(ctx, channel);
  return true;
}
