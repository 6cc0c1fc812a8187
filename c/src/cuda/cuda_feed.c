/* cuda_feed.c - the method copy_pieces: many pieces to one GPU, from memory that is not pinned and
 * from contexts such as files, through pinned memory.
 *
 * Each thread fills slots of pinned memory with pieces that fit the cache of its core, and posts
 * them. What is posted while the GPU is busy is sent as one batch: between two transfers the link
 * is idle for 2.7 us, so that it gets 0.87 of its rate from transfers of 1 MiB, and 0.98 from those
 * of 8 MiB (H200, PCIe 5). Two batches are on their way, one of which waits for the other: with
 * more they would be shorter.
 *
 * The threads of a feed share a line: the stream, what is posted, and the batches. A thread waits
 * only if all its slots are posted or sent, or if there is no piece. */
#include "base/number.h"
#include "core/copy.h"
#include "cuda/cuda_methods.h"
#include "cuda/cuda_pinned.h"

#include <stdint.h>
#include <string.h>

enum { slots_each = 8, most_lines = 16, most_tries = 20 };
static size_t const most_slot = 1 << 20, most_batch = 8 << 20; /* bytes */
static uint64_t const between_tries = 1000000;                 /* ns */

typedef enum SlotState {
  slot_open,
  slot_arrived,
  slot_failed,
  slot_refused, /* was not sent: any other copy knows what is wrong */
  slot_lost     /* may be on its way; the thread cannot enter the GPU to wait for it */
} SlotState;

typedef struct Slot {
  struct Slot *next; /* of those posted, or of its batch */
  char *memory;
  umemVirtual *src; /* of piece */
  umemCopyPiece piece;
  bool used;       /* has a piece; only its thread looks */
  SlotState state; /* with the line's lock, while it is open */
  int error;       /* of CUDA, if it has failed */
  uint64_t begin;  /* of its transfer, as of umem_route_clock */
} Slot;

typedef struct Line {
  void const *feed; /* umemFeed.all of the threads that share it; if there are any */
  unsigned threads;
  umemLock lock;
  pthread_cond_t changed; /* a batch has ended */
  umemCudaChannel *channel;
  Slot *posted;                  /* in the order that they are to be sent in */
  Slot *sent[umemChannelChunks]; /* by the batch of each event of the channel */
  unsigned begun, ended;         /* batches; number i has event i % umemChannelChunks */
  int errors[umemChannelChunks]; /* of CUDA, for each of them that could not be sent */
  bool waits;                    /* a thread waits for the oldest batch */
  umemVirtual *followed;         /* the stream waits for what was queued on it when */
  uintptr_t followed_for;        /*  this copy began */
} Line;

/* One thread. */
typedef struct Sender {
  umemVirtual *ctx;
  umemCudaGpu *gpu;
  umemVirtual *buffers; /* what slots are to methods of other contexts: a umemHost */
  umemFeed *feed;
  Line *line;
  umemCudaChunk *chunks[slots_each];
  Slot slots[slots_each];
  unsigned chunk_count, slot_count, open;
  size_t room;
  bool failed;
  umemAttempt reason; /* why the GPU could not be entered */
} Sender;

/* Old locks: contexts are constructed later. */
static umemLock lines_lock;
static Line lines[most_lines];

__attribute__((constructor(102))) static void make_lines(void) {
  umemLock_init(&lines_lock);
  for (Line *line = lines; line < lines + most_lines; line++) {
    umemLock_init(&line->lock);
    umemLock_init_timed(&line->changed);
  }
}

/* ---- the line: with its lock, in the scope ---- */

static void insert(Slot **list, Slot *slot) {
  while (*list) list = &(*list)->next;
  *list = slot;
  slot->next = NULL;
}

/* Whether it was there. */
static bool remove_slot(Slot **list, Slot *slot) {
  while (*list && *list != slot) list = &(*list)->next;
  if (!*list) return false;
  *list = slot->next;
  return true;
}

static Slot *remove_first(Slot **list) {
  Slot *slot = *list;
  if (slot) remove_slot(list, slot);
  return slot;
}

/* What a call has returned: the thread must not keep it as CUDA's last error. */
static int returned(Line const *self, int error) {
  if (error) self->channel->gpu->rt->last_error();
  return error;
}

/* Ends the oldest batch; after an error when no transfer is under way, if that can be known. */
static void end_batch(Line *self, int error) {
  unsigned b = self->ended++ % umemChannelChunks;
  umemCudaChannel *channel = self->channel;
  channel->broken |= error != umemCudaSuccess;
  if (error)
    returned(self, umemCudaChannel_finish(channel));
  else
    channel->in_flight[b] = false;
  for (Slot *slot; (slot = remove_first(&self->sent[b]));) {
    slot->error = error;
    slot->state = error ? slot_failed : slot_arrived;
  }
  pthread_cond_broadcast(&self->changed);
}

