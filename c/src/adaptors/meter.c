/* meter.c - see umem_meter.h.
 *
 * The entry of a block leaves the table before the block goes back, because the upstream may hand
 * its address to another thread at once; it returns, to the place kept for it, when the free was
 * refused. */
#include "adaptors/meter.h"

static umemMeter *meter_of(umemVirtual *ctx) { return umemAdaptor_impl(ctx); }

void umemMeter_start(umemVirtual *ctx, umemMeterHooks const *hooks) {
  umemMeter *meter = meter_of(ctx);
  meter->hooks = hooks;
  umemBlocks_init(&meter->blocks);
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

/* A place for the entry of a block; false with a status. */
static bool reserve(umemVirtual *ctx) {
  bool reserved = umemBlocks_reserve(&meter_of(ctx)->blocks);
  if (!reserved) umemVirtual_fail(ctx, umemMemoryError, "no memory to remember a block");
  return reserved;
}

/* The same, and whether size more bytes may be asked for. */
static bool prepare(umemVirtual *ctx, size_t size) {
  if (!reserve(ctx)) return false;
  if (admitted(ctx, size)) return true;
  umemBlocks_release(&meter_of(ctx)->blocks);
  return false;
}

/* was: whether an entry of old bytes had to make place. */
static void forget(umemVirtual *ctx, bool was, size_t old) {
  if (was) meter_of(ctx)->hooks->resized(ctx, old, 0);
}

/* Enters what the upstream has answered to a request: a block at adr, or null. Returns adr. */
static uintptr_t enter(umemVirtual *ctx, uintptr_t adr, size_t size, uint64_t before) {
  umemMeter *meter = meter_of(ctx);
  if (adr == umem_null_of(ctx)) {
    umemAdaptor_failed(ctx, before);
    retract(ctx, size);
    umemBlocks_release(&meter->blocks);
    return adr;
  }
  size_t old = 0;
  meter->hooks->resized(ctx, 0, size);
  bool was = umemBlocks_put(&meter->blocks, adr, size, &old);
  forget(ctx, was, old);
  return adr;
}

/* ---- methods ---- */

uintptr_t umemMeter_alloc(umemVirtual *ctx, size_t nbytes) {
  if (!prepare(ctx, nbytes)) return umem_null_of(ctx);
  uint64_t before = umem_thread.failures;
  return enter(ctx, umem_alloc(umemAdaptor_upstream(ctx), nbytes), nbytes, before);
}

uintptr_t umemMeter_calloc(umemVirtual *ctx, size_t nmemb, size_t size) {
  if (!prepare(ctx, nmemb * size)) return umem_null_of(ctx);
  uint64_t before = umem_thread.failures;
  return enter(ctx, umem_calloc(umemAdaptor_upstream(ctx), nmemb, size), nmemb * size, before);
}

uintptr_t umemMeter_aligned_alloc(umemVirtual *ctx, size_t alignment, size_t size) {
  if (!prepare(ctx, size)) return umem_null_of(ctx);
  uint64_t before = umem_thread.failures;
  return enter(ctx, umem_aligned_alloc(umemAdaptor_upstream(ctx), alignment, size), size, before);
}

/* Puts what was taken back: the block of size bytes is still at adr. */
static void keep(umemVirtual *ctx, uintptr_t adr, size_t size) {
  size_t old = 0;
  bool was = umemBlocks_put_back(&meter_of(ctx)->blocks, adr, size, &old);
  forget(ctx, was, old);
}

/* The block of size bytes that was at adr, whose entry was taken, has new_size at moved. */
static void follow(umemVirtual *ctx, uintptr_t adr, size_t size, uintptr_t moved, size_t new_size) {
  umemMeter *meter = meter_of(ctx);
  size_t old = 0;
  meter->hooks->resized(ctx, size, new_size);
  bool was = umemBlocks_put(&meter->blocks, moved, new_size, &old);
  umemBlocks_drop(&meter->blocks, adr);
  forget(ctx, was, old);
}

/* With the entry of adr taken, and a place reserved for a new one. */
static uintptr_t resize(umemVirtual *ctx, uintptr_t adr, size_t size, size_t old_size,
                        size_t new_size) {
  uintptr_t null = umem_null_of(ctx), moved = null;
  size_t more = new_size > size ? new_size - size : 0;
  if (umem_has_size(ctx, adr, size, old_size) && admitted(ctx, more)) {
    moved = umemAdaptor_realloc(ctx, adr, old_size, new_size);
    if (moved == null) retract(ctx, more);
  }
  if (moved != null) {
    follow(ctx, adr, size, moved, new_size);
  } else {
    umemBlocks_release(&meter_of(ctx)->blocks);
    keep(ctx, adr, size);
  }
  return moved;
}

/* The size that counts is the one that was asked for, not the caller's word. */
uintptr_t umemMeter_realloc(umemVirtual *ctx, uintptr_t adr, size_t old_size, size_t new_size) {
  umemBlocks *blocks = &meter_of(ctx)->blocks;
  size_t size;
  if (!reserve(ctx)) return umem_null_of(ctx);
  if (umemBlocks_take(blocks, adr, &size)) return resize(ctx, adr, size, old_size, new_size);
  umemBlocks_release(blocks);
  return umemAdaptor_realloc(ctx, adr, old_size, new_size);
}

static void give_back(umemVirtual *ctx, uintptr_t adr, void (*method)(umemVirtual *, uintptr_t)) {
  umemMeter *meter = meter_of(ctx);
  size_t size = 0;
  bool known = umemBlocks_take(&meter->blocks, adr, &size);
  uint64_t before = umem_thread.failures;
  method(ctx, adr);
  if (!known) return;
  if (umem_thread.failures != before) {
    keep(ctx, adr, size);
  } else {
    umemBlocks_drop(&meter->blocks, adr);
    meter->hooks->resized(ctx, size, 0);
  }
}

void umemMeter_free(umemVirtual *ctx, uintptr_t adr) { give_back(ctx, adr, umemAdaptor_free); }

void umemMeter_aligned_free(umemVirtual *ctx, uintptr_t adr) {
  give_back(ctx, adr, umemAdaptor_aligned_free);
}
