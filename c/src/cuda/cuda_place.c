/* cuda_place.c - construction, destruction, blocks and identity of the CUDA contexts. They differ in
 * where their memory comes from (umemCudaSource) and in what else they do. */
#include "cuda/cuda_gpu.h"

#include <stdlib.h>

/* All four types are {super, impl, ...}. */
static void **impl_of(umemVirtual *ctx) { return &((umemCuda *)ctx)->impl; }

umemCudaPlace *umemCuda_place_of(umemVirtual const *ctx) {
  struct umemVtbl const *vptr = ctx->vptr;
  bool ours = vptr == &umemCuda_vtbl || vptr == &umemCudaAsync_vtbl || vptr == &umemCudaHost_vtbl ||
              vptr == &umemCudaManaged_vtbl;
  return ours ? ((umemCuda const *)ctx)->impl : NULL;
}

uintptr_t umem_stream_of(umemVirtual const *ctx) {
  umemCudaPlace const *place = umem_can(ctx, umemOrdered) ? umemCuda_place_of(ctx) : NULL;
  return place ? (uintptr_t)place->stream : 0;
}

bool umemCudaPlace_is_captured(umemCudaPlace const *place) {
  umemCudaRt const *rt = place->gpu->rt;
  umemCudaCapture capture = umemCudaNoCapture;
  uint64_t id;
  if (rt->stream_capture(place->stream, &capture, &id)) rt->last_error();
  return capture != umemCudaNoCapture;
}

bool umem_is_captured(umemVirtual *ctx) {
  umemCudaPlace const *place = umem_can(ctx, umemOrdered) ? umemCuda_place_of(ctx) : NULL;
  if (!place) return false;
  umem_defer_cancel();   /* pools ask here beside the public functions */
  umemAttempt forgotten; /* a GPU that is lost says so in the next call that needs it */
  umemAttempt_begin(&forgotten);
  umemCudaScope scope;
  bool entered = umemCudaScope_enter(&scope, ctx, place->gpu);
  bool captured = entered && umemCudaPlace_is_captured(place);
  if (entered) umemCudaScope_leave(&scope);
  umemAttempt_end(&forgotten);
  return captured;
}

bool umemCuda_refuse_capture(umemVirtual *ctx, char const *advice) {
  if (!umemCudaPlace_is_captured(umemCuda_place_of(ctx))) return false;
  umemVirtual_fail(ctx, umemNotSupportedError, "the stream is being captured into a graph: %s",
                   advice);
  return true;
}

/* Tried twice: an error may be about the call and not about the work, whose memory may go once this has
 * failed. */
int umemCudaPlace_finish(umemCudaPlace const *place) {
  umemCudaRt const *rt = place->gpu->rt;
  int error = rt->stream_synchronize(place->stream);
  if (error && rt->stream_synchronize(place->stream)) rt->last_error();
  return error;
}

/* Whether the stream is captured is asked when the event is recorded: one of before a capture waits for
 * nothing in it. One that was recorded in a capture that is over by now is recorded anew. */
int umemCudaPlace_finish_apart(umemCudaPlace const *place, umemVirtual *ctx) {
  umemCudaRt const *rt = place->gpu->rt;
  if (!place->stream) return umemCudaPlace_finish(place);
  void *event = umemCudaGpu_take_event(place->gpu, ctx);
  if (!event) return umemCudaSuccess; /* it was recorded */
  int error = umemCudaCapturedEvent;
  for (int tries = 0; tries < umemCudaCaptureTries && umemCuda_is_of_captured_event(error);
       tries++) {
    if (tries) rt->last_error();
    error = rt->event_record(event, place->stream);
    if (!error && umemCudaPlace_is_captured(place)) error = umemCudaCaptureUnsupported;
    if (!error) error = rt->event_synchronize(event);
  }
  umemCudaGpu_give_event(place->gpu, event);
  return error;
}

/* Device memory is one for all contexts of a device; pinned and managed memory for all of its kind. */
bool umemCuda_is_same_device(umemVirtual *ctx, umemVirtual *other) {
  umemCudaPlace *one = umemCuda_place_of(ctx), *two = umemCuda_place_of(other);
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
  umemCudaPlace *place = *impl_of(ctx) = calloc(1, kind->impl_size);
  if (!place)
    umemVirtual_fail(ctx, umemMemoryError, "no memory for a context");
  else
    place->gpu = umemCudaGpu_open(ctx, device);
  if (!place || !place->gpu) {
    free(place);
    *impl_of(ctx) = NULL;
    umem_construct_failed(ctx);
    return NULL;
  }
  place->source = source;
  umemLock_init(&place->lock);
  umemCuda_buffers_ctor(place);
  ctx->host = &place->buffers;
  if (place->gpu->pageable_access) ctx->capabilities |= umemSeesHost;
  return place;
}