/* Makes the stream wait for what is queued on the context of the first piece, if it does not yet.
 * False: it cannot, and the piece is no longer in the line. */
static bool follow_first(Line *self) {
  umemCopyPiece const *piece = &self->posted->piece;
  if (self->followed == piece->dst && self->followed_for == piece->copy) return true;
  umemCudaChannel *channel = self->channel;
  int error = umemCudaSuccess;
  bool waits = umemCuda_follow(piece->dst, umemCuda_state_of(piece->dst), &channel, 1,
                               channel->events[self->begun % umemChannelChunks], &error);
  self->followed = waits && !returned(self, error) ? piece->dst : NULL;
  self->followed_for = piece->copy;
  if (self->followed) return true;
  remove_first(&self->posted)->state = slot_refused;
  pthread_cond_broadcast(&self->changed);
  return false;
}

/* Of one copy. */
static void send_batch(Line *self) {
  unsigned b = self->begun % umemChannelChunks;
  umemCudaBatch batch = {.count = 0};
  size_t nbytes = 0;
  do {
    Slot *slot = remove_first(&self->posted);
    size_t i = batch.count++;
    batch.dst[i] = (void *)slot->piece.dst_adr;
    batch.src[i] = slot->memory;
    batch.nbytes[i] = slot->piece.nbytes;
    nbytes += slot->piece.nbytes;
    insert(&self->sent[b], slot);
  } while (self->posted && self->posted->piece.copy == self->followed_for &&
           self->posted->piece.dst == self->followed && batch.count < umemCudaBatchMost &&
           nbytes < most_batch);
  int error = umemCudaChannel_add(self->channel, b, &batch, umemCudaToDevice);
  if (!error) error = umemCudaChannel_end(self->channel, b);
  self->errors[b] = returned(self, error);
  self->begun++;
}

static bool is_busy(Line const *self) { return self->begun - self->ended == umemChannelChunks; }

/* Calls query, or another function, with the event of the oldest batch, unless that was not sent.
 * Returns the error of the batch. */
static int call_oldest(Line const *self, int (*call)(void *event)) {
  unsigned b = self->ended % umemChannelChunks;
  return self->errors[b] ? self->errors[b] : returned(self, call(self->channel->events[b]));
}

/* Ends what has arrived, and sends what is posted. What a thread waits for it ends itself: its
 * event is recorded again only then. */
static void advance(Line *self) {
  umemCudaRt const *rt = self->channel->gpu->rt;
  while (self->ended < self->begun && !self->waits) {
    int error = call_oldest(self, rt->event_query);
    if (error == umemCudaNotReady) break;
    end_batch(self, error);
  }
  while (self->posted && !is_busy(self))
    if (follow_first(self)) send_batch(self);
}

/* Returns when a batch has ended, by whoever. There is one. */
static void wait_for_batch(Line *self) {
  if (self->waits) {
    umemLock_wait(&self->lock, &self->changed);
    return;
  }
  self->waits = true;
  umemLock_release(&self->lock);
  int error = call_oldest(self, self->channel->gpu->rt->event_synchronize);
  umemLock_acquire(&self->lock);
  self->waits = false;
  end_batch(self, error);
  advance(self);
}

/* ---- one thread ---- */

static Slot *find_free(Sender *self) {
  for (Slot *slot = self->slots; slot < self->slots + self->slot_count; slot++)
    if (!slot->used) return slot;
  return NULL;
}

/* With the lock. */
static bool has_ended(Slot const *slot) { return slot->used && slot->state != slot_open; }

static bool has_any_ended(Sender const *self) {
  for (unsigned i = 0; i < self->slot_count; i++)
    if (has_ended(&self->slots[i])) return true;
  return false;
}

/* As any other copy, which knows what to say in a capture. In no scope. */
static bool copy_alone(Slot const *slot) {
  umemCopyPiece const *piece = &slot->piece;
  uint64_t before = umem_thread.failures;
  umem_copy_run(slot->src, piece->src_adr, piece->dst, piece->dst_adr, piece->nbytes);
  if (umem_thread.failures == before) umem_synchronize(piece->dst);
  return umem_thread.failures == before;
}

static umemRoutePlace const pinned = {.kind = "pinned", .ordinal = -1};

