/* cuda_stage.c - copies between a GPU and bytes that no GPU can reach, through the channels: memory
 * that is not pinned, and contexts that only their own methods can read and write, such as files.
 *
 * The copy is cut into pieces, and each channel, in a thread of its own, takes the next that no
 * other has taken, until there are none. To the GPU a channel fills one chunk while the other is on
 * its way; from it, it drains one while the other is coming. There are several because one thread
 * moves some 10 GB/s and the link 55 (H200, PCIe 5). */
#include "cuda/cuda_methods.h"
#include "base/number.h"
#include "core/copy.h"
#include "core/threads.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>

_Static_assert((int)umemStagingChannels <= (int)umemParallelMost, "one thread for each channel");

typedef struct Stage {
  umemVirtual *ctx;
  umemCudaGpu *gpu;
  umemCudaDirection direction;
  umemVirtual *other; /* whose methods move the bytes; NULL: they are in pageable memory */
  umemCudaRuns const *runs;
  umemVirtual *buffers; /* what chunks are to these methods: a umemHost */
  size_t nbytes;
  size_t least, most; /* bytes of a piece, but for the last one */
  uint64_t until;     /* take no piece of another run then; 0: never */
  umemMeter *meter;   /* or NULL */
  size_t end;         /* bytes of pieces that may be taken; atomic */
  size_t next;        /* bytes of pieces that somebody has taken; atomic, as is over */
  bool over;          /* something has failed: take no other */
  pthread_t caller;
  unsigned count;
  umemCudaChannel *channels[umemStagingChannels];
} Stage;

/* Bytes of the copy, whose runs follow one another; none when there are no more. */
typedef struct Piece {
  size_t at, nbytes;
} Piece;

/* Short pieces at the beginning, so that the first transfers start early, and at the end, so that
 * all channels end together. Long ones between: each costs the driver the same. */
static size_t length_at(Stage const *stage, size_t at) {
  size_t rest = stage->nbytes - at, step = 4096;
  size_t length =
      at < stage->count * stage->least ? stage->least : rest / stage->count / step * step;
  return umem_lesser(rest, umem_greater(stage->least, umem_lesser(stage->most, length)));
}

