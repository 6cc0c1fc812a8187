/* meter.c - Limit and Stats, the adaptors that count bytes.
 *
 * Both begin with a Meter, which knows the size of each live block and calls one to three functions
 * of the adaptor for each change. It counts the requested bytes. It passes on calls for blocks that
 * were not allocated through the adaptor, and does not count them.
 *
 * The entry of a block leaves the table before the block is given back, because the upstream may
 * hand out the address to another thread at once. When the upstream refuses the free, the entry
 * returns to the room that was kept for it.
 *
 * Of an upstream that maps memory (umemPages) a page counts as a block from the map that gives
 * it memory to the unmap that takes it: what a pool over the adaptor holds. To move pages
 * changes nothing, as they keep their memory. Addresses without memory do not count. */
#include "base/number.h"
#include "base/records.h"
#include "core/adaptor.h"

#include <stdlib.h>
#include <string.h>
#include <umem/limit.h>
#include <umem/stats.h>

typedef struct Meter Meter;

/* Each is called without a lock, from any thread. */
typedef struct MeterHooks {
  /* Before more bytes are requested of the upstream: false, with a status, refuses. NULL: all
   * may be. */
  bool (*admit)(umemVirtual *ctx, Meter *meter, size_t more);
  /* The upstream refused what was admitted. NULL: nothing to do. */
  void (*retract)(Meter *meter, size_t more);
  /* A block of old_size bytes (0: a new one) has new_size bytes from now on (0: it is free). */
  void (*resized)(Meter *meter, size_t old_size, size_t new_size);
} MeterHooks;

/* The sizes of pages: 1 << order of the smallest. */
enum { meter_page_sizes = 7 };

/* Pages of one size. */
typedef struct MeterPages {
  umemPages own;
  umemPages const *below; /* of the upstream; NULL before the first use */
} MeterPages;

struct Meter {
  umemAdaptor adaptor;
  MeterHooks const *hooks;
  umemValues sizes; /* of live blocks */
  MeterPages pages[meter_page_sizes];
};

static Meter *meter_of(umemVirtual *ctx) { return umemAdaptor_impl(ctx); }

/* The first step of a kind's start. Cannot fail. */
static void meter_start(Meter *meter, MeterHooks const *hooks) {
  meter->hooks = hooks;
  umemValues_init(&meter->sizes);
}

static void meter_dtor(umemVirtual *ctx) {
  umemAdaptor_unlist(ctx);
  umemValues_fini(&meter_of(ctx)->sizes);
  umemAdaptor_dtor(ctx);
}

/* ---- allocation ---- */

static bool admits(umemVirtual *ctx, Meter *meter, size_t more) {
  return !meter->hooks->admit || meter->hooks->admit(ctx, meter, more);
}

static void retract(Meter *meter, size_t more) {
  if (meter->hooks->retract && more) meter->hooks->retract(meter, more);
}

/* Enters a block of size bytes, which counts already. An entry that it replaces counts no more. */
static void enter(Meter *meter, umemValuesShare *room, uintptr_t adr, size_t size) {
  size_t old = 0;
  if (umemValues_put(&meter->sizes, room, adr, size, &old)) meter->hooks->resized(meter, old, 0);
}

static uintptr_t allocate(umemVirtual *ctx, Meter *meter, umemValuesShare *room,
                          umemRequest const *request) {
  uintptr_t null = umem_null_of(ctx), adr = null;
  if (admits(ctx, meter, request->nbytes)) {
    uint64_t before = umem_thread.failures;
    adr = umem_alloc_as(meter->adaptor.upstream, request);
    if (adr != null) {
      meter->hooks->resized(meter, 0, request->nbytes);
      enter(meter, room, adr, request->nbytes);
      return adr;
    }
    umemAdaptor_failed(ctx, before);
    retract(meter, request->nbytes);
  }
  umemValues_release(room);
  return null;
}