/* Ends the piece of a slot that is not open, in no scope. */
static void end_piece(Sender *self, Slot *slot) {
  umemCopyPiece const *piece = &slot->piece;
  bool done = slot->state == slot_arrived, refused = slot->state == slot_refused,
       lost = slot->state == slot_lost;
  slot->state = slot_failed; /* if an exception of C++ ends what follows */
  self->feed->about(self->feed, piece);
  if (refused)
    done = copy_alone(slot);
  else if (slot->begin)
    umemCuda_note(self->ctx, &pinned, true, umemWayDma, done ? piece->nbytes : 0, 0, slot->begin);
  self->failed |= !done && !refused;
  if (slot->error)
    umemCuda_check(self->ctx, self->gpu, slot->error, "cannot copy %zu bytes to GPU %d",
                   piece->nbytes, self->gpu->device);
  if (lost) umemAttempt_record(&self->reason);
  self->feed->end(self->feed, piece, done);
  slot->used = false;
  self->open--;
}

/* Whether the thread is in the scope. Nothing is recorded yet: that belongs to a piece. */
static bool enter(Sender *self, umemCudaScope *scope) {
  umemAttempt_begin(&self->reason);
  bool entered = umemCudaScope_enter(scope, self->ctx, self->gpu);
  umemAttempt_end(&self->reason);
  return entered;
}

static void post(Sender *self, Slot *filled) {
  umemCudaScope scope;
  filled->state = slot_refused;
  if (!enter(self, &scope)) return;
  umemLock_acquire(&self->line->lock);
  filled->begin = umem_route_clock(); /* another thread may send it */
  filled->state = slot_open;
  insert(&self->line->posted, filled);
  advance(self->line);
  umemLock_release(&self->line->lock);
  umemCudaScope_leave(&scope);
}

/* For a thread that cannot enter the GPU any more. What was sent may be on its way until the
 * channel has ended that, which has the memory then. */
static void abandon(Sender *self) {
  Line *line = self->line;
  UMEM_LOCKED(&line->lock);
  for (unsigned i = 0; i < self->slot_count; i++) {
    Slot *slot = &self->slots[i];
    if (!slot->used || slot->state != slot_open) continue;
    slot->state = remove_slot(&line->posted, slot) ? slot_refused : slot_lost;
    for (unsigned b = 0; b < umemChannelChunks; b++) remove_slot(&line->sent[b], slot);
  }
}

/* Whether other threads of the line have ended a piece of this one, soon. */
static bool is_helped(Sender *self) {
  Line *line = self->line;
  UMEM_LOCKED(&line->lock);
  if (!has_any_ended(self))
    umemLock_wait_until(&line->lock, &line->changed,
                        umemClock_read(CLOCK_MONOTONIC) + between_tries);
  return has_any_ended(self);
}

/* Until one of the open pieces has ended. */
static void wait_for_piece(Sender *self) {
  umemCudaScope scope;
  for (unsigned tries = 0; !enter(self, &scope); tries++) {
    bool gives_up = tries == most_tries || umemCudaGpu_is_inherited(self->gpu);
    if (gives_up) abandon(self);
    if (gives_up || is_helped(self)) return;
  }
  umemLock_acquire(&self->line->lock);
  advance(self->line);
  while (!has_any_ended(self)) wait_for_batch(self->line);
  umemLock_release(&self->line->lock);
  umemCudaScope_leave(&scope);
}

/* Ends the pieces that are no longer open. */
static void end_pieces(Sender *self) {
  bool ended[slots_each];
  umemLock_acquire(&self->line->lock);
  for (unsigned i = 0; i < self->slot_count; i++) ended[i] = has_ended(&self->slots[i]);
  umemLock_release(&self->line->lock);
  for (unsigned i = 0; i < self->slot_count; i++)
    if (ended[i]) end_piece(self, &self->slots[i]);
}

/* Reads a piece into its slot, in no scope, as methods of other contexts may use CUDA too. Whether
 * that succeeded. */
static bool fill(Sender *self, Slot *slot) {
  umemCopyPiece const *piece = &slot->piece;
  unsigned threads = self->feed->threads;
  uint64_t before = umem_thread.failures;
  self->feed->about(self->feed, piece);
  if (umem_cpu_reads(slot->src)) {
    uint64_t begin = umem_route_clock();
    memcpy(slot->memory, (void const *)piece->src_adr, piece->nbytes);
    umem_note_between(NULL, &pinned, umemWayMemcpy, piece->nbytes, threads, begin);
  } else {
    umemOpenStep share;
    umem_share_begin(&share, threads);
    umem_fill_buffer(slot->src, piece->src_adr, self->buffers, slot->memory, piece->nbytes);
    umem_share_end(&share);
  }
  return umem_thread.failures == before;
}

/* Until the slot is filled, its piece has failed: an exception of C++ may end that. */
static void send(Sender *self, Slot *slot) {
  slot->src = self->feed->src;
  slot->begin = 0;
  slot->error = umemCudaSuccess;
  slot->state = slot_failed;
  slot->used = true;
  self->open++;
  if (fill(self, slot)) post(self, slot);
  end_pieces(self);
}

