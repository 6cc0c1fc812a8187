/* meter_pages.c - the pages of an upstream that maps memory. See meter.h.
 *
 * A page counts as a block from the map that gives it memory to the unmap that takes it: what a pool over the adaptor
 * holds. To move pages changes nothing, as they keep their memory. Addresses without memory do not count. */
#include "adaptors/meter.h"
#include "base/lock.h"
#include "core/guard.h"

static umemMeter *meter_of(umemVirtual *ctx) { return umemAdaptor_impl(ctx); }

static umemVirtual *upstream_of(umemVirtual *ctx) { return umem_guard(umemAdaptor_upstream(ctx)); }

/* ---- what counts ---- */

static bool admitted(umemVirtual *ctx, size_t more) {
  bool (*admit)(umemVirtual *, size_t) = meter_of(ctx)->hooks->admit;
  return !admit || admit(ctx, more);
}

static void retract(umemVirtual *ctx, size_t more) {
  void (*hook)(umemVirtual *, size_t) = meter_of(ctx)->hooks->retract;
  if (hook && more) hook(ctx, more);
}

/* Counts so many bytes of pages that have got memory, or have lost it. */
static void count(umemVirtual *ctx, size_t nbytes, bool mapped) {
  umemMeter *meter = meter_of(ctx);
  size_t size = meter->pages.page_size;
  for (size_t done = 0; done < nbytes; done += size)
    meter->hooks->resized(ctx, mapped ? 0 : size, mapped ? size : 0);
}

/* ---- methods ---- */

static uintptr_t meter_reserve(umemVirtual *ctx, size_t nbytes) {
  uint64_t before = umem_thread.failures;
  umemVirtual *upstream = upstream_of(ctx);
  uintptr_t adr = umem_null_of(ctx);
  if (upstream) adr = meter_of(ctx)->pages_below->reserve(upstream, nbytes);
  umemAdaptor_failed(ctx, before);
  return adr;
}

static bool meter_release(umemVirtual *ctx, uintptr_t adr, size_t nbytes) {
  uint64_t before = umem_thread.failures;
  umemVirtual *upstream = upstream_of(ctx);
  bool released = upstream && meter_of(ctx)->pages_below->release(upstream, adr, nbytes);
  umemAdaptor_failed(ctx, before);
  return released;
}

static size_t meter_map(umemVirtual *ctx, uintptr_t adr, size_t nbytes) {
  if (!admitted(ctx, nbytes)) return 0;
  uint64_t before = umem_thread.failures;
  umemVirtual *upstream = upstream_of(ctx);
  size_t done = upstream ? meter_of(ctx)->pages_below->map(upstream, adr, nbytes) : 0;
  umemAdaptor_failed(ctx, before);
  retract(ctx, nbytes - done);
  count(ctx, done, true);
  return done;
}

static size_t meter_unmap(umemVirtual *ctx, uintptr_t adr, size_t nbytes) {
  uint64_t before = umem_thread.failures;
  umemVirtual *upstream = upstream_of(ctx);
  size_t done = upstream ? meter_of(ctx)->pages_below->unmap(upstream, adr, nbytes) : 0;
  umemAdaptor_failed(ctx, before);
  count(ctx, done, false);
  return done;
}

static size_t meter_move(umemVirtual *ctx, uintptr_t from, uintptr_t to, size_t nbytes) {
  uint64_t before = umem_thread.failures;
  umemVirtual *upstream = upstream_of(ctx);
  size_t done = upstream ? meter_of(ctx)->pages_below->move(upstream, from, to, nbytes) : 0;
  umemAdaptor_failed(ctx, before);
  return done;
}

/* Several pools may ask at the same time. */
umemPages const *umemMeter_pages(umemVirtual *ctx) {
  umemMeter *meter = meter_of(ctx);
  umemVirtual *upstream = umemAdaptor_upstream(ctx);
  umemPages const *(*method)(umemVirtual *) = UMEM_SLOT(upstream, pages);
  umemPages const *below = method ? method(upstream) : NULL;
  if (!below) return NULL;
  umemLock_acquire_global();
  if (!meter->pages_below) {
    meter->pages_below = below;
    meter->pages = (umemPages){below->page_size, meter_reserve, meter_release,
                               meter_map,        meter_unmap,   meter_move};
  }
  umemLock_release_global();
  return &meter->pages;
}
