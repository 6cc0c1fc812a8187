/* cuda_state.c - construction, destruction, blocks and identity of the CUDA contexts. They differ in where their
 * memory comes from (umemCudaSource) and in what else they do. */
#include "cuda/cuda_state.h"
#include "base/thread.h"
#include "core/context.h"
#include "core/realloc.h"
#include "cuda/cuda_error.h"
#include "cuda/cuda_find.h"
#include "cuda/cuda_gpus.h"
#include "cuda/cuda_scope.h"
#include "cuda/cuda_shared.h"

#include <stdlib.h>
#include <umem/cuda.h>

/* All four types are {super, impl, ...}. */
static void **impl_of(umemVirtual *ctx) { return &((umemCuda *)ctx)->impl; }

/* The four have one method in common that no other context has. */
umemCudaState *umemCuda_state_of(umemVirtual const *ctx) {
  struct umemVtbl const *vptr = ctx->vptr;
  bool ours = vptr && vptr->is_same_device == umemCuda_is_same_device;
  return ours ? ((umemCuda const *)ctx)->impl : NULL;
}

/* Device memory is one for all contexts of a device; pinned and managed memory for all of its kind. */
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
  umemFind_ask(umemCuda_find_foreign);
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
  umemCudaRt const *rt = state->gpu->rt;
  umemCudaScope scope;
  if (state->shares) umemCudaShared_forget(state, 0);
  if (!state->event || umemCudaGpu_is_inherited(state->gpu) ||
      !umemCudaScope_enter(&scope, ctx, state->gpu))
    return;
  UMEM_CUDA_TRY_TWICE(rt, event_destroy(state->event));
  umemCudaScope_leave(&scope);
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

static bool keep(umemCudaState *state, uintptr_t adr, size_t nbytes) {
  umemLock_acquire(&state->lock);
  bool kept = umemTable_insert(&state->blocks, adr, nbytes);
  umemLock_release(&state->lock);
  return kept;
}

/* A block that has left the table is live again. Its cell is free still, or another one is: the table keeps
 * more of them than threads free blocks at once. */
static void put_back(umemCudaState *state, uintptr_t adr, size_t nbytes) {
  uintptr_t none;
  umemLock_acquire(&state->lock);
  umemTable_put(&state->blocks, adr, nbytes, &none);
  umemLock_release(&state->lock);
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
      !keep(state, (uintptr_t)adr, nbytes)) {
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
  umemCudaScope scope;
  if (!umemCudaScope_enter(&scope, ctx, state->gpu)) return;
  size_t nbytes = allows(ctx, state, 0) ? find(ctx, state, adr, true) : 0;
  if (nbytes && __atomic_load_n(&state->shares, __ATOMIC_RELAXED))
    umemCudaShared_forget(state, adr);
  int error = nbytes ? state->source->give(state, (void *)adr, nbytes) : umemCudaSuccess;
  if (!UMEM_CUDA_CHECK(ctx, state->gpu, error, "cannot free the block at 0x%jx", (uintmax_t)adr))
    put_back(state, adr, nbytes); /* it stays live: to be freed again, or with the context */
  umemCudaScope_leave(&scope);
}

uintptr_t umemCuda_realloc(umemVirtual *ctx, uintptr_t adr, size_t old_size, size_t new_size) {
  size_t nbytes = find(ctx, umemCuda_state_of(ctx), adr, false);
  if (!nbytes || !umem_has_size(ctx, adr, nbytes, old_size)) return 0;
  return umem_move_block(ctx, adr, old_size, new_size);
}

/* ---- finding ---- */

/* The block around adr. The table is in no order, so only a block that begins at adr is found at once. */
static umemTableCell *around(umemTable const *blocks, uintptr_t adr) {
  umemTableCell *cell = umemTable_find(blocks, adr);
  if (cell) return cell;
  for (size_t at = 0; (cell = umemTable_next(blocks, &at)); at++)
    if (adr - umemTable_key(cell) < cell->value) return cell;
  return NULL;
}

umemSearch umemCuda_find(umemVirtual *ctx, uintptr_t adr, umemFound *found) {
  umemCudaState *state = umemCuda_state_of(ctx);
  if (adr == UINTPTR_MAX) return umemSearchNone; /* no key of the table */
  if (!umemLock_try(&state->lock)) return umemSearchBusy;
  umemTableCell const *cell = around(&state->blocks, adr);
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