/* Enters a block of size bytes again: it is still at adr. */
static void restore(Meter *meter, umemValuesPart *part, uintptr_t adr, size_t size) {
  size_t old = 0;
  if (umemValues_put_back(part, adr, size, &old)) meter->hooks->resized(meter, old, 0);
}

/* Counts the requested size in the table, not old_size of the caller. */
static uintptr_t resize(umemVirtual *ctx, Meter *meter, umemValuesShare *room,
                        umemRequest const *request) {
  size_t size, new_size = request->nbytes;
  umemValuesPart *part = umemValues_take(&meter->sizes, request->adr, &size);
  if (!part) {
    umemValues_release(room);
    return umemAdaptor_allocate(ctx, request);
  }
  uintptr_t null = umem_null_of(ctx), moved = null;
  size_t more = new_size > size ? new_size - size : 0;
  if (umem_has_size(ctx, request->adr, size, request->old_size) && admits(ctx, meter, more)) {
    moved = umemAdaptor_allocate(ctx, request);
    if (moved == null) retract(meter, more);
  }
  if (moved != null) {
    meter->hooks->resized(meter, size, new_size);
    enter(meter, room, moved, new_size);
    umemValues_drop(part);
  } else {
    umemValues_release(room);
    restore(meter, part, request->adr, size);
  }
  return moved;
}

static uintptr_t meter_allocate(umemVirtual *ctx, umemRequest const *request) {
  Meter *meter = meter_of(ctx);
  umemValuesShare *room = umemValues_reserve(&meter->sizes);
  if (room) return (request->how == umemByRealloc ? resize : allocate)(ctx, meter, room, request);
  return UMEM_FAIL_AS(umem_null_of(ctx), ctx, umemMemoryError, "no memory to remember a block");
}
UMEM_ADAPTOR_ALLOCATES(meter_allocate)

/* ---- free ---- */

static void meter_free(umemVirtual *ctx, uintptr_t adr, bool aligned) {
  Meter *meter = meter_of(ctx);
  size_t size = 0;
  umemValuesPart *part = umemValues_take(&meter->sizes, adr, &size);
  uint64_t before = umem_thread.failures;
  umemAdaptor_give_back(ctx, adr, aligned);
  if (!part) return;
  if (umem_thread.failures != before) {
    restore(meter, part, adr, size);
  } else {
    umemValues_drop(part);
    meter->hooks->resized(meter, size, 0);
  }
}
UMEM_ADAPTOR_FREES(meter_free)

/* ---- finding ---- */

/* The entries are found by the first address of a block: the context below may know it. */
static umemSearch meter_find(umemVirtual *ctx, uintptr_t adr, umemFound *found) {
  Meter *meter = meter_of(ctx);
  umemFound below = *found;
  umemSearch search = umemLive_search(meter->adaptor.upstream, adr, &below);
  if (search == umemSearchBusy) return search;
  uintptr_t start = search == umemSearchFound ? below.adr : adr;
  bool busy;
  size_t size = 0;
  bool mine = umemValues_try_find(&meter->sizes, start, &size, &busy);
  if (!mine && !busy &&
      start != adr) { /* of an aligned block, which begins behind that of the context below */
    start = adr;
    mine = umemValues_try_find(&meter->sizes, start, &size, &busy);
  }
  if (busy) return umemSearchBusy;
  if (!mine || adr - start >= size) return umemSearchNone;
  *found = below;
  found->adr = start;
  found->nbytes = size;
  return umemSearchFound;
}

/* ---- pages ---- */

static umemVirtual *upstream_of(umemVirtual *ctx) { return umem_check(umemAdaptor_upstream(ctx)); }

/* Counts so many bytes of pages that have got memory, or have lost it. */
static void count_pages(Meter *meter, umemPages const *below, size_t nbytes, bool mapped) {
  size_t size = below->page_size;
  for (size_t done = 0; done < nbytes; done += size)
    meter->hooks->resized(meter, mapped ? 0 : size, mapped ? size : 0);
}