/* The first run that ends behind byte `at` of the copy. */
static size_t run_at(Stage const *stage, size_t at) {
  size_t low = 0, high = stage->runs->count - 1;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (stage->runs->ends[middle] > at)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

/* When it is late, the copy ends with a run, once that has begun. What other threads have taken
 * behind it is copied once more later. */
static size_t end_of_pieces(Stage *stage, size_t at) {
  size_t end = __atomic_load_n(&stage->end, __ATOMIC_RELAXED);
  if (end < stage->nbytes || !stage->until || !at || at >= end ||
      umemClock_read(CLOCK_MONOTONIC) < stage->until)
    return end;
  size_t last = stage->runs->ends[run_at(stage, at - 1)];
  __atomic_compare_exchange_n(&stage->end, &end, last, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return __atomic_load_n(&stage->end, __ATOMIC_RELAXED);
}

static Piece take_piece(Stage *stage) {
  size_t at = __atomic_load_n(&stage->next, __ATOMIC_RELAXED), length;
  size_t end = end_of_pieces(stage, at);
  do {
    if (at >= end || __atomic_load_n(&stage->over, __ATOMIC_RELAXED) ||
        (stage->meter && umemMeter_is_over(stage->meter)))
      return (Piece){0, 0};
    length = umem_lesser(length_at(stage, at), end - at);
  } while (!__atomic_compare_exchange_n(&stage->next, &at, at + length, true, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED));
  return (Piece){at, length};
}

/* ---- the runs of a piece ---- */

/* Bytes of a piece that are without a gap on one side. */
typedef struct Stretch {
  uintptr_t adr;
  size_t nbytes;
} Stretch;

/* Where a piece is gone through. */
typedef struct Walk {
  size_t run, left; /* the run, and the bytes that are left of the piece */
  size_t skipped;   /* of the run, before them */
} Walk;

static Walk walk_of(Stage const *stage, Piece piece) {
  size_t run = run_at(stage, piece.at);
  size_t begin = run ? stage->runs->ends[run - 1] : 0;
  return (Walk){run, piece.nbytes, piece.at - begin};
}

static uintptr_t adr_of(Stage const *stage, size_t run, bool of_device) {
  umemCopyRun const *it = &stage->runs->runs[run];
  return of_device == (stage->direction == umemCudaToDevice) ? it->dst_adr : it->src_adr;
}

/* The next bytes, as far as the runs are neighbours on this side. */
static Stretch next_stretch(Stage const *stage, Walk *walk, bool of_device) {
  umemCopyRun const *runs = stage->runs->runs;
  Stretch stretch = {adr_of(stage, walk->run, of_device) + walk->skipped, 0};
  do {
    size_t n = umem_lesser(walk->left, runs[walk->run].nbytes - walk->skipped);
    stretch.nbytes += n;
    walk->left -= n;
    walk->skipped = 0;
    if (walk->left) walk->run++;
  } while (walk->left && adr_of(stage, walk->run, of_device) == stretch.adr + stretch.nbytes);
  return stretch;
}

/* ---- one channel; in its thread ---- */

/* What is on its way from or to a chunk. */
typedef struct Transfer {
  Piece piece;
  uint64_t begin; /* as of umem_route_clock; 0: nothing, or no route is noted */
} Transfer;

typedef struct Worker {
  Stage *stage;
  umemCudaChannel *channel;
  umemCudaScope scope; /* contexts are current for one thread */
  bool inside;         /* of the scope */
  Transfer moving[umemChannelChunks];
} Worker;

static bool stop(Stage *stage) {
  __atomic_store_n(&stage->over, true, __ATOMIC_RELAXED);
  if (stage->meter) umemMeter_stop(stage->meter);
  return false;
}

static bool enter(Worker *worker) {
  worker->inside = umemCudaScope_enter(&worker->scope, worker->stage->ctx, worker->stage->gpu);
  return worker->inside || stop(worker->stage);
}

static void leave(Worker *worker) {
  if (worker->inside) umemCudaScope_leave(&worker->scope);
  worker->inside = false;
}

/* Notes in the meter a piece that has arrived, outside of the scope, because the function of the
 * program may use CUDA too. Whether to go on; cancelling is no failure. */
static bool has_arrived(Worker *worker, Piece piece) {
  Stage *stage = worker->stage;
  if (!stage->meter || !piece.nbytes) return true;
  bool reports = pthread_equal(stage->caller, pthread_self());
  if (reports) leave(worker);
  umemMeter_add(stage->meter, piece.at, piece.nbytes);
  return !reports || enter(worker);
}

/* Whether error is none. The first one of a channel ends the copy and is recorded. */
static bool succeeded(Stage *stage, int error) {
  if (!error) return true;
  stop(stage);
  return umemCuda_check(stage->ctx, stage->gpu, error, "cannot copy %zu bytes %s GPU %d",
                        stage->nbytes, stage->direction == umemCudaToDevice ? "to" : "from",
                        stage->gpu->device);
}

static umemRoutePlace const pinned = {.kind = "pinned", .ordinal = -1};

/* Calls the other context outside of the scope, because its methods may use CUDA too. */
static bool call_other(Worker *worker, char *memory, Piece piece) {
  Stage *stage = worker->stage;
  uint64_t before = umem_thread.failures;
  umemOpenStep share;
  leave(worker);
  umem_share_begin(&share, stage->count);
  for (Walk walk = walk_of(stage, piece); walk.left && umem_thread.failures == before;) {
    Stretch to = next_stretch(stage, &walk, false);
    if (stage->direction == umemCudaToDevice)
      umem_fill_buffer(stage->other, to.adr, stage->buffers, memory, to.nbytes);
    else
      umem_empty_buffer(stage->other, to.adr, stage->buffers, memory, to.nbytes);
    memory += to.nbytes;
  }
  umem_share_end(&share);
  bool good = umem_thread.failures == before || stop(stage);
  return enter(worker) && good;
}

/* Moves the bytes of a piece between the other side and a chunk. */
static bool move(Worker *worker, char *memory, Piece piece) {
  Stage *stage = worker->stage;
  bool out = stage->direction == umemCudaToDevice;
  if (stage->other) return call_other(worker, memory, piece);
  uint64_t begin = umem_route_clock();
  for (Walk walk = walk_of(stage, piece); walk.left;) {
    Stretch to = next_stretch(stage, &walk, false);
    memcpy(out ? memory : (void *)to.adr, out ? (void const *)to.adr : memory, to.nbytes);
    memory += to.nbytes;
  }
  umem_note_between(out ? NULL : &pinned, out ? &pinned : NULL, umemWayMemcpy, piece.nbytes,
                    stage->count, begin);
  return true;
}

/* Starts the transfers of a piece whose runs have gaps on the GPU. */
static int start_parts(Worker *worker, unsigned b, Walk walk) {
  Stage *stage = worker->stage;
  char *memory = worker->channel->chunks[b]->memory;
  bool out = stage->direction == umemCudaToDevice;
  umemCudaBatch parts = {.count = 0};
  int error = umemCudaSuccess;
  while (walk.left && !error) {
    Stretch to = next_stretch(stage, &walk, true);
    size_t i = parts.count++;
    parts.dst[i] = out ? (void *)to.adr : memory;
    parts.src[i] = out ? memory : (void const *)to.adr;
    parts.nbytes[i] = to.nbytes;
    memory += to.nbytes;
    if (parts.count == umemCudaBatchMost || !walk.left)
      error = umemCudaChannel_add(worker->channel, b, &parts, stage->direction);
  }
  return error ? error : umemCudaChannel_end(worker->channel, b);
}

static bool start(Worker *worker, unsigned b, Piece piece) {
  Stage *stage = worker->stage;
  worker->moving[b] = (Transfer){piece, umem_route_clock()};
  Walk const begin = walk_of(stage, piece);
  Walk walk = begin;
  Stretch all = next_stretch(stage, &walk, true);
  if (walk.left) return succeeded(stage, start_parts(worker, b, begin));
  return succeeded(stage, umemCudaChannel_start(worker->channel, b, (void *)all.adr, all.nbytes,
                                                stage->direction));
}

/* The transfer of chunk b has ended. */
static void note_arrived(Worker *worker, unsigned b, bool good) {
  Transfer moved = worker->moving[b];
  if (!moved.begin) return;
  worker->moving[b].begin = 0;
  umemCuda_note(worker->stage->ctx, &pinned, worker->stage->direction == umemCudaToDevice,
                umemWayDma, good ? moved.piece.nbytes : 0, 0, moved.begin);
}

static bool settle(Worker *worker, unsigned b) {
  bool good = succeeded(worker->stage, umemCudaChannel_settle(worker->channel, b));
  note_arrived(worker, b, good);
  return good;
}

/* Whether chunk b is free, and what it has sent has arrived. */
static bool settle_sent(Worker *worker, unsigned b) {
  if (!settle(worker, b)) return false;
  Piece sent = worker->moving[b].piece;
  worker->moving[b].piece.nbytes = 0;
  return has_arrived(worker, sent);
}

/* Whether all pieces that the channel took are on their way. */
static bool send(Worker *worker) {
  Piece piece;
  for (unsigned b = 0; (piece = take_piece(worker->stage)).nbytes; b = 1 - b)
    if (!settle_sent(worker, b) || !move(worker, worker->channel->chunks[b]->memory, piece) ||
        !start(worker, b, piece))
      return false;
  return true;
}

static bool drain(Worker *worker, unsigned b, Piece piece) {
  return !piece.nbytes ||
         (settle(worker, b) && move(worker, worker->channel->chunks[b]->memory, piece) &&
          has_arrived(worker, piece));
}

/* Whether all pieces that the channel took have arrived. */
static bool receive(Worker *worker) {
  Piece coming, come = {0, 0};
  unsigned b = 0;
  for (; (coming = take_piece(worker->stage)).nbytes; b = 1 - b) {
    if (!start(worker, b, coming) || !drain(worker, 1 - b, come)) return false;
    come = coming;
  }
  return drain(worker, 1 - b, come);
}

/* A worker that cannot enter the scope again leaves its transfers to the caller (see
 * wait_for_left). */
static void copy_by(Stage *stage, unsigned i) {
  Worker worker = {.stage = stage, .channel = stage->channels[i]};
  if (!enter(&worker)) return;
  bool good = (stage->direction == umemCudaToDevice ? send : receive)(&worker);
  if (!worker.inside) return;
  int error = umemCudaChannel_finish(worker.channel);
  for (unsigned b = 0; b < umemChannelChunks; b++) note_arrived(&worker, b, good && !error);
  if (good)
    succeeded(stage, error);
  else
    stage->gpu->rt->last_error(); /* the first error was recorded */
  bool sent = good && !error && stage->direction == umemCudaToDevice;
  for (unsigned b = 0; sent && b < umemChannelChunks; b++)
    sent = has_arrived(&worker, worker.moving[b].piece);
  leave(&worker);
}

/* copy_by as a piece of umem_parallel. The library's threads run on the node of the GPU meanwhile;
 * the caller's own does not move. */
static void copy_near(void *job, unsigned i) {
  Stage *stage = job;
  cpu_set_t before;
  bool helps = stage->gpu->has_near && !pthread_equal(stage->caller, pthread_self());
  bool moved = helps && umemNear_enter(&stage->gpu->near, &before);
  copy_by(stage, i);
  if (moved) umemNear_leave(&before);
}

/* ---- all channels ---- */

bool umemCuda_follow(umemVirtual *ctx, umemCudaState const *state, umemCudaChannel *const *channels,
                     unsigned count, void *event, int *error) {
  umemCudaRt const *rt = state->gpu->rt;
  *error = rt->event_record(event, state->stream);
  bool captured = umem_can(ctx, umemOrdered) && umemCudaState_is_captured(state);
  for (unsigned i = 0; i < count && !captured && !*error; i++) {
    *error = rt->stream_wait(channels[i]->stream, event);
    channels[i]->broken |= *error != umemCudaSuccess;
  }
  if (captured && *error) rt->last_error();
  return !captured;
}

/* One thread drains slower than the driver, but fills a little faster. */
static unsigned least_channels(Stage const *stage) {
  return stage->direction == umemCudaToHost && !stage->other ? 2 : 1;
}

static unsigned most_channels(Stage const *stage) {
  bool to_host = stage->direction == umemCudaToHost;
  if (stage->other && to_host) return umemStagingWriters;
  size_t wide = to_host ? umemStagingWideToHost : umemStagingWide;
  return stage->nbytes < wide ? umemStagingThreads : umemStagingChannels;
}

static void take_channels(Stage *stage) {
  unsigned wanted = umem_parallel_pieces(stage->nbytes, umemStagingPart, most_channels(stage));
  if (wanted < least_channels(stage)) return;
  while (stage->count < wanted &&
         (stage->channels[stage->count] = umemCudaChannel_take(stage->gpu)))
    stage->count++;
}

/* Pieces fit all chunks, and are so short that all channels have several. */
static void measure_pieces(Stage *stage) {
  size_t const step = 4096;
  size_t most = stage->nbytes / (stage->count * umemChannelChunks) / step * step;
  if (stage->nbytes < umemStagingWide) most = umem_lesser(most, umemStagingPiece);
  most = umem_greater(most, umemStagingLeast);
  for (unsigned i = 0; i < stage->count; i++)
    most = umem_lesser(most, umemCudaChannel_room(stage->channels[i]));
  stage->most = most;
  stage->least = umem_lesser(stage->most, umemStagingEdge);
}

/* What fails before the first transfer is not recorded: the caller's own copy meets what is really
 * wrong. */
static bool begin(Stage *stage, umemCudaState const *state) {
  int error;
  take_channels(stage);
  if (stage->count < least_channels(stage)) return false;
  bool waits = umemCuda_follow(stage->ctx, state, stage->channels, stage->count,
                               stage->channels[0]->events[0], &error);
  if (waits && error) stage->gpu->rt->last_error();
  if (!waits || error) return false;
  measure_pieces(stage);
  stage->caller = pthread_self();
  return true;
}

/* Waits for the transfers of workers that could not, or that an exception of C++ has ended: blocks
 * may be freed as soon as the copy returns. The failure of such a worker was recorded. */
static void give_channels(Stage **ended) {
  Stage *stage = *ended;
  umemCudaScope scope;
  UMEM_FORGETTING();
  bool entered = umemCudaScope_enter(&scope, stage->ctx, stage->gpu);
  for (unsigned i = 0; i < stage->count; i++) {
    if (!entered)
      stage->channels[i]->in_flight[0] = true;
    else if (umemCudaChannel_finish(stage->channels[i]))
      stage->gpu->rt->last_error();
    umemCudaChannel_give(stage->channels[i]);
  }
  umemCudaScope_leave(&scope);
}

/* Nothing is queued on the stream afterwards, since all channels are done by then. Also true where
 * the GPU cannot be entered. */
static bool copy(Stage *stage, umemCudaState const *state) {
  umemCudaScope scope;
  if (!umemCudaScope_enter(&scope, stage->ctx, stage->gpu)) return true;
  __attribute__((cleanup(give_channels))) Stage *begun = stage;
  bool begins = begin(begun, state);
  umemCudaScope_leave(&scope);
  if (begins && stage->meter) umemMeter_take(stage->meter);
  if (begins) umem_parallel(stage->count, copy_near, begun);
  return begins;
}

static Stage stage_of(umemVirtual *ctx, umemCudaState *state, umemVirtual *other,
                      umemCudaRuns const *runs, umemCudaDirection direction) {
  size_t nbytes = runs->ends[runs->count - 1];
  return (Stage){.ctx = ctx,
                 .gpu = state->gpu,
                 .direction = direction,
                 .other = other,
                 .runs = runs,
                 .buffers = &state->buffers.host.super,
                 .until = umem_thread.until,
                 .nbytes = nbytes,
                 .end = nbytes};
}

bool umemCuda_stage_runs(umemVirtual *ctx, umemCudaState *state, umemVirtual *other,
                         umemCudaRuns const *runs, umemCudaDirection direction, size_t *count) {
  Stage stage = stage_of(ctx, state, other, runs, direction);
  bool staged = copy(&stage, state);
  *count = run_at(&stage, stage.end - 1) + 1;
  return staged;
}

bool umemCuda_stage(umemVirtual *ctx, umemCudaState *state, uintptr_t device_adr,
                    umemVirtual *other, uintptr_t other_adr, size_t nbytes,
                    umemCudaDirection direction) {
  bool out = direction == umemCudaToDevice;
  size_t least = out ? umemStagingToDevice : umemStagingToHost;
  if (nbytes < (other ? (size_t)umemStagingFrom : least)) return false;
  umemCopyRun run = {out ? other_adr : device_adr, out ? device_adr : other_adr, nbytes,
                     umemRunWaits};
  umemMeter *meter =
      umem_thread.meter ? umemMeter_find(ctx, run.src_adr, run.dst_adr, nbytes) : NULL;
  if (meter) run.nbytes = meter->rest;
  umemCudaRuns const runs = {&run, &run.nbytes, 1};
  Stage stage = stage_of(ctx, state, other, &runs, direction);
  stage.meter = meter;
  return copy(&stage, state);
}
