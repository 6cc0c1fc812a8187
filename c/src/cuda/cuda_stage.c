/* cuda_stage.c - copies between a GPU and memory that is not pinned, through the channels.
 *
 * The copy is cut into pieces, and each channel, in a thread of its own, takes the next that nobody
 * has taken, until there are none. To the GPU a channel fills one chunk while the other is on its way;
 * from it, it drains one while the other is coming. There are several because one thread moves some
 * 10 GB/s and the link 55 (H200, PCIe 5). */
#include "cuda/cuda_stage.h"
#include "core/guard.h"
#include "core/parallel.h"
#include "cuda/cuda_channel.h"
#include "cuda/cuda_error.h"
#include "cuda/cuda_scope.h"
#include "cuda/cuda_stream.h"

#include <string.h>

_Static_assert((int)umemStagingChannels <= (int)umemParallelMost, "one thread for each channel");

typedef struct Stage {
  umemVirtual *ctx;
  umemCudaGpu *gpu;
  umemCudaDirection direction;
  char *device, *host; /* the first is never dereferenced */
  size_t nbytes, piece;
  size_t next; /* piece that nobody has taken; atomic, as is over */
  bool over;   /* something has failed: take no other */
  unsigned count;
  umemCudaChannel *channels[umemStagingChannels];
} Stage;

/* Bytes of the copy; none when there are no more. */
typedef struct Piece {
  size_t at, nbytes;
} Piece;

static Piece take_piece(Stage *stage) {
  if (__atomic_load_n(&stage->over, __ATOMIC_RELAXED)) return (Piece){0, 0};
  size_t k = __atomic_fetch_add(&stage->next, 1, __ATOMIC_RELAXED);
  if (k > (stage->nbytes - 1) / stage->piece) return (Piece){0, 0};
  size_t at = k * stage->piece;
  size_t rest = stage->nbytes - at;
  return (Piece){at, rest < stage->piece ? rest : stage->piece};
}

/* ---- one channel; in its thread ---- */

/* Whether error is none. The first one of a channel ends the copy and is told. */
static bool succeeded(Stage *stage, int error) {
  if (!error) return true;
  __atomic_store_n(&stage->over, true, __ATOMIC_RELAXED);
  return umemCuda_check(stage->ctx, stage->gpu, error, "cannot copy %zu bytes %s GPU %d",
                        stage->nbytes, stage->direction == umemCudaToDevice ? "to" : "from",
                        stage->gpu->device);
}

static bool start(Stage *stage, umemCudaChannel *channel, unsigned b, Piece piece) {
  return succeeded(stage, umemCudaChannel_start(channel, b, stage->device + piece.at, piece.nbytes,
                                                stage->direction));
}

/* Whether all pieces that the channel took are on their way. */
static bool send(Stage *stage, umemCudaChannel *channel) {
  Piece piece;
  for (unsigned b = 0; (piece = take_piece(stage)).nbytes; b = 1 - b) {
    if (!succeeded(stage, umemCudaChannel_settle(channel, b))) return false;
    memcpy(channel->chunks[b]->memory, stage->host + piece.at, piece.nbytes);
    if (!start(stage, channel, b, piece)) return false;
  }
  return true;
}

static bool drain(Stage *stage, umemCudaChannel *channel, unsigned b, Piece piece) {
  if (!piece.nbytes) return true;
  if (!succeeded(stage, umemCudaChannel_settle(channel, b))) return false;
  memcpy(stage->host + piece.at, channel->chunks[b]->memory, piece.nbytes);
  return true;
}

/* Whether all pieces that the channel took have arrived. */
static bool receive(Stage *stage, umemCudaChannel *channel) {
  Piece coming, come = {0, 0};
  unsigned b = 0;
  for (; (coming = take_piece(stage)).nbytes; b = 1 - b) {
    if (!start(stage, channel, b, coming)) return false;
    if (!drain(stage, channel, 1 - b, come)) return false;
    come = coming;
  }
  return drain(stage, channel, 1 - b, come);
}

static void copy_pieces(void *job, unsigned i) {
  Stage *stage = job;
  umemCudaChannel *channel = stage->channels[i];
  umemCudaScope scope; /* contexts are current for one thread */
  if (!umemCudaScope_enter(&scope, stage->ctx, stage->gpu)) {
    __atomic_store_n(&stage->over, true, __ATOMIC_RELAXED);
    return;
  }
  bool good = (stage->direction == umemCudaToDevice ? send : receive)(stage, channel);
  int error = umemCudaChannel_finish(channel);
  if (good)
    succeeded(stage, error);
  else
    stage->gpu->rt->last_error(); /* the first error was told */
  umemCudaScope_leave(&scope);
}

/* ---- all channels ---- */

/* Makes the channels' streams wait for what is queued on the stream of state. Waits see an event as it was
 * recorded last before them, so that a channel's own will do. Channels must not be drawn into a capture that
 * another thread has begun by now. */
static bool follow(Stage *stage, umemCudaState const *state) {
  umemCudaRt const *rt = stage->gpu->rt;
  void *event = stage->channels[0]->events[0];
  int error = rt->event_record(event, state->stream);
  if (!error && umem_can(stage->ctx, umemOrdered) && umemCudaState_is_captured(state)) return false;
  for (unsigned i = 0; i < stage->count && !error; i++) {
    error = rt->stream_wait(stage->channels[i]->stream, event);
    stage->channels[i]->broken = error;
  }
  if (error) rt->last_error();
  return !error;
}

/* One thread drains slower than the driver, but fills a little faster. */
static unsigned least_channels(umemCudaDirection direction) {
  return direction == umemCudaToHost ? 2 : 1;
}

static void take_channels(Stage *stage) {
  unsigned wanted = umem_parallel_pieces(stage->nbytes, umemStagingPart, umemStagingChannels);
  if (wanted < least_channels(stage->direction)) return;
  while (stage->count < wanted &&
         (stage->channels[stage->count] = umemCudaChannel_take(stage->gpu)))
    stage->count++;
}

/* Short enough that all channels have several, so that they overlap and end together, and fits all
 * chunks. */
static size_t piece_size(Stage const *stage) {
  size_t const step = 4096;
  size_t piece = stage->nbytes / (stage->count * umemStagingPieces) / step * step;
  if (piece < umemStagingPiece) piece = umemStagingPiece;
  for (unsigned i = 0; i < stage->count; i++)
    for (unsigned b = 0; b < umemChannelChunks; b++)
      if (stage->channels[i]->chunks[b]->nbytes < piece)
        piece = stage->channels[i]->chunks[b]->nbytes;
  return piece;
}

/* What precedes the first transfer may fail untold: the caller's own copy meets what is really
 * wrong. Nothing is queued on the stream afterwards, since all channels are done by then. */
bool umemCuda_stage(umemVirtual *ctx, umemCudaState *state, uintptr_t device_adr, void *host_adr,
                    size_t nbytes, umemCudaDirection direction) {
  if (nbytes < (direction == umemCudaToDevice ? umemStagingToDevice : umemStagingToHost))
    return false;
  Stage stage = {.ctx = ctx,
                 .gpu = state->gpu,
                 .direction = direction,
                 .device = (char *)device_adr,
                 .host = host_adr,
                 .nbytes = nbytes};
  take_channels(&stage);
  bool staged = stage.count >= least_channels(direction) && follow(&stage, state);
  if (staged) {
    stage.piece = piece_size(&stage);
    umem_parallel(stage.count, copy_pieces, &stage);
  }
  for (unsigned i = 0; i < stage.count; i++) umemCudaChannel_give(stage.channels[i]);
  return staged;
}