static uintptr_t meter_reserve(umemVirtual *ctx, size_t nbytes) {
  UMEM_ADAPTOR_RECORDS(ctx);
  umemVirtual *upstream = upstream_of(ctx);
  return upstream ? meter_of(ctx)->pages->below->reserve(upstream, nbytes) : umem_null_of(ctx);
}

static bool meter_release(umemVirtual *ctx, uintptr_t adr, size_t nbytes) {
  UMEM_ADAPTOR_RECORDS(ctx);
  umemVirtual *upstream = upstream_of(ctx);
  return upstream && meter_of(ctx)->pages->below->release(upstream, adr, nbytes);
}

static size_t map_of(umemVirtual *ctx, umemPages const *below, uintptr_t adr, size_t nbytes) {
  if (!admits(ctx, meter_of(ctx), nbytes)) return 0;
  UMEM_ADAPTOR_RECORDS(ctx);
  umemVirtual *upstream = upstream_of(ctx);
  size_t done = upstream ? below->map(upstream, adr, nbytes) : 0;
  retract(meter_of(ctx), nbytes - done);
  count_pages(meter_of(ctx), below, done, true);
  return done;
}

static size_t unmap_of(umemVirtual *ctx, umemPages const *below, uintptr_t adr, size_t nbytes) {
  UMEM_ADAPTOR_RECORDS(ctx);
  umemVirtual *upstream = upstream_of(ctx);
  size_t done = upstream ? below->unmap(upstream, adr, nbytes) : 0;
  count_pages(meter_of(ctx), below, done, false);
  return done;
}

static size_t move_of(umemVirtual *ctx, umemPages const *below, uintptr_t from, uintptr_t to,
                      size_t nbytes) {
  UMEM_ADAPTOR_RECORDS(ctx);
  umemVirtual *upstream = upstream_of(ctx);
  return upstream ? below->move(upstream, from, to, nbytes) : 0;
}

/* The methods of pages of 1 << order others. */
#define METHODS_OF(order)                                                                          \
  static size_t map_##order(umemVirtual *ctx, uintptr_t adr, size_t nbytes) {                      \
    return map_of(ctx, meter_of(ctx)->pages[order].below, adr, nbytes);                            \
  }                                                                                                \
  static size_t unmap_##order(umemVirtual *ctx, uintptr_t adr, size_t nbytes) {                    \
    return unmap_of(ctx, meter_of(ctx)->pages[order].below, adr, nbytes);                          \
  }                                                                                                \
  static size_t move_##order(umemVirtual *ctx, uintptr_t from, uintptr_t to, size_t nbytes) {      \
    return move_of(ctx, meter_of(ctx)->pages[order].below, from, to, nbytes);                      \
  }
METHODS_OF(0)
METHODS_OF(1)
METHODS_OF(2)
METHODS_OF(3)
METHODS_OF(4)
METHODS_OF(5)
METHODS_OF(6)

/* Several pools may call it at the same time. */
static umemPages const *start_pages(Meter *meter, int order, umemPages const *below) {
  static umemPages const methods[meter_page_sizes] = {
      {0, meter_reserve, meter_release, map_0, unmap_0, move_0},
      {.map = map_1, .unmap = unmap_1, .move = move_1},
      {.map = map_2, .unmap = unmap_2, .move = move_2},
      {.map = map_3, .unmap = unmap_3, .move = move_3},
      {.map = map_4, .unmap = unmap_4, .move = move_4},
      {.map = map_5, .unmap = unmap_5, .move = move_5},
      {.map = map_6, .unmap = unmap_6, .move = move_6}};
  MeterPages *pages = &meter->pages[order];
  UMEM_LOCKED(&umem_global_lock);
  if (!pages->below) {
    pages->own = methods[order];
    pages->own.page_size = below->page_size;
    pages->below = below;
  }
  return &pages->own;
}

