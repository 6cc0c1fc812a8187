/* cuda_state.c - construction, destruction, blocks, identity and streams of the CUDA contexts. They
 * differ in where their memory comes from (umemCudaSource) and in what else they do. Streams wait
 * for one another by events, so that the host continues. */
#include "cuda/cuda_state.h"
#include "core/memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <umem/cuda.h>
#include <unistd.h>

/* ==== blocks that this process has shared with others ==== */

UMEM_FORKING_LOCK(lock)
static umemCudaShared *all;

void umemCudaShared_lock(void) { pthread_mutex_lock(&lock); }
void umemCudaShared_unlock(void) { pthread_mutex_unlock(&lock); }

/* ---- numbers ---- */

uint64_t umemCudaShared_number(void) {
  static uint64_t last;
  return __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
}

/* They need not be secret. The time distinguishes processes of the same number, also those of other
 * namespaces. */
void umemCudaShared_process(uint64_t numbers[2]) {
  static uint64_t ours[2];
  static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&once);
  if (!ours[0]) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    ours[0] = (uint64_t)getpid() << 32 | (uint32_t)now.tv_nsec;
    ours[1] = (uint64_t)now.tv_sec << 32 ^ (uintptr_t)&now;
  }
  memcpy(numbers, ours, sizeof ours);
  pthread_mutex_unlock(&once);
}

/* ---- the list ---- */

umemCudaShared *umemCudaShared_find(uint64_t number) {
  umemCudaShared *one = all;
  while (one && one->number != number) one = one->next;
  return one;
}

umemCudaShared *umemCudaShared_at(umemCudaGpu const *gpu, uintptr_t adr) {
  umemCudaShared *one = all;
  while (one && (one->gpu != gpu || !one->attached || adr - one->base >= one->nbytes))
    one = one->next;
  return one;
}

static umemCudaShared *find_block(struct umemCudaState const *state, uintptr_t base) {
  umemCudaShared *one = all;
  while (one && (one->state != state || one->base != base)) one = one->next;
  return one;
}

uint64_t umemCudaShared_enter(struct umemCudaState *state, umemCudaGpu const *gpu, uintptr_t base,
                              size_t nbytes) {
  umemCudaShared_lock();
  umemCudaShared *one = find_block(state, base);
  if (!one && (one = calloc(1, sizeof *one))) {
    *one = (umemCudaShared){all, state, gpu, base, nbytes, umemCudaShared_number(), 0};
    all = one;
  }
  uint64_t number = one ? one->number : 0;
  umemCudaShared_unlock();
  return number;
}

void umemCudaShared_forget(struct umemCudaState const *state, uintptr_t base) {
  umemCudaShared_lock();
  for (umemCudaShared **link = &all; *link;) {
    umemCudaShared *one = *link;
    if (one->state == state && (!base || one->base == base)) {
      *link = one->next;
      free(one);
    } else {
      link = &one->next;
    }
  }
  umemCudaShared_unlock();
}

/* ==== contexts ==== */

/* All four types are {super, impl, ...}. */
static void **impl_of(umemVirtual *ctx) { return &((umemCuda *)ctx)->impl; }

/* Device memory is one for all contexts of a device; pinned and managed memory for all of its
 * kind. */
bool umemCuda_is_same_device(umemVirtual *ctx, umemVirtual *other) {
  umemCudaState *one = umemCuda_state_of(ctx), *two = umemCuda_state_of(other);
  if (!one || !two) return false;
  bool on_device = !umem_can(ctx, umemCpuReadable) && !umem_can(other, umemCpuReadable);
  return on_device ? one->gpu == two->gpu : ctx->vptr == other->vptr;
}

/* ---- construction and destruction ---- */

umemOption const umem_cuda_device = {
    .name = "device", .kind = umemDeviceOption, .help = "the number of the GPU; default: 0"};

void *umemCuda_construct(umemVirtual *ctx, umemKind const *kind, umemCudaSource const *source,
                         int device) {
  umem_construct(ctx, kind, NULL);
  umemCudaState *state = *impl_of(ctx) = calloc(1, kind->impl_size);
  if (!state)
    umemVirtual_fail(ctx, umemMemoryError, "no memory for a context");
  else
    state->gpu = umemCudaGpu_open(ctx, device);
  if (!state || !state->gpu) {
    free(state);
    *impl_of(ctx) = NULL;
    umem_construct_failed(ctx);
    return NULL;
  }
  state->source = source;
  umemFind_set_foreign(umemCuda_find_foreign);
  umemLock_init(&state->lock);
  umemCudaBuffers_ctor(&state->buffers, state->gpu);
  ctx->host = &state->buffers;
  return state;
}

