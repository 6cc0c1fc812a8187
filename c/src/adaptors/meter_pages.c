/* meter_pages.c - the pages of an upstream that maps memory. See meter.h.
 *
 * A page counts as a block from the map that gives it memory to the unmap that takes it: what a pool over the adaptor
 * holds. To move pages changes nothing, as they keep their memory. Addresses without memory do not count. */
#include "adaptors/meter.h"
#include "base/lock.h"
#include "core/context.h"

static umemMeter *meter_of(umemVirtual *ctx) { return umemAdaptor_impl(ctx); }

static umemVirtual *upstream_of(umemVirtual *ctx) { return umem_check(umemAdaptor_upstream(ctx)); }

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
static void count(umemVirtual *ctx, umemPages const *below, size_t nbytes, bool mapped) {
  size_t size = below->page_size;
  for (size_t done = 0; done < nbytes; done += size)
    meter_of(ctx)->hooks->resized(ctx, mapped ? 0 : size, mapped ? size : 0);
}

/* ---- methods ---- */

static uintptr_t meter_reserve(umemVirtual *ctx, size_t nbytes) {
  uint64_t before = umem_thread.failures;
  umemVirtual *upstream = upstream_of(ctx);
  uintptr_t adr = umem_null_of(ctx);
  if (upstream) adr = meter_of(ctx)->pages.below->reserve(upstream, nbytes);
  umemAdaptor_failed(ctx, before);
  return adr;
}

static bool meter_release(umemVirtual *ctx, uintptr_t adr, size_t nbytes) {
  uint64_t before = umem_thread.failures;
  umemVirtual *upstream = upstream_of(ctx);
  bool released = upstream && meter_of(ctx)->pages.below->release(upstream, adr, nbytes);
  umemAdaptor_failed(ctx, before);
  return released;
}

static size_t map_of(umemVirtual *ctx, umemPages const *below, uintptr_t adr, size_t nbytes) {
  if (!admitted(ctx, nbytes)) return 0;
  uint64_t before = umem_thread.failures;
  umemVirtual *upstream = upstream_of(ctx);
  size_t done = upstream ? below->map(upstream, adr, nbytes) : 0;
  umemAdaptor_failed(ctx, before);
  retract(ctx, nbytes - done);
  count(ctx, below, done, true);
  return done;
}

static size_t unmap_of(umemVirtual *ctx, umemPages const *below, uintptr_t adr, size_t nbytes) {
  uint64_t before = umem_thread.failures;
  umemVirtual *upstream = upstream_of(ctx);
  size_t done = upstream ? below->unmap(upstream, adr, nbytes) : 0;
  umemAdaptor_failed(ctx, before);
  count(ctx, below, done, false);
  return done;
}

static size_t move_of(umemVirtual *ctx, umemPages const *below, uintptr_t from, uintptr_t to,
                      size_t nbytes) {
  uint64_t before = umem_thread.failures;
  umemVirtual *upstream = upstream_of(ctx);
  size_t done = upstream ? below->move(upstream, from, to, nbytes) : 0;
  umemAdaptor_failed(ctx, before);
  return done;
}

/* The methods of the pages that the meter has at this member. */
#define METHODS_OF(name, member)                                                                   \
  static size_t name##_map(umemVirtual *ctx, uintptr_t adr, size_t nbytes) {                       \
    return map_of(ctx, meter_of(ctx)->member.below, adr, nbytes);                                  \
  }                                                                                                \
  static size_t name##_unmap(umemVirtual *ctx, uintptr_t adr, size_t nbytes) {                     \
    return unmap_of(ctx, meter_of(ctx)->member.below, adr, nbytes);                                \
  }                                                                                                \
  static size_t name##_move(umemVirtual *ctx, uintptr_t from, uintptr_t to, size_t nbytes) {       \
    return move_of(ctx, meter_of(ctx)->member.below, from, to, nbytes);                            \
  }
METHODS_OF(meter, pages)
METHODS_OF(large, large_pages)

/* Several pools may ask at the same time. */
static umemPages const *keep(umemMeterPages *pages, umemPages const *below,
                             umemPages const *methods) {
  if (!below) return NULL;
  umemLock_acquire_global();
  if (!pages->below) {
    pages->own = *methods;
    pages->own.page_size = below->page_size;
    pages->below = below;
  }
  umemLock_release_global();
  return &pages->own;
}

umemPages const *umemMeter_pages(umemVirtual *ctx) {
  static umemPages const methods = {.reserve = meter_reserve,
                                    .release = meter_release,
                                    .map = meter_map,
                                    .unmap = meter_unmap,
                                    .move = meter_move};
  umemVirtual *upstream = umemAdaptor_upstream(ctx);
  umemPages const *(*method)(umemVirtual *) = UMEM_SLOT(upstream, pages);
  return keep(&meter_of(ctx)->pages, method ? method(upstream) : NULL, &methods);
}

umemPages const *umemMeter_large_pages(umemVirtual *ctx) {
  static umemPages const methods = {.map = large_map, .unmap = large_unmap, .move = large_move};
  umemVirtual *upstream = umemAdaptor_upstream(ctx);
  umemPages const *(*method)(umemVirtual *) = UMEM_SLOT(upstream, large_pages);
  return keep(&meter_of(ctx)->large_pages, method ? method(upstream) : NULL, &methods);
}