/* ---- the memory of slots ---- */

static void add_slots(Sender *self, umemCudaChunk *chunk) {
  size_t room = umem_lesser(chunk->nbytes, most_slot);
  self->chunks[self->chunk_count++] = chunk;
  self->room = self->slot_count ? umem_lesser(self->room, room) : room;
  for (size_t at = 0; at + room <= chunk->nbytes && self->slot_count < slots_each; at += room)
    self->slots[self->slot_count++].memory = chunk->memory + at;
}

/* Until there are all slots, or other copies and feeds have left no memory. */
static bool add_chunk(Sender *self) {
  UMEM_FORGETTING();
  if (self->slot_count == slots_each) return false;
  UMEM_CUDA_SCOPE(self->ctx, self->gpu, false);
  umemCudaChunk *chunk = umemCudaChunk_take(self->gpu);
  if (chunk) add_slots(self, chunk);
  return chunk;
}

static void send_all(Sender *self) {
  for (;;) {
    Slot *slot = find_free(self);
    if (!slot && add_chunk(self)) slot = find_free(self);
    if (!self->failed && slot && self->feed->next(self->feed, self->room, &slot->piece)) {
      send(self, slot);
    } else if (self->open) {
      wait_for_piece(self);
      end_pieces(self);
    } else {
      return;
    }
  }
}

/* ---- lines ---- */

/* The line of the threads of a feed, or one without threads; NULL: there are too many. */
static Line *join_line(void const *feed) {
  UMEM_LOCKED(&lines_lock);
  Line *unused = NULL, *line = lines;
  for (; line < lines + most_lines && !(line->threads && line->feed == feed); line++)
    if (!line->threads) unused = line;
  if (line == lines + most_lines) line = unused;
  if (line) line->feed = feed;
  if (line) line->threads++;
  return line;
}

/* Returns the channel if the caller was the last one. */
static umemCudaChannel *leave_line(Line *line) {
  UMEM_LOCKED(&lines_lock);
  if (--line->threads) return NULL;
  umemCudaChannel *channel = line->channel;
  line->channel = NULL;
  line->followed = NULL;
  line->begun = line->ended = 0;
  return channel;
}

/* Takes a channel for the line, if it has none, whose chunks go to this thread. */
static bool open_channel(Sender *self) {
  Line *line = self->line;
  UMEM_LOCKED(&line->lock);
  if (line->channel) return true;
  line->channel = umemCudaChannel_take(self->gpu);
  for (unsigned b = 0; line->channel && b < umemChannelChunks; b++) {
    add_slots(self, line->channel->chunks[b]);
    line->channel->chunks[b] = NULL;
  }
  return line->channel;
}

/* Whether there are a stream and a slot at least. What fails is not recorded: other routes of umem
 * meet what is really wrong. */
static bool begin(Sender *self) {
  UMEM_FORGETTING();
  UMEM_CUDA_SCOPE(self->ctx, self->gpu, false);
  self->line = join_line(self->feed->all);
  if (!self->line || !open_channel(self)) return false;
  while (add_chunk(self)) {
  }
  return self->slot_count;
}

/* Chunks go back with the channel, when nothing uses them any more. */
static void leave_chunks(Sender *self) {
  UMEM_LOCKED(&self->line->lock);
  for (unsigned i = 0; i < self->chunk_count; i++)
    umemCudaChannel_keep(self->line->channel, self->chunks[i]);
}

/* Also after an exception of C++: transfers end before their slots do. */
static void leave(Sender *self) {
  Line *line = self->line;
  if (!line) return;
  while (self->open) {
    wait_for_piece(self);
    end_pieces(self);
  }
  leave_chunks(self);
  umemCudaChannel *channel = leave_line(line);
  if (channel) umemCudaChannel_close(self->ctx, channel);
}

/* As for single copies: what the CPU or a GPU has to wait for, or a disk gives to the GPU itself,
 * has routes of its own. */
static bool takes(umemVirtual *src, umemCudaGpu *gpu) {
  unsigned never = umemOrdered | umemDeviceShared | umemDeviceAccessible;
  return umem_can(src, umemConcurrent) && !(src->capabilities & never) &&
         !UMEM_SLOT(src, upstream) && !(UMEM_SLOT(src, direct_file) && umemCudaGds_open(gpu));
}

bool umemCuda_copy_pieces(umemVirtual *ctx, umemVirtual *src, umemFeed *feed) {
  umemCudaState *state = umemCuda_state_of(ctx);
  if (!takes(src, state->gpu)) return false;
  __attribute__((cleanup(leave))) Sender self = {
      .ctx = ctx, .gpu = state->gpu, .buffers = &state->buffers.host.super, .feed = feed};
  if (!begin(&self)) return false;
  send_all(&self);
  return true;
}