void umemCuda_give_back(umemVirtual *ctx) {
  umemCudaState *state = umemCuda_state_of(ctx);
  umemCudaSource const *source = state->source;
  umemTableCell *cell;
  for (size_t at = 0; (cell = umemTable_next(&state->blocks, &at)); at++) {
    int error = source->bar ? source->bar(state) : umemCudaSuccess;
    if (!error) error = source->give(state, (void *)umemTable_key(cell), cell->value);
    umemCuda_check(ctx, state->gpu, error, "cannot free the block at 0x%jx",
                   (uintmax_t)umemTable_key(cell));
  }
  umemTable_clear(&state->blocks);
}

umemStatusType umemCuda_list(umemVirtual *ctx) {
  umemLive_add(&umemCuda_state_of(ctx)->live, ctx);
  return umemOK;
}

void umemCuda_unlist(umemVirtual *ctx) { umemLive_remove(&umemCuda_state_of(ctx)->live); }

/* Other processes cannot attach blocks of the context any more. */
static void end_sharing(umemVirtual *ctx) {
  umemCudaState *state = umemCuda_state_of(ctx);
  if (state->shares) umemCudaShared_forget(state, 0);
  if (!state->event || umemCudaGpu_is_inherited(state->gpu)) return;
  UMEM_CUDA_SCOPE(ctx, state->gpu);
  UMEM_CUDA_TRY_TWICE(state->gpu->rt, event_destroy(state->event));
}

/* A child of fork cannot free the blocks: CUDA does not work there. */
void umemCuda_dtor(umemVirtual *ctx) {
  umemCudaState *state = umemCuda_state_of(ctx);
  umemCudaScope scope;
  umemCuda_unlist(ctx);
  end_sharing(ctx);
  if (state->blocks.count && !umemCudaGpu_is_inherited(state->gpu) &&
      umemCudaScope_enter(&scope, ctx, state->gpu)) {
    umemCuda_give_back(ctx);
    umemCudaScope_leave(&scope);
  }
  umem_dtor(&state->buffers);
  umemTable_clear(&state->blocks);
  umemLock_destroy(&state->lock);
  umemCudaGpu_close(state->gpu);
  free(state);
  *impl_of(ctx) = NULL;
}

umemStatusType umemCuda_construct_failed(umemVirtual *ctx) {
  umemCuda_dtor(ctx);
  umem_construct_failed(ctx);
  return umem_thread.last;
}

/* ---- blocks ---- */

static bool remember(umemCudaState *state, uintptr_t adr, size_t nbytes) {
  UMEM_LOCKED(&state->lock);
  return umemTable_insert(&state->blocks, adr, nbytes);
}

/* A block that has left the table is live again. Its cell is free still, or another one is: the
 * table keeps more of them than threads free blocks at once. */
static void put_back(umemCudaState *state, uintptr_t adr, size_t nbytes) {
  uintptr_t none;
  UMEM_LOCKED(&state->lock);
  umemTable_put(&state->blocks, adr, nbytes, &none);
}

/* The size of the block that begins at adr, which leaves the table if take is true; 0, with
 * umemValueError, when there is none. */
static size_t find(umemVirtual *ctx, umemCudaState *state, uintptr_t adr, bool take) {
  umemLock_acquire(&state->lock);
  umemTableCell *cell = umemTable_find(&state->blocks, adr);
  size_t nbytes = cell ? cell->value : 0;
  if (cell && take) umemTable_remove(&state->blocks, cell);
  umemLock_release(&state->lock);
  if (!cell)
    umemVirtual_fail(ctx, umemValueError, "0x%jx is not a live block of this %s", (uintmax_t)adr,
                     umem_get_device_name(ctx));
  return nbytes;
}

static bool allows(umemVirtual *ctx, umemCudaState *state, size_t nbytes) {
  return !state->source->allows || state->source->allows(ctx, nbytes);
}

uintptr_t umemCuda_alloc(umemVirtual *ctx, size_t nbytes) {
  umemCudaState *state = umemCuda_state_of(ctx);
  uint64_t before = umem_thread.failures;
  umemCudaScope scope;
  if (!umemCudaScope_enter(&scope, ctx, state->gpu)) return 0;
  void *adr = NULL;
  bool allowed = allows(ctx, state, nbytes);
  int error = allowed ? state->source->get(state, &adr, nbytes) : umemCudaSuccess;
  if (allowed && UMEM_CUDA_CHECK(ctx, state->gpu, error, "cannot allocate %zu bytes", nbytes) &&
      !remember(state, (uintptr_t)adr, nbytes)) {
    umemVirtual_fail(ctx, umemMemoryError, "no memory to remember a block");
    if (state->source->give(state, adr, nbytes)) state->gpu->rt->last_error();
  }
  bool got = umem_thread.failures == before;
  umemCudaScope_leave(&scope);
  if (umem_thread.failures == before) return (uintptr_t)adr;
  if (got) umemCuda_free(ctx, (uintptr_t)adr); /* it is leaving that has failed */
  return 0;
}