void umemCuda_give_back(umemVirtual *ctx) {
  umemCudaPlace *place = umemCuda_place_of(ctx);
  umemTableCell *cell;
  for (size_t at = 0; (cell = umemTable_next(&place->blocks, &at)); at++)
    umemCuda_check(ctx, place->gpu, place->source->give(place, (void *)cell->key, cell->value),
                   "cannot free the block at 0x%jx", (uintmax_t)cell->key);
  umemTable_clear(&place->blocks);
}

/* In a child of fork the blocks are not there to be given back. */
void umemCuda_dtor(umemVirtual *ctx) {
  umemCudaPlace *place = umemCuda_place_of(ctx);
  umemCudaScope scope;
  if (place->blocks.count && !umemCudaGpu_is_inherited(place->gpu) &&
      umemCudaScope_enter(&scope, ctx, place->gpu)) {
    umemCuda_give_back(ctx);
    umemCudaScope_leave(&scope);
  }
  umem_dtor(&place->buffers);
  umemTable_clear(&place->blocks);
  umemLock_destroy(&place->lock);
  umemCudaGpu_close(place->gpu);
  free(place);
  *impl_of(ctx) = NULL;
}

umemStatusType umemCuda_construct_failed(umemVirtual *ctx) {
  umemCuda_dtor(ctx);
  umem_construct_failed(ctx);
  return umem_thread.last;
}

/* ---- blocks ---- */

static bool keep(umemCudaPlace *place, uintptr_t adr, size_t nbytes) {
  umemLock_acquire(&place->lock);
  bool kept = umemTable_insert(&place->blocks, adr, nbytes);
  umemLock_release(&place->lock);
  return kept;
}

/* The size of the block that begins at adr, which leaves the books if it is taken; 0, with
 * umemValueError, when there is none. */
static size_t find(umemVirtual *ctx, umemCudaPlace *place, uintptr_t adr, bool take) {
  umemLock_acquire(&place->lock);
  umemTableCell *cell = umemTable_find(&place->blocks, adr);
  size_t nbytes = cell ? cell->value : 0;
  if (cell && take) umemTable_remove(&place->blocks, cell);
  umemLock_release(&place->lock);
  if (!cell)
    umemVirtual_fail(ctx, umemValueError, "0x%jx is not a live block of this %s", (uintmax_t)adr,
                     umem_get_device_name(ctx));
  return nbytes;
}

static bool allows(umemVirtual *ctx, umemCudaPlace *place) {
  return !place->source->allows || place->source->allows(ctx);
}

uintptr_t umemCuda_alloc(umemVirtual *ctx, size_t nbytes) {
  umemCudaPlace *place = umemCuda_place_of(ctx);
  uint64_t before = umem_thread.failures;
  umemCudaScope scope;
  if (!umemCudaScope_enter(&scope, ctx, place->gpu)) return 0;
  void *adr = NULL;
  if (allows(ctx, place) &&
      umemCuda_check(ctx, place->gpu, place->source->get(place, &adr, nbytes),
                     "cannot allocate %zu bytes", nbytes) &&
      !keep(place, (uintptr_t)adr, nbytes)) {
    umemVirtual_fail(ctx, umemMemoryError, "no memory to remember a block");
    place->source->give(place, adr, nbytes);
  }
  bool got = umem_thread.failures == before;
  umemCudaScope_leave(&scope);
  if (umem_thread.failures == before) return (uintptr_t)adr;
  if (got) umemCuda_free(ctx, (uintptr_t)adr); /* it is leaving that has failed */
  return 0;
}

void umemCuda_free(umemVirtual *ctx, uintptr_t adr) {
  umemCudaPlace *place = umemCuda_place_of(ctx);
  umemCudaScope scope;
  if (!umemCudaScope_enter(&scope, ctx, place->gpu)) return;
  size_t nbytes = allows(ctx, place) ? find(ctx, place, adr, true) : 0;
  if (nbytes && !umemCuda_check(ctx, place->gpu, place->source->give(place, (void *)adr, nbytes),
                                "cannot free the block at 0x%jx", (uintmax_t)adr))
    keep(place, adr, nbytes); /* it lives on: to be freed again, or with the context */
  umemCudaScope_leave(&scope);
}

uintptr_t umemCuda_realloc(umemVirtual *ctx, uintptr_t adr, size_t old_size, size_t new_size) {
  size_t nbytes = find(ctx, umemCuda_place_of(ctx), adr, false);
  if (!nbytes || !umem_has_size(ctx, adr, nbytes, old_size)) return 0;
  return umem_move_block(ctx, adr, old_size, new_size);
}