static umemPages const *meter_pages(umemVirtual *ctx) {
  umemVirtual *upstream = umemAdaptor_upstream(ctx);
  umemPages const *(*method)(umemVirtual *) = UMEM_SLOT(upstream, pages);
  umemPages const *below = method ? method(upstream) : NULL;
  return below ? start_pages(meter_of(ctx), 0, below) : NULL;
}

/* Those of below, which are larger than those of the method pages. */
static umemPages const *larger_pages(umemVirtual *ctx, umemPages const *below) {
  umemPages const *pages = below ? meter_pages(ctx) : NULL;
  for (int order = 1; pages && order < meter_page_sizes; order++)
    if (pages->page_size << order == below->page_size)
      return start_pages(meter_of(ctx), order, below);
  return NULL;
}

static umemPages const *meter_large_pages(umemVirtual *ctx) {
  umemVirtual *upstream = umemAdaptor_upstream(ctx);
  umemPages const *(*method)(umemVirtual *) = UMEM_SLOT(upstream, large_pages);
  return larger_pages(ctx, method ? method(upstream) : NULL);
}

static umemPages const *meter_sized_pages(umemVirtual *ctx, size_t page_size) {
  umemVirtual *upstream = umemAdaptor_upstream(ctx);
  umemPages const *(*method)(umemVirtual *, size_t) = UMEM_SLOT(upstream, sized_pages);
  return larger_pages(ctx, method ? method(upstream, page_size) : NULL);
}

#define METER_METHODS                                                                              \
  .pages = meter_pages, .large_pages = meter_large_pages, .sized_pages = meter_sized_pages,        \
  .find = meter_find, UMEM_ADAPTOR_ALLOCATION_BY(meter_allocate),                                  \
  UMEM_ADAPTOR_FREE_BY(meter_free), UMEM_ADAPTOR_BYTES, UMEM_ADAPTOR_ORDER, UMEM_ADAPTOR_ALWAYS

/* ---- Limit: at most so many bytes ---- */

typedef struct Limit {
  Meter meter;
  size_t maximum;
  size_t used; /* atomic; includes requests that have begun */
} Limit;

static Limit *limit_of(umemVirtual *ctx) { return umemAdaptor_impl(ctx); }

static size_t used_by(Limit *limit) { return __atomic_load_n(&limit->used, __ATOMIC_RELAXED); }

static bool limit_admit(umemVirtual *ctx, Meter *meter, size_t more) {
  Limit *limit = (Limit *)meter;
  size_t used = used_by(limit);
  do {
    if (more > limit->maximum - used)
      return UMEM_FAIL(
          ctx, umemMemoryError,
          "no room for %zu more bytes: %zu of the %zu that the limit allows are in use", more, used,
          limit->maximum);
  } while (!__atomic_compare_exchange_n(&limit->used, &used, used + more, true, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED));
  return true;
}

static void limit_retract(Meter *meter, size_t more) {
  __atomic_fetch_sub(&((Limit *)meter)->used, more, __ATOMIC_RELAXED);
}

static void limit_resized(Meter *meter, size_t old_size, size_t new_size) {
  if (new_size < old_size) limit_retract(meter, old_size - new_size);
}

static void limit_info(umemVirtual *ctx, umemInfo *info) {
  Limit *limit = limit_of(ctx);
  if (umem_get_info(umemAdaptor_upstream(ctx), info) != umemOK) return;
  info->capacity = umem_lesser(info->capacity, limit->maximum);
  info->available = umem_lesser(info->available, limit->maximum - used_by(limit));
}

static bool limit_usage(umemVirtual *ctx, umemUsage *usage) {
  usage->nbytes = used_by(limit_of(ctx));
  return true;
}