void umemCuda_free(umemVirtual *ctx, uintptr_t adr) {
  umemCudaState *state = umemCuda_state_of(ctx);
  UMEM_CUDA_SCOPE(ctx, state->gpu);
  size_t nbytes = allows(ctx, state, 0) ? find(ctx, state, adr, true) : 0;
  if (nbytes && __atomic_load_n(&state->shares, __ATOMIC_RELAXED))
    umemCudaShared_forget(state, adr);
  umemCuda_end_lost(state->gpu);
  int error = nbytes ? state->source->give(state, (void *)adr, nbytes) : umemCudaSuccess;
  if (!UMEM_CUDA_CHECK(ctx, state->gpu, error, "cannot free the block at 0x%jx", (uintmax_t)adr))
    put_back(state, adr, nbytes); /* it remains live: to be freed again, or with the context */
}

uintptr_t umemCuda_realloc(umemVirtual *ctx, uintptr_t adr, size_t old_size, size_t new_size) {
  size_t nbytes = find(ctx, umemCuda_state_of(ctx), adr, false);
  if (!nbytes || !umem_has_size(ctx, adr, nbytes, old_size)) return 0;
  return umem_move_block(ctx, adr, old_size, new_size);
}

/* ---- finding ---- */

umemSearch umemCuda_find(umemVirtual *ctx, uintptr_t adr, umemFound *found) {
  umemCudaState *state = umemCuda_state_of(ctx);
  if (!umemLock_try(&state->lock)) return umemSearchBusy;
  umemTableCell const *cell = umemTable_containing(&state->blocks, adr);
  if (cell) {
    found->adr = umemTable_key(cell);
    found->nbytes = cell->value;
  }
  umemLock_release(&state->lock);
  return cell ? umemSearchFound : umemSearchNone;
}

bool umemCuda_usage(umemVirtual *ctx, umemUsage *usage) {
  umemCudaState *state = umemCuda_state_of(ctx);
  umemTableCell *cell;
  if (!umemLock_try(&state->lock)) return false;
  usage->nbytes = 0;
  for (size_t at = 0; (cell = umemTable_next(&state->blocks, &at)); at++)
    usage->nbytes += cell->value;
  umemLock_release(&state->lock);
  return true;
}

/* ==== streams and captures ==== */

bool umemCudaState_is_captured(umemCudaState const *state) {
  umemCudaRt const *rt = state->gpu->rt;
  umemCudaCapture capture = umemCudaNoCapture;
  if (rt->stream_capture(state->stream, &capture, NULL)) rt->last_error();
  return capture != umemCudaNoCapture;
}

bool umemCuda_refuse_capture(umemVirtual *ctx, char const *advice) {
  if (!umemCudaState_is_captured(umemCuda_state_of(ctx))) return false;
  umemVirtual_fail(ctx, umemNotSupportedError, "the stream is being captured into a graph: %s",
                   advice);
  return true;
}

/* Tries twice: an error may be about the call and not about the work, whose memory may be freed
 * once this has failed. */
int umemCudaState_finish(umemCudaState const *state) {
  umemCudaRt const *rt = state->gpu->rt;
  int error = rt->stream_synchronize(state->stream);
  if (error && rt->stream_synchronize(state->stream)) rt->last_error();
  return error;
}

/* Queries whether the stream is captured after it has recorded the event: an event from before a
 * capture waits for nothing in it. Records an event anew that was recorded in a capture which is
 * over by now. */
int umemCudaState_finish_uncaptured(umemCudaState const *state, umemVirtual *ctx) {
  umemCudaRt const *rt = state->gpu->rt;
  if (!state->stream) return umemCudaState_finish(state);
  void *event = umemCudaGpu_take_event(state->gpu, ctx);
  if (!event) return umemCudaSuccess; /* it was recorded */
  int error = umemCudaCapturedEvent;
  for (int tries = 0; tries < umemCudaCaptureTries && umemCuda_is_of_captured_event(error);
       tries++) {
    if (tries) rt->last_error();
    error = rt->event_record(event, state->stream);
    if (!error && umemCudaState_is_captured(state)) error = umemCudaCaptureUnsupported;
    if (!error) error = rt->event_synchronize(event);
  }
  umemCudaGpu_give_event(state->gpu, event);
  return error;
}

