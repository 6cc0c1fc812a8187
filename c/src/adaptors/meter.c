/* meter.c - see meter.h.
 *
 * The entry of a block leaves the table before the block is given back, because the upstream may hand out
 * the address to another thread at once. When the upstream refuses the free, the entry returns to the place
 * that was kept for it. */
#include "adaptors/meter.h"
#include "base/thread.h"
#include "core/context.h"
#include "core/realloc.h"

static umemMeter *meter_of(umemVirtual *ctx) { return umemAdaptor_impl(ctx); }

void umemMeter_start(umemVirtual *ctx, umemMeterHooks const *hooks) {
  umemMeter *meter = meter_of(ctx);
  meter->hooks = hooks;
  umemSizes_init(&meter->blocks);
}

void umemMeter_dtor(umemVirtual *ctx) {
  umemAdaptor_unlist(ctx);
  umemSizes_fini(&meter_of(ctx)->blocks);
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

/* Reserves room for the entry of a block; false with a status. */
static bool reserve(umemVirtual *ctx) {
  bool reserved = umemSizes_reserve(&meter_of(ctx)->blocks);
  if (!reserved) umemVirtual_fail(ctx, umemMemoryError, "no memory to remember a block");
  return reserved;
}

/* The same, and asks whether size more bytes may be used. */
static bool prepare(umemVirtual *ctx, size_t size) {
  if (!reserve(ctx)) return false;
  if (admitted(ctx, size)) return true;
  umemSizes_release(&meter_of(ctx)->blocks);
  return false;
}

/* was: whether an entry of old bytes was replaced. */
static void forget(umemVirtual *ctx, bool was, size_t old) {
  if (was) meter_of(ctx)->hooks->resized(ctx, old, 0);
}

/* Enters what the upstream has answered to a request: a block at adr, or null. Returns adr. */
static uintptr_t enter(umemVirtual *ctx, uintptr_t adr, size_t size, uint64_t before) {
  umemMeter *meter = meter_of(ctx);
  if (adr == umem_null_of(ctx)) {
    umemAdaptor_failed(ctx, before);
    retract(ctx, size);
    umemSizes_release(&meter->blocks);
    return adr;
  }
  size_t old = 0;
  meter->hooks->resized(ctx, 0, size);
  bool was = umemSizes_put(&meter->blocks, adr, size, &old);
  forget(ctx, was, old);
  return adr;
}

/* ---- resizing ---- */

/* Puts an entry back: the block of size bytes is still at adr. */
static void keep(umemVirtual *ctx, uintptr_t adr, size_t size) {
  size_t old = 0;
  bool was = umemSizes_put_back(&meter_of(ctx)->blocks, adr, size, &old);
  forget(ctx, was, old);
}

/* The block of size bytes that was at adr, whose entry was taken, has new_size at moved. */
static void follow(umemVirtual *ctx, uintptr_t adr, size_t size, uintptr_t moved, size_t new_size) {
  umemMeter *meter = meter_of(ctx);
  size_t old = 0;
  meter->hooks->resized(ctx, size, new_size);
  bool was = umemSizes_put(&meter->blocks, moved, new_size, &old);
  umemSizes_drop(&meter->blocks, adr);
  forget(ctx, was, old);
}

/* With the entry of the old block, of size bytes, taken, and a place reserved for a new one. */
static uintptr_t resize(umemVirtual *ctx, size_t size, umemRequest const *request) {
  uintptr_t null = umem_null_of(ctx), moved = null, adr = request->adr;
  size_t more = request->nbytes > size ? request->nbytes - size : 0;
  if (umem_has_size(ctx, adr, size, request->old_size) && admitted(ctx, more)) {
    moved = umemAdaptor_ask(ctx, request);
    if (moved == null) retract(ctx, more);
  }
  if (moved != null) {
    follow(ctx, adr, size, moved, request->nbytes);
  } else {
    umemSizes_release(&meter_of(ctx)->blocks);
    keep(ctx, adr, size);
  }
  return moved;
}

/* Counts the requested size in the table, not old_size of the caller. */
static uintptr_t meter_realloc(umemVirtual *ctx, umemRequest const *request) {
  umemSizes *blocks = &meter_of(ctx)->blocks;
  size_t size;
  if (!reserve(ctx)) return umem_null_of(ctx);
  if (umemSizes_take(blocks, request->adr, &size)) return resize(ctx, size, request);
  umemSizes_release(blocks);
  return umemAdaptor_ask(ctx, request);
}

/* ---- methods ---- */

uintptr_t umemMeter_ask(umemVirtual *ctx, umemRequest const *request) {
  if (request->how == umemByRealloc) return meter_realloc(ctx, request);
  if (!prepare(ctx, request->nbytes)) return umem_null_of(ctx);
  uint64_t before = umem_thread.failures;
  uintptr_t adr = umemRequest_ask(umemAdaptor_upstream(ctx), request);
  return enter(ctx, adr, request->nbytes, before);
}

void umemMeter_free(umemVirtual *ctx, uintptr_t adr, bool aligned) {
  umemMeter *meter = meter_of(ctx);
  size_t size = 0;
  bool known = umemSizes_take(&meter->blocks, adr, &size);
  uint64_t before = umem_thread.failures;
  umemAdaptor_give_back(ctx, adr, aligned);
  if (!known) return;
  if (umem_thread.failures != before) {
    keep(ctx, adr, size);
  } else {
    umemSizes_drop(&meter->blocks, adr);
    meter->hooks->resized(ctx, size, 0);
  }
}

/* ---- finding ---- */

/* The entries are found by the first address of a block: the context below may know it. */
umemSearch umemMeter_find(umemVirtual *ctx, uintptr_t adr, umemFound *found) {
  umemFound below = *found;
  umemSearch search = umemLive_search(umemAdaptor_upstream(ctx), adr, &below);
  if (search == umemSearchBusy) return search;
  uintptr_t start = search == umemSearchFound ? below.adr : adr;
  bool busy;
  size_t size = 0;
  bool mine = umemSizes_try_find(&meter_of(ctx)->blocks, start, &size, &busy);
  if (!mine && !busy &&
      start != adr) { /* of an aligned block, which begins behind that of the context below */
    start = adr;
    mine = umemSizes_try_find(&meter_of(ctx)->blocks, start, &size, &busy);
  }
  if (busy) return umemSearchBusy;
  if (!mine || adr - start >= size) return umemSearchNone;
  *found = below;
  found->adr = start;
  found->nbytes = size;
  return umemSearchFound;
}