static struct umemVtbl const limit_vtbl = {
    .dtor = meter_dtor,
    .info = limit_info,
    .usage = limit_usage,
    METER_METHODS,
};

static bool limit_start(umemVirtual *ctx, void const *maximum) {
  static MeterHooks const hooks = {limit_admit, limit_retract, limit_resized};
  meter_start(meter_of(ctx), &hooks);
  limit_of(ctx)->maximum = *(size_t const *)maximum;
  return true;
}

/* "limit+host:?limit=1M" */
static umemOption const limit_options[] = {
    {.name = "limit",
     .kind = umemSizeOption,
     .required = true,
     .help = "that may be live at once",
     .reserved = {0, sizeof(size_t)}},
};

umemKind const umem_limit_kind = {
    .scheme = {UMEM_ADAPTOR_KIND(umemLimit, "limit", &limit_vtbl),
               UMEM_ADAPTOR_OPENS(umem_limit_kind), UMEM_OPTIONS(limit_options),
               .help = "gives out no more than so many bytes"},
    .label = "Limit",
    .impl_size = sizeof(Limit),
    .options_size = sizeof(size_t),
    .start = limit_start,
};

UMEM_ADAPTOR_CTORS(umemLimit, umem_limit_kind, &maximum, void *upstream, size_t maximum)

size_t umemLimit_used(umemLimit *ctx) {
  UMEM_ENTER();
  umemVirtual *self = umemKind_check(ctx, &umem_limit_kind);
  return self ? used_by(limit_of(self)) : 0;
}

/* ---- Stats: counts what is allocated ---- */

/* The life of the context, or a part of it. */
typedef struct Scope {
  struct Scope *outer; /* NULL for the life */
  umemStatsFigures figures;
} Scope;

typedef struct Stats {
  Meter meter;
  umemLock lock; /* of all that follows */
  Scope life;
  Scope *innermost; /* the life; or owned, as are those between */
} Stats;

static Stats *stats_of(umemVirtual *ctx) { return umemAdaptor_impl(ctx); }

static void raise_to(int64_t *peak, int64_t current) {
  if (*peak < current) *peak = current;
}

static void count(umemStatsFigures *figures, int64_t old_size, int64_t new_size) {
  figures->current_bytes += new_size - old_size;
  figures->current_count += (new_size != 0) - (old_size != 0);
  figures->total_bytes += new_size;
  figures->total_count += new_size != 0;
  raise_to(&figures->peak_bytes, figures->current_bytes);
  raise_to(&figures->peak_count, figures->current_count);
}

static void stats_resized(Meter *meter, size_t old_size, size_t new_size) {
  Stats *stats = (Stats *)meter;
  UMEM_LOCKED(&stats->lock);
  for (Scope *scope = stats->innermost; scope; scope = scope->outer)
    count(&scope->figures, (int64_t)old_size, (int64_t)new_size);
}

static bool stats_usage(umemVirtual *ctx, umemUsage *usage) {
  Stats *stats = stats_of(ctx);
  if (!umemLock_try(&stats->lock)) return false;
  usage->nbytes = (uint64_t)stats->life.figures.current_bytes;
  usage->peak = (uint64_t)stats->life.figures.peak_bytes;
  umemLock_release(&stats->lock);
  return true;
}

static void stats_dtor(umemVirtual *ctx) {
  Stats *stats = stats_of(ctx);
  umemAdaptor_unlist(ctx);
  for (Scope *scope = stats->innermost, *outer; scope != &stats->life; scope = outer) {
    outer = scope->outer;
    free(scope);
  }
  umemLock_destroy(&stats->lock);
  meter_dtor(ctx);
}

static struct umemVtbl const stats_vtbl = {
    .dtor = stats_dtor,
    .usage = stats_usage,
    METER_METHODS,
};