/* ==== the order of streams ==== */

/* A stream that waits for a captured stream becomes a part of the capture. A captured stream cannot
 * wait for work outside of the capture. umem checks this when it records the event, because another
 * thread may begin a capture at any time. */
static bool can_wait(umemVirtual *ctx, umemCudaState *state, umemCudaState *other) {
  umemCudaRt const *rt = state->gpu->rt;
  umemCudaCapture mine = umemCudaNoCapture, theirs = umemCudaNoCapture;
  uint64_t my_id = 0, their_id = 0;
  if (rt->stream_capture(state->stream, &mine, &my_id) ||
      rt->stream_capture(other->stream, &theirs, &their_id))
    rt->last_error();
  bool inside = mine != umemCudaNoCapture && theirs != umemCudaNoCapture && my_id == their_id;
  if (inside ||
      (mine == umemCudaNoCapture && !(umem_thread.uncaptured && theirs != umemCudaNoCapture)))
    return true;
  return UMEM_FAIL(ctx, umemNotSupportedError,
                   "%s stream is being captured into a graph: it cannot wait for work outside",
                   mine == umemCudaNoCapture ? "the other" : "the");
}

/* Records the point up to which the work of state is queued, in an event of its GPU, in whose scope
 * it is called. */
static bool record(umemVirtual *ctx, umemCudaState *state, void *event) {
  return umemCuda_check(ctx, state->gpu, state->gpu->rt->event_record(event, state->stream),
                        "cannot record an event");
}

static bool mark(umemVirtual *ctx, umemCudaState *state, void *event) {
  UMEM_CUDA_SCOPE(ctx, state->gpu, false);
  return record(ctx, state, event);
}

/* Again, where the event was recorded in a capture that is over by now. */
static void wait_for_event(umemVirtual *ctx, umemCudaState *state, umemCudaState *other,
                           void *event) {
  umemCudaRt const *rt = state->gpu->rt;
  int error = umemCudaCapturedEvent;
  for (int tries = 0; tries < umemCudaCaptureTries && umemCuda_is_of_captured_event(error);
       tries++) {
    if (tries) rt->last_error();
    if (!mark(ctx, other, event) || !can_wait(ctx, state, other)) return;
    error = rt->stream_wait(state->stream, event);
  }
  umemCuda_check(ctx, state->gpu, error, "cannot wait for another stream");
}

static void *take_event_of(umemVirtual *ctx, umemCudaGpu *gpu) {
  UMEM_CUDA_SCOPE(ctx, gpu, NULL);
  return umemCudaGpu_take_event(gpu, ctx);
}

/* For memory that belongs to no stream: kernels and unfinished copies on it are on the legacy
 * stream. A capture cannot wait for them. */
static void wait_for_legacy(umemVirtual *ctx, umemCudaState *state, umemCudaState *other) {
  if (state->gpu == other->gpu && !state->stream) return;
  if (!umemCudaState_is_captured(state))
    umemCudaGpu_precedes(other->gpu, ctx, state->stream);
  else if (umem_thread.uncaptured)
    umemCuda_refuse_capture(ctx, "it cannot wait for work outside");
}

/* Lets the stream of state wait for what is queued on other, whose state is that. Failures go to
 * ctx. */
static void wait_for_queue(umemVirtual *ctx, umemCudaState *state, umemVirtual *other,
                           umemCudaState *that) {
  UMEM_CUDA_SCOPE(ctx, state->gpu);
  void *event = umem_can(other, umemOrdered) ? take_event_of(ctx, that->gpu) : NULL;
  if (event) {
    wait_for_event(ctx, state, that, event);
    umemCudaGpu_give_event(that->gpu, event);
  } else if (!umem_can(other, umemOrdered)) {
    wait_for_legacy(ctx, state, that);
  }
}

void umemCuda_wait(umemVirtual *ctx, umemVirtual *other) {
  other = umem_innermost(other);
  umemCudaState *that = umemCuda_state_of(other);
  if (that)
    wait_for_queue(ctx, umemCuda_state_of(ctx), other, that);
  else
    umem_synchronize(other);
}

/* ---- marks: events that a transfer keeps ---- */

static bool mark_reached(umemVirtual *ctx, umemMark *mark, bool waits) {
  umemCudaGpu *gpu = umemCuda_state_of(ctx)->gpu;
  void *event = (void *)mark->own[0];
  UMEM_CUDA_SCOPE(ctx, gpu, true);
  int error = waits ? gpu->rt->event_synchronize(event) : gpu->rt->event_query(event);
  bool reached = error != umemCudaNotReady;
  if (reached) umemCuda_check(ctx, gpu, error, "queued work has failed");
  return reached;
}

