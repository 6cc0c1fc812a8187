/* umem_meter.c - see umem_meter.h.
 *
 * The entry of a block leaves the table before the block goes back, because the upstream may hand
 * its address to another thread at once; it returns when the free was refused. */
#include "umem_meter.h"

#include <stdlib.h>

static umemMeter *meter_of(umemVirtual *ctx) { return umemAdaptor_impl(ctx); }

void *umemMeter_construct(void *ctx, void *upstream, bool adopts, struct umemVtbl const *vtbl,
                          char const *name, size_t impl_size, umemMeterHooks const *hooks) {
  umemMeter *meter = umemAdaptor_construct(ctx, upstream, adopts, vtbl, name, impl_size);
  if (!meter) return NULL;
  meter->hooks = hooks;
  umemBlocks_init(&meter->blocks);
  return meter;
}

void umemMeter_dtor(umemVirtual *ctx) {
  umemBlocks_fini(&meter_of(ctx)->blocks);
  umemAdaptor_dtor(ctx);
}

/* ---- entries ---- */

static bool admitted(umemVirtual *ctx, size_t more) {
  bool (*admit)(umemVirtual *, size_t) = meter_of(ctx)->hooks->admit;
  return !admit || admit(ctx, more);
}

static void retract(umemVirtual *ctx, size_t more) {
  void (*hook)(umemVirtual *, size_t) = meter_of(ctx)->hooks->retract;
  if (hook) hook(ctx, more);
}

/* An entry for a block of size bytes that may be asked for, or NULL and a status. */
static umemBlock *new_entry(umemVirtual *ctx, size_t size) {
  umemBlock *block = malloc(sizeof *block);
  if (!block) {
    umemVirtual_fail(ctx, umemMemoryError, "no memory to remember a block");
    return NULL;
  }
  block->size = size;
  if (admitted(ctx, size)) return block;
  free(block);
  return NULL;
}

static void forget(umemVirtual *ctx, umemBlock *block) {
  if (!block) return;
  meter_of(ctx)->hooks->resized(ctx, block->size, 0);
  free(block);
}

/* Enters what the upstream has answered to a request: a block at adr, or null. Returns adr. */
static uintptr_t enter(umemVirtual *ctx, umemBlock *block, uintptr_t adr, uint64_t before) {
  umemMeter *meter = meter_of(ctx);
  if (adr == umem_null_of(ctx)) {
    umemAdaptor_failed(ctx, before);
    retract(ctx, block->size);
    free(block);
    return adr;
  }
  block->adr = adr;
  meter->hooks->resized(ctx, 0, block->size);
  forget(ctx, umemBlocks_put(&meter->blocks, block));
  return adr;
}

/* ---- methods ---- */

uintptr_t umemMeter_alloc(umemVirtual *ctx, size_t nbytes) {
  umemBlock *block = new_entry(ctx, nbytes);
  if (!block) return umem_null_of(ctx);
  uint64_t before = umem_thread.failures;
  return enter(ctx, block, umem_alloc(umemAdaptor_upstream(ctx), nbytes), before);
}

uintptr_t umemMeter_calloc(umemVirtual *ctx, size_t nmemb, size_t size) {
  umemBlock *block = new_entry(ctx, nmemb * size);
  if (!block) return umem_null_of(ctx);
  uint64_t before = umem_thread.failures;
  return enter(ctx, block, umem_calloc(umemAdaptor_upstream(ctx), nmemb, size), before);
}

uintptr_t umemMeter_aligned_alloc(umemVirtual *ctx, size_t alignment, size_t size) {
  umemBlock *block = new_entry(ctx, size);
  if (!block) return umem_null_of(ctx);
  uint64_t before = umem_thread.failures;
  uintptr_t adr = umem_aligned_alloc(umemAdaptor_upstream(ctx), alignment, size);
  return enter(ctx, block, adr, before);
}

/* The size that counts is the one that was asked for, not the caller's word. */
uintptr_t umemMeter_realloc(umemVirtual *ctx, uintptr_t adr, size_t old_size, size_t new_size) {
  umemMeter *meter = meter_of(ctx);
  umemBlock *block = umemBlocks_take(&meter->blocks, adr);
  if (!block) return umemAdaptor_realloc(ctx, adr, old_size, new_size);
  size_t more = new_size > block->size ? new_size - block->size : 0;
  uintptr_t moved = umem_null_of(ctx);
  if (admitted(ctx, more)) {
    moved = umemAdaptor_realloc(ctx, adr, old_size, new_size);
    if (moved == umem_null_of(ctx)) retract(ctx, more);
  }
  if (moved != umem_null_of(ctx)) {
    meter->hooks->resized(ctx, block->size, new_size);
    block->adr = moved;
    block->size = new_size;
  }
  forget(ctx, umemBlocks_put(&meter->blocks, block));
  return moved;
}

static void give_back(umemVirtual *ctx, uintptr_t adr, void (*method)(umemVirtual *, uintptr_t)) {
  umemMeter *meter = meter_of(ctx);
  umemBlock *block = umemBlocks_take(&meter->blocks, adr);
  uint64_t before = umem_thread.failures;
  method(ctx, adr);
  bool refused = umem_thread.failures != before;
  forget(ctx, block && refused ? umemBlocks_put(&meter->blocks, block) : block);
}

void umemMeter_free(umemVirtual *ctx, uintptr_t adr) { give_back(ctx, adr, umemAdaptor_free); }

void umemMeter_aligned_free(umemVirtual *ctx, uintptr_t adr) {
  give_back(ctx, adr, umemAdaptor_aligned_free);
}
