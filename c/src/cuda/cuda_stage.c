/* cuda_stage.c - copies between a GPU and memory that is not pinned, through the lanes.
 *
 * The copy is cut into pieces, and each lane, in a thread of its own, takes the next that nobody
 * has taken, until there are none. To the GPU a lane fills one chunk while the other is on its way;
 * from it, it drains one while the other is coming. There are several because one thread moves some
 * 10 GB/s and the link 55 (H200, PCIe 5). */
#include "cuda/cuda_lane.h"
#include "base/parallel.h"

#include <string.h>

_Static_assert((int)umemStagingLanes <= (int)umemParallelMost, "one thread for each lane");

typedef struct Stage {
  umemVirtual *ctx;
  umemCudaGpu *gpu;
  umemCudaKind kind;
  char *device, *host; /* the first is never dereferenced */
  size_t nbytes, piece;
  size_t next; /* piece that nobody has taken; atomic, as is over */
  bool over;   /* something has failed: take no other */
  unsigned count;
  umemCudaLane *lanes[umemStagingLanes];
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

/* ---- one lane; in its thread ---- */

/* Whether error is none. The first one of a lane ends the copy and is told. */
static bool succeeded(Stage *stage, int error) {
  if (!error) return true;
  __atomic_store_n(&stage->over, true, __ATOMIC_RELAXED);
  return umemCuda_check(stage->ctx, stage->gpu, error, "cannot copy %zu bytes %s GPU %d",
                        stage->nbytes, stage->kind == umemCudaToDevice ? "to" : "from",
                        stage->gpu->device);
}

static bool start(Stage *stage, umemCudaLane *lane, unsigned b, Piece piece) {
  return succeeded(
      stage, umemCudaLane_start(lane, b, stage->device + piece.at, piece.nbytes, stage->kind));
}

/* Whether all pieces that the lane took are on their way. */
static bool send(Stage *stage, umemCudaLane *lane) {
  Piece piece;
  for (unsigned b = 0; (piece = take_piece(stage)).nbytes; b = 1 - b) {
    if (!succeeded(stage, umemCudaLane_settle(lane, b))) return false;
    memcpy(lane->chunks[b]->memory, stage->host + piece.at, piece.nbytes);
    if (!start(stage, lane, b, piece)) return false;
  }
  return true;
}

static bool drain(Stage *stage, umemCudaLane *lane, unsigned b, Piece piece) {
  if (!piece.nbytes) return true;
  if (!succeeded(stage, umemCudaLane_settle(lane, b))) return false;
  memcpy(stage->host + piece.at, lane->chunks[b]->memory, piece.nbytes);
  return true;
}

/* Whether all pieces that the lane took have arrived. */
static bool receive(Stage *stage, umemCudaLane *lane) {
  Piece coming, come = {0, 0};
  unsigned b = 0;
  for (; (coming = take_piece(stage)).nbytes; b = 1 - b) {
    if (!start(stage, lane, b, coming)) return false;
    if (!drain(stage, lane, 1 - b, come)) return false;
    come = coming;
  }
  return drain(stage, lane, 1 - b, come);
}

static void copy_pieces(void *job, unsigned i) {
  Stage *stage = job;
  umemCudaLane *lane = stage->lanes[i];
  umemCudaScope scope; /* contexts are current for one thread */
  if (!umemCudaScope_enter(&scope, stage->ctx, stage->gpu)) {
    __atomic_store_n(&stage->over, true, __ATOMIC_RELAXED);
    return;
  }
  bool good = (stage->kind == umemCudaToDevice ? send : receive)(stage, lane);
  int error = umemCudaLane_finish(lane);
  if (good)
    succeeded(stage, error);
  else
    stage->gpu->rt->last_error(); /* the first error was told */
  umemCudaScope_leave(&scope);
}

/* ---- all lanes ---- */

/* Makes the lanes' streams wait for what is queued on the stream of place. Waits see an event as it was
 * recorded last before them, so that a lane's own will do. Lanes must not be drawn into a capture that
 * another thread has begun by now. */
static bool follow(Stage *stage, umemCudaPlace const *place) {
  umemCudaRt const *rt = stage->gpu->rt;
  void *event = stage->lanes[0]->events[0];
  int error = rt->event_record(event, place->stream);
  if (!error && umem_can(stage->ctx, umemOrdered) && umemCudaPlace_is_captured(place)) return false;
  for (unsigned i = 0; i < stage->count && !error; i++) {
    error = rt->stream_wait(stage->lanes[i]->stream, event);
    stage->lanes[i]->broken = error;
  }
  if (error) rt->last_error();
  return !error;
}

/* One thread drains slower than the driver, but fills a little faster. */
static unsigned least_lanes(umemCudaKind kind) { return kind == umemCudaToHost ? 2 : 1; }

static void take_lanes(Stage *stage) {
  unsigned wanted = umem_parallel_pieces(stage->nbytes, umemStagingPart, umemStagingLanes);
  if (wanted < least_lanes(stage->kind)) return;
  while (stage->count < wanted && (stage->lanes[stage->count] = umemCudaLane_take(stage->gpu)))
    stage->count++;
}

/* Short enough that all lanes have several, so that they overlap and end together, and fits all
 * chunks. */
static size_t piece_size(Stage const *stage) {
  size_t const step = 4096;
  size_t piece = stage->nbytes / (stage->count * umemStagingPieces) / step * step;
  if (piece < umemStagingPiece) piece = umemStagingPiece;
  for (unsigned i = 0; i < stage->count; i++)
    for (unsigned b = 0; b < umemLaneChunks; b++)
      if (stage->lanes[i]->chunks[b]->nbytes < piece) piece = stage->lanes[i]->chunks[b]->nbytes;
  return piece;
}

/* What precedes the first transfer may fail untold: the caller's own copy meets what is really
 * wrong. Nothing is queued on the stream afterwards, since all lanes are done by then. */
bool umemCuda_stage(umemVirtual *ctx, umemCudaPlace *place, uintptr_t device_adr, void *host_adr,
                    size_t nbytes, umemCudaKind kind) {
  if (nbytes < (kind == umemCudaToDevice ? umemStagingToDevice : umemStagingToHost)) return false;
  Stage stage = {.ctx = ctx,
                 .gpu = place->gpu,
                 .kind = kind,
                 .device = (char *)device_adr,
                 .host = host_adr,
                 .nbytes = nbytes};
  take_lanes(&stage);
  bool staged = stage.count >= least_lanes(kind) && follow(&stage, place);
  if (staged) {
    stage.piece = piece_size(&stage);
    umem_parallel(stage.count, copy_pieces, &stage);
  }
  for (unsigned i = 0; i < stage.count; i++) umemCudaLane_give(stage.lanes[i]);
  return staged;
}