static void mark_release(umemVirtual *ctx, umemMark *mark) {
  umemCudaGpu *gpu = umemCuda_state_of(ctx)->gpu;
  void *event = (void *)mark->own[0];
  if (umemCudaGpu_is_inherited(gpu) || umemCudaGpu_keep_event(gpu, event)) return;
  UMEM_CUDA_SCOPE(ctx, gpu);
  umemCudaGpu_give_event(gpu, event);
}

/* Uses the stream of later alone. */
static bool mark_wait(umemVirtual *ctx, umemMark *mark, umemVirtual *later) {
  umemCudaState *state = umemCuda_state_of(later);
  uint64_t before = umem_thread.failures;
  umemCudaScope scope;
  if (!state || !umem_can(later, umemOrdered)) {
    mark_reached(ctx, mark, true);
    return umem_thread.failures == before;
  }
  if (!umemCudaScope_enter(&scope, later, state->gpu)) return false;
  if (!umemCuda_refuse_capture(later, "it cannot wait for work outside"))
    umemCuda_check(later, state->gpu,
                   state->gpu->rt->stream_wait(state->stream, (void *)mark->own[0]),
                   "cannot wait for another stream");
  umemCudaScope_leave(&scope);
  return umem_thread.failures == before;
}

/* An event that was recorded in a capture, which another thread may have begun, says nothing. One
 * that says something already is not recorded in a capture. */
bool umemCuda_mark(umemVirtual *ctx, umemMark *out) {
  umemCudaState *state = umemCuda_state_of(ctx);
  char const *advice = "no mark can be set in its queue";
  UMEM_CUDA_SCOPE(ctx, state->gpu, false);
  void *kept = (void *)out->own[0], *event = kept;
  bool refused = kept && umemCuda_refuse_capture(ctx, advice);
  if (!kept) event = umemCudaGpu_take_event(state->gpu, ctx);
  bool marked =
      !refused && event && record(ctx, state, event) && !umemCuda_refuse_capture(ctx, advice);
  if (event && !kept && !marked) umemCudaGpu_give_event(state->gpu, event);
  if (marked && !kept) *out = (umemMark){mark_reached, mark_release, {(uintptr_t)event}, mark_wait};
  return marked;
}

/* ---- streams of the program ---- */

/* What can_wait does not see. Without a stream of ctx its kernels are on the legacy stream, for
 * which a capture cannot wait; and the legacy stream cannot wait for a capture. */
static bool refuse_capture(umemVirtual *ctx, umemCudaState const *state,
                           umemCudaState const *behind) {
  bool ordered = umem_can(ctx, umemOrdered);
  umemCudaScope scope;
  if (ordered && behind->stream) return false;
  if (!umemCudaScope_enter(&scope, ctx, state->gpu)) return true;
  bool captured = umemCudaState_is_captured(ordered ? state : behind);
  umemCudaScope_leave(&scope);
  if (captured)
    umemVirtual_fail(ctx, umemNotSupportedError, "the stream is being captured into a graph: %s",
                     ordered ? "the legacy default stream cannot wait for it"
                             : "it cannot wait for work outside");
  return captured;
}

/* The stream may be one of another GPU. Legacy and per-thread are those of the GPU of ctx. */
void umemCuda_stream_wait(umemVirtual *ctx, uintptr_t stream) {
  umemCudaState *state = umemCuda_state_of(ctx);
  umemCudaState behind = {.gpu = state->gpu,
                          .stream = stream == umemCudaLegacyHandle ? NULL : (void *)stream};
  if (behind.stream != state->stream && !refuse_capture(ctx, state, &behind))
    wait_for_queue(ctx, &behind, ctx, state);
}

/* Without a stream of ctx the host waits, as its copies would not. */
void umemCuda_event_wait(umemVirtual *ctx, uintptr_t event) {
  umemCudaState *state = umemCuda_state_of(ctx);
  UMEM_CUDA_SCOPE(ctx, state->gpu);
  umemCudaRt const *rt = state->gpu->rt;
  bool ordered = umem_can(ctx, umemOrdered);
  if (!ordered || !umemCuda_refuse_capture(ctx, "it cannot wait for work outside"))
    umemCuda_check(ctx, state->gpu,
                   ordered ? rt->stream_wait(state->stream, (void *)event)
                           : rt->event_synchronize((void *)event),
                   "cannot wait for an event of the program");
}