static bool stats_start(umemVirtual *ctx, void const *options) {
  (void)options;
  static MeterHooks const hooks = {.resized = stats_resized};
  Stats *stats = stats_of(ctx);
  meter_start(&stats->meter, &hooks);
  umemLock_init(&stats->lock);
  stats->innermost = &stats->life;
  return true;
}

/* "stats+host:" */
umemKind const umem_stats_kind = {
    .scheme = {UMEM_ADAPTOR_KIND(umemStats, "stats", &stats_vtbl),
               UMEM_ADAPTOR_OPENS(umem_stats_kind), .help = "counts blocks and bytes"},
    .label = "Stats",
    .impl_size = sizeof(Stats),
    .start = stats_start,
};

UMEM_ADAPTOR_CTORS(umemStats, umem_stats_kind, NULL, void *upstream)

/* ---- Stats: figures ---- */

/* Whether ctx is one; false with a status otherwise. */
static bool is_stats(umemStats *ctx) { return umemKind_check(ctx, &umem_stats_kind) != NULL; }

/* Whether figures can be written; false with a status otherwise. */
static bool check_figures(umemStats *ctx, umemStatsFigures const *figures) {
  return umem_can_write_sized(ctx, figures, offsetof(umemStatsFigures, peak_bytes), "figures",
                              "umemStatsFigures");
}

/* With the label, which is copied before the lock is taken. */
static void write_figures(umemStatsFigures *to, umemStatsFigures const *from, char const *label) {
  umemStatsFigures full = *from;
  memcpy(full.label, label, sizeof full.label);
  umem_write_sized(to, &full, sizeof full);
}

umemStatusType umemStats_get(umemStats *ctx, umemStatsFigures *figures) {
  UMEM_ENTER();
  if (!is_stats(ctx) || !check_figures(ctx, figures)) return UMEM_RESULT();
  Stats *stats = ctx->impl;
  char label[UMEM_LABEL_SIZE];
  umemExtra_label(&ctx->super, label);
  UMEM_LOCKED(&stats->lock);
  write_figures(figures, &stats->life.figures, label);
  return umemOK;
}

umemStatusType umemStats_push(umemStats *ctx) {
  UMEM_ENTER();
  if (!is_stats(ctx)) return UMEM_RESULT();
  Stats *stats = ctx->impl;
  Scope *scope = calloc(1, sizeof *scope);
  if (!scope) return umemVirtual_fail(ctx, umemMemoryError, "no memory for a scope");
  UMEM_LOCKED(&stats->lock);
  scope->outer = stats->innermost;
  stats->innermost = scope;
  return umemOK;
}

umemStatusType umemStats_pop(umemStats *ctx, umemStatsFigures *figures) {
  UMEM_ENTER();
  if (!is_stats(ctx) || (figures && !check_figures(ctx, figures))) return UMEM_RESULT();
  Stats *stats = ctx->impl;
  char label[UMEM_LABEL_SIZE];
  umemExtra_label(&ctx->super, label);
  umemLock_acquire(&stats->lock);
  Scope *scope = stats->innermost;
  if (scope->outer) stats->innermost = scope->outer;
  umemLock_release(&stats->lock);
  if (!scope->outer) return umemVirtual_fail(ctx, umemValueError, "no scope is open");
  if (figures) write_figures(figures, &scope->figures, label);
  free(scope);
  return umemOK;
}

static int64_t not_negative(int64_t n) { return n > 0 ? n : 0; }

umemStatusType umemStats_reset(umemStats *ctx) {
  UMEM_ENTER();
  if (!is_stats(ctx)) return UMEM_RESULT();
  Stats *stats = ctx->impl;
  UMEM_LOCKED(&stats->lock);
  for (Scope *scope = stats->innermost; scope; scope = scope->outer) {
    umemStatsFigures *figures = &scope->figures;
    figures->peak_bytes = not_negative(figures->current_bytes);
    figures->peak_count = not_negative(figures->current_count);
    figures->total_bytes = figures->total_count = 0;
  }
  return umemOK;
}
